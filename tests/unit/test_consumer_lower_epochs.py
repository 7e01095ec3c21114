"""Leader epochs go back below those of records that a consumer has read: those are gone."""

import pytest
from barnabas.cluster import lower_epochs
from barnabas.consumer import LogTruncationError
from barnabas.consumer.completed_fetch import CompletedFetch
from barnabas.consumer.config import AutoOffsetReset
from barnabas.consumer.subscription_state import TopicPartitionState
from barnabas_common.record.batch import parse_header, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import ScriptedBrokers
from tests.unit.test_consumer_reading import consumer_of, read, write

TP = TopicPartition("flights", 0)
DAMAGED = 4 + (1 << 30)


async def _story(
    brokers: ScriptedBrokers, policy: AutoOffsetReset, *, same_topic: bool
) -> list[int]:
    """The offsets that a consumer reads which has read 20 records of leader epoch 4.

    They are gone, and others are up to offset 30.
    """
    for _ in range(3):
        brokers.elect(0, leader=2)
    write(brokers, 0, 20)
    async with consumer_of(brokers, auto_offset_reset=policy) as consumer:
        consumer.assign([TP])
        consumer.seek(TP, 0)
        await read(consumer, 20)
        topic_id = brokers.topic_id
        brokers.create_again(1)
        if same_topic:
            brokers.topic_id = topic_id
        write(brokers, 0, 30)
        return [record.offset for record in await read(consumer, 30)]


@pytest.mark.parametrize("same_topic", [True, False], ids=["restored", "created again"])
async def test_records_below_the_position_are_not_skipped(
    same_topic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower_epochs, "GRACE", 0.2)
    async with ScriptedBrokers() as brokers:
        offsets = await _story(brokers, "earliest", same_topic=same_topic)
    assert offsets == list(range(30))


async def test_without_a_reset_policy_the_application_is_told() -> None:
    async with ScriptedBrokers() as brokers:
        with pytest.raises(LogTruncationError, match="read here and are no longer in the log"):
            await _story(brokers, "none", same_topic=False)


def test_a_leader_with_another_epoch_is_asked_whatever_that_epoch() -> None:
    state = TopicPartitionState(TP, None)
    state.start_from(10, 4, "latest")
    assert state.needs_check(3) and not state.needs_check(4) and state.needs_check(5)
    state.checked_epoch = 5
    assert state.needs_check(3) and not state.needs_check(5)


def test_a_damaged_leader_epoch_is_not_committed() -> None:
    """No checksum covers it. Every leader would seem to lack what was read."""
    builder = BatchBuilder()
    builder.append(0, b"k", b"v")
    batch = bytearray(builder.build())
    batch[:16] = stamp(0, DAMAGED, parse_header(batch).batch_length)
    state = TopicPartitionState(TP, None)
    state.seek(0)
    chunk = CompletedFetch(state, 0, bytes(batch), True, 1, leader_epoch=5)
    assert [record.leader_epoch for record in chunk.take(10)] == [5]
    assert (state.position, state.position_epoch) == (1, 5)


async def test_a_consumer_reads_on_after_a_damaged_leader_epoch() -> None:
    """No leader has that epoch: none would be found to have what was read."""
    async with ScriptedBrokers() as brokers:
        write(brokers, 0, 10)
        log = brokers.log()
        log.data[:16] = stamp(0, DAMAGED, parse_header(log.data).batch_length)
        async with consumer_of(brokers, auto_offset_reset="none") as consumer:
            consumer.assign([TP])
            consumer.seek(TP, 0)
            await read(consumer, 10)
            write(brokers, 10, 10)
            assert [record.offset for record in await read(consumer, 10)] == list(range(10, 20))
