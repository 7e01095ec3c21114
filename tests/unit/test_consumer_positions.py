"""Positions: where reading begins, seeks, and truncated logs."""

import asyncio
from typing import Any

import pytest
from barnabas.consumer import LogTruncationError, offset_fetcher
from barnabas.consumer.completed_fetch import CompletedFetch
from barnabas.consumer.subscription_state import (
    FetchStep,
    SubscriptionState,
    TopicPartitionState,
    apply_epoch_end,
    fetch_step,
)
from barnabas_common.errors import (
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.messages.offsets import EpochEndOffset
from barnabas_common.record.batch import HEADER_SIZE, pack_header, parse_header, seal, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.transactional import marker_batch
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import ScriptedBrokers, refuse
from tests.unit.test_consumer_reading import consumer_of, read, write

TP = TopicPartition("flights", 0)


@pytest.mark.parametrize(
    ("code", "policy", "step"),
    [
        (ErrorCode.NONE, "latest", FetchStep.ACCEPT),
        (ErrorCode.OFFSET_OUT_OF_RANGE, "latest", FetchStep.RESET),
        (ErrorCode.OFFSET_OUT_OF_RANGE, "none", FetchStep.RAISE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, "none", FetchStep.RETRY),
        (ErrorCode.FENCED_LEADER_EPOCH, "none", FetchStep.RETRY),
        (ErrorCode.CORRUPT_MESSAGE, "latest", FetchStep.RAISE),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "latest", FetchStep.RAISE),
        (999, "latest", FetchStep.RAISE),
    ],
)
def test_every_answer_has_its_next_step(code: int, policy: str, step: FetchStep) -> None:
    assert fetch_step(FetchedPartition("t", 0, code), policy) is step


def reader(position: int, fetch_offset: int) -> TopicPartitionState:
    state = TopicPartitionState(TP, None)
    state.seek(position)
    state.fetched(fetch_offset, leader_epoch=4, size=100)
    return state


def test_new_leader_that_has_everything_changes_nothing() -> None:
    state = reader(10, 20)
    assert state.needs_check(5)
    assert apply_epoch_end(state, EpochEndOffset("t", 0, 0, 4, 20), 5, "none") is None
    assert (state.position, state.fetch_offset, state.buffered) == (10, 20, 100)
    assert not state.needs_check(5)
    assert state.needs_check(6)


def test_buffered_records_that_are_gone_are_dropped_in_silence() -> None:
    state = reader(10, 20)
    assert apply_epoch_end(state, EpochEndOffset("t", 0, 0, 4, 15), 5, "none") is None
    assert (state.position, state.fetch_offset, state.buffered) == (10, 10, 0)
    state.fetched(15, leader_epoch=4, size=50)
    assert not state.needs_check(5), "this leader has answered already"


def test_delivered_records_that_are_gone_are_an_error_or_a_jump_back() -> None:
    error = apply_epoch_end(reader(10, 20), EpochEndOffset("t", 0, 0, 4, 7), 5, "none")
    assert isinstance(error, LogTruncationError)
    assert error.safe_offset == 7
    state = reader(10, 20)
    assert apply_epoch_end(state, EpochEndOffset("t", 0, 0, 4, 7), 5, "latest") is None
    assert state.position == 7


def test_the_leader_epoch_of_a_committed_offset_is_checked_like_that_of_a_batch() -> None:
    state = TopicPartitionState(TP, None)
    state.start_from(10, 4, "none")
    assert state.needs_check(5) and not state.needs_check(4)
    error = apply_epoch_end(state, EpochEndOffset("t", 0, 0, 4, 7), 5, "none")
    assert isinstance(error, LogTruncationError)
    assert error.safe_offset == 7


def test_what_is_fetched_again_leaves_the_epoch_of_what_was_read() -> None:
    """It is committed together with the position."""
    state = reader(10, 20)
    state.position_epoch = 3
    state.rewind()
    assert (state.position, state.fetch_offset, state.position_epoch) == (10, 10, 3)


def test_what_is_fetched_again_does_not_hide_that_a_new_leader_lacks_what_was_read() -> None:
    state = reader(10, 20)
    state.position_epoch = 4
    state.rewind()
    assert state.needs_check(5) and not state.needs_check(4)


def test_a_marker_counts_with_its_own_leader_epoch() -> None:
    """The epoch before ends in front of it: a check by that one would find a truncated log."""
    builder = BatchBuilder()
    builder.append(0, b"k", b"at offset 0")
    data = bytearray(builder.build())
    marker = bytearray(marker_batch(7, 0, True, 1, 0))
    for batch, offset, leader_epoch in ((data, 0, 3), (marker, 1, 4)):
        batch[:16] = stamp(offset, leader_epoch, parse_header(batch).batch_length)
    state = TopicPartitionState(TP, None)
    state.seek(0)
    chunk = CompletedFetch(state, 0, bytes(data + marker), True, broker_id=1, leader_epoch=4)
    assert len(chunk.take(100)) == 1
    assert (state.position, state.position_epoch) == (1, 3)
    assert chunk.take(100) == []
    assert (state.position, state.position_epoch) == (2, 4)


def test_a_compacted_batch_without_records_from_the_position_on_is_passed() -> None:
    """The position must reach the end of the log, and with it what is committed."""
    builder = BatchBuilder()
    builder.append(0, b"k", b"at offset 0")
    built = builder.build()
    header = parse_header(built)._replace(last_offset_delta=9)
    batch = bytearray(pack_header(header) + built[HEADER_SIZE:])
    seal(batch)
    state = TopicPartitionState(TP, None)
    state.seek(5)
    chunk = CompletedFetch(state, 0, bytes(batch), True, broker_id=1, leader_epoch=0)
    assert chunk.take(100) == [] and chunk.exhausted
    assert state.position == 10


def test_seek_makes_what_is_under_way_stale() -> None:
    state = reader(10, 20)
    version = state.version
    state.seek(3)
    assert state.version != version
    assert (state.position, state.fetch_offset, state.buffered) == (3, 3, 0)


def test_assignment_keeps_positions_of_partitions_that_stay() -> None:
    positions = SubscriptionState("earliest")
    positions.assign([TP, TopicPartition("flights", 1)])
    positions.states[TP].seek(5)
    gone = positions.states[TopicPartition("flights", 1)]
    version = gone.version
    positions.assign([TopicPartition("flights", 2), TP])
    assert positions.states[TP].position == 5
    assert gone.version != version
    assert list(positions.states) == [TopicPartition("flights", 2), TP]


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 20)])
async def test_reading_begins_where_the_policy_says(policy: str, first: int) -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        async with consumer_of(brokers, "flights", auto_offset_reset=policy) as consumer:
            assert await consumer.position(TP) == first
            write(brokers, 20, 5)
            assert (await read(consumer, 1))[0].offset == first


async def test_a_seek_counts_more_than_the_answer_to_an_earlier_lookup() -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    async def hold(broker_id: int, request: Any) -> None:
        asked.set()
        await release.wait()

    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        brokers.offset_faults.append(hold)
        async with consumer_of(brokers, auto_offset_reset="latest") as consumer:
            consumer.assign([TP])
            await asked.wait()
            consumer.seek(TP, 7)
            release.set()
            assert [record.offset for record in await read(consumer, 13)] == list(range(7, 20))
            assert await consumer.position(TP) == 20


async def test_offset_out_of_range_is_met_by_the_policy() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        brokers.log().start = 10
        async with consumer_of(brokers, "flights") as consumer:
            consumer.seek(TP, 3)
            assert (await read(consumer, 1))[0].offset == 10
            consumer.seek(TP, 1_000)
            assert (await read(consumer, 1))[0].offset == 10


async def test_offset_out_of_range_without_a_policy_is_raised() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        async with consumer_of(brokers, auto_offset_reset="none") as consumer:
            consumer.assign([TP])
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.position(TP)
            consumer.seek(TP, 1_000)
            with pytest.raises(OffsetOutOfRangeError, match="flights-0 at offset 1000"):
                await consumer.poll()
            consumer.seek(TP, 5)
            assert (await read(consumer, 1))[0].offset == 5


async def test_jumps_to_begin_end_offset_and_time() -> None:
    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 20)
        write(brokers, 0, 7, partition=1)
        other = TopicPartition("flights", 1)
        async with consumer_of(brokers, "flights") as consumer:
            await consumer.seek_to_end()
            assert [await consumer.position(tp) for tp in (TP, other)] == [20, 7]
            await consumer.seek_to_beginning(TP)
            assert [await consumer.position(tp) for tp in (TP, other)] == [0, 7]
            assert await consumer.beginning_offsets([TP, other]) == {TP: 0, other: 0}
            assert await consumer.end_offsets([TP, other]) == {TP: 20, other: 7}
            found = await consumer.offsets_for_times({TP: 1_011, other: 5_000})
            at = found[TP]
            assert at is not None
            assert (at.offset, at.timestamp) == (11, 1_011)
            assert found[other] is None
            consumer.seek(TP, at.offset)
            records = await read(consumer, 9)
            assert [r.offset for r in records] == list(range(11, 20))


async def test_a_question_about_offsets_finds_the_new_leader() -> None:
    """Nothing is fetched, so that nothing else refreshes the metadata."""
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        async with consumer_of(brokers) as consumer:
            for leader in (1, 2, 3):
                brokers.elect(0, leader)
                async with asyncio.timeout(5):
                    assert await consumer.end_offsets([TP]) == {TP: 20}


async def test_position_below_a_batch_start_skips_its_first_records() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 30)
        async with consumer_of(brokers, "flights") as consumer:
            consumer.seek(TP, 14)
            assert [r.offset for r in await read(consumer, 16)] == list(range(14, 30))


async def test_records_lost_in_an_unclean_election_are_reported() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        async with consumer_of(brokers, auto_offset_reset="none") as consumer:
            consumer.assign([TP])
            consumer.seek(TP, 0)
            await read(consumer, 20)
            cut_to(brokers, 10)
            with pytest.raises(LogTruncationError) as error:
                await read(consumer, 1)
            assert error.value.safe_offset == 10
            consumer.seek(TP, error.value.safe_offset)
            write(brokers, 10, 3)
            assert [r.offset for r in await read(consumer, 3)] == [10, 11, 12]


async def test_records_lost_in_an_unclean_election_are_read_again_with_a_policy() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        async with consumer_of(brokers, "flights") as consumer:
            await read(consumer, 20)
            cut_to(brokers, 10)
            write(brokers, 10, 15)
            assert [r.offset for r in await read(consumer, 15)] == list(range(10, 25))


def cut_to(brokers: ScriptedBrokers, offset: int) -> None:
    """Elect another leader, whose log ends at `offset`."""
    log: Any = brokers.log()
    kept = log.read(0, 1 << 30)
    log.data, log.end = bytearray(), 0
    from barnabas_common.record.batch import batches

    for position, header in batches(kept):
        if header.last_offset < offset:
            log.data += kept[position : position + header.size]
    log.end = offset
    brokers.elect(0, leader=2)
    brokers.changed()


async def test_a_late_answer_of_a_deposed_leader_is_dropped() -> None:
    """It has records that the new leader does not have."""
    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 20)
        held, release = asyncio.Event(), asyncio.Event()

        async def hold(broker_id: int, request: Any) -> Any:
            if all(part.partition != TP.partition for part in request.partitions):
                brokers.fetch_faults.append(hold)
                return None
            answer = await brokers.fetch(broker_id, request)
            held.set()
            await release.wait()
            return answer

        brokers.fetch_faults.append(hold)
        async with consumer_of(brokers, "flights") as consumer:
            await held.wait()
            cut_to(brokers, 10)
            brokers.elect(1, leader=3)  # the refusal makes the consumer ask who leads
            brokers.changed()
            async with asyncio.timeout(10):
                while consumer.high_watermark(TP) != 10:
                    await asyncio.sleep(0)
            release.set()
            assert [record.offset for record in await read(consumer, 10)] == list(range(10))
            assert await consumer.poll(timeout_ms=100) == []


async def test_what_was_fetched_is_read_before_the_position_is_reset() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)

        async def beyond_20(broker_id: int, request: Any) -> Any:
            brokers.fetch_faults.append(beyond_20)
            if request.partitions[0].fetch_offset < 20:
                return None
            refusals.append(broker_id)
            return await refuse(ErrorCode.OFFSET_OUT_OF_RANGE)(broker_id, request)

        refusals: list[int] = []
        brokers.fetch_faults.append(beyond_20)
        async with consumer_of(brokers, auto_offset_reset="latest") as consumer:
            consumer.assign([TP])
            consumer.seek(TP, 0)
            async with asyncio.timeout(10):
                while len(refusals) < 2:  # the first one has been looked at
                    await asyncio.sleep(0)
            assert [record.offset for record in await read(consumer, 20)] == list(range(20))
            brokers.fetch_faults.clear()


@pytest.mark.usefixtures("short_grace")
async def test_asking_for_a_position_that_cannot_be_found_takes_no_record() -> None:
    nowhere = TopicPartition("nowhere", 0)
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 20)
        async with consumer_of(brokers) as consumer:
            consumer.assign([TP, nowhere])
            async with asyncio.timeout(10):
                while consumer.high_watermark(TP) < 0:
                    await asyncio.sleep(0)
            with pytest.raises(UnknownTopicOrPartitionError, match="nowhere"):
                await consumer.position(nowhere)
            assert [record.offset for record in await read(consumer, 20)] == list(range(20))


async def test_a_partition_that_does_not_exist_does_not_hold_up_the_others_of_its_topic() -> None:
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers) as consumer:
            consumer.assign([TP, TopicPartition("flights", 7)])
            offsets: list[int] = []
            async with asyncio.timeout(5):
                while len(offsets) < 10:
                    try:
                        offsets += [record.offset for record in await consumer.poll()]
                    except UnknownTopicOrPartitionError as error:
                        assert "no partition 7" in str(error)
            assert offsets == list(range(10))


async def test_a_position_does_not_wait_for_other_partitions_that_have_no_leader() -> None:
    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 10)
        brokers.log(1).leader = -1
        async with consumer_of(brokers, default_api_timeout_ms=1_000) as consumer:
            consumer.assign([TP, TopicPartition("flights", 1)])
            assert await consumer.position(TP) == 0
            with pytest.raises(RequestTimedOutError, match="no position for flights-1 in"):
                await consumer.position(TopicPartition("flights", 1))


async def test_topics_without_an_answer_are_looked_up_together() -> None:
    """One after the other, each for two seconds: the last one, and the checks of positions after a
    change of leader, waited for all of them."""
    missing = [TopicPartition(f"nowhere-{number}", 0) for number in range(10)]
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        async with consumer_of(brokers) as consumer:
            consumer.assign([*missing, TP])
            async with asyncio.timeout(10):
                assert await consumer.position(TP) == 0
                with pytest.raises(UnknownTopicOrPartitionError, match="nowhere-9"):
                    await consumer.position(missing[-1])


async def test_what_one_leader_says_about_positions_does_not_wait_for_another() -> None:
    """A broker that stands still: nothing was read from the others until the request timed out."""

    async def hold(broker_id: int, request: Any) -> None:
        brokers.offset_faults.append(hold)
        if broker_id == 2:
            await asyncio.Event().wait()

    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 10)
        brokers.offset_faults.append(hold)
        async with consumer_of(brokers) as consumer:
            consumer.assign([TP, TopicPartition("flights", 1)])
            assert len(await read(consumer, 10)) == 10
            brokers.elect(0, leader=3)  # which must be asked about what was read
            write(brokers, 10, 10)
            assert len(await read(consumer, 10)) == 10


async def test_a_partition_without_a_leader_keeps_no_reader_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No consumer of the topic could be started."""
    monkeypatch.setattr(offset_fetcher, "_LEADERLESS_SECONDS", 0.2)
    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 10)
        write(brokers, 0, 5, partition=1)
        brokers.log(1).leader = -1
        async with consumer_of(brokers, "flights", default_api_timeout_ms=2_000) as consumer:
            assert {record.partition for record in await read(consumer, 10)} == {0}
            brokers.log(1).leader = 3
            assert {record.partition for record in await read(consumer, 5)} == {1}
