"""Metadata of the cluster: newer replaces older, and an error says why there is none."""

import asyncio

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.cluster import Cluster, ClusterMetadata, Leader
from barnabas.cluster.backoff import Backoff
from barnabas.cluster.cluster import ClusterConfig
from barnabas.cluster.connections import Connections
from barnabas.cluster.lower_epochs import GRACE, LowerEpochs
from barnabas_common.errors import NoBrokerReachableError, UnknownTopicOrPartitionError
from barnabas_common.messages.metadata import (
    BrokerInfo,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas_common.runtime import Address, Message, Runtime, Service, system_randomness
from barnabas_common.topic_partition import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_brokers import ScriptedBrokers

TP = TopicPartition("t", 0)
BROKERS = [BrokerInfo(1, "a", 1), BrokerInfo(2, "b", 2)]


def answer(leader: int, epoch: int, topic_id: str = "id", error: int = 0) -> MetadataResponse:
    partitions = [PartitionMetadata(0, 0, leader, epoch)]
    return MetadataResponse(
        "c", 1, BROKERS, [TopicMetadata("t", error, topic_id, False, partitions)]
    )


def test_lower_leader_epoch_is_ignored() -> None:
    metadata = ClusterMetadata().merged(answer(1, 5)).merged(answer(2, 4))
    assert metadata.leader(TP) == Leader(1, 5)


def test_of_two_answers_with_one_leader_epoch_the_later_counts() -> None:
    """The ISR changes within a leader epoch."""
    one, other = answer(1, 5), answer(1, 5)
    one.topics[0].partitions[0].in_sync_replicas = [1, 2]
    other.topics[0].partitions[0].in_sync_replicas = [1]
    partition = ClusterMetadata().merged(one).merged(other).partition(TP)
    assert partition is not None and partition.in_sync_replicas == [1]


def test_new_topic_id_begins_again() -> None:
    metadata = ClusterMetadata().merged(answer(1, 5)).merged(answer(2, 0, "other"))
    assert metadata.leader(TP) == Leader(2, 0)


def test_a_lower_leader_epoch_is_believed_once_all_answers_have_had_one_for_some_time() -> None:
    known, lower = ClusterMetadata().merged(answer(1, 5)), LowerEpochs()
    assert not lower.believed(known, answer(2, 3), 100.0)
    assert not lower.believed(known, answer(2, 3), 100.0 + GRACE / 2)
    assert not lower.believed(known, answer(1, 5), 100.0 + GRACE / 2), "one broker knows better"
    assert not lower.believed(known, answer(2, 3), 101.0 + GRACE)
    assert not lower.believed(known, answer(2, 0, "other"), 102.0 + GRACE), "another topic"
    assert not lower.believed(known, answer(2, 3), 103.0 + GRACE)
    believed = lower.believed(known, answer(2, 4), 103.0 + 2 * GRACE)
    assert believed == {TP}
    assert known.merged(answer(2, 4), believed=believed).leader(TP) == Leader(2, 4)


def test_what_was_lower_than_an_earlier_epoch_counts_for_no_later_one() -> None:
    """A broker that lags behind for a moment, twice in an hour: between, a refusal has named a
    newer leader. The client went back to the one before."""
    known, lower = ClusterMetadata().merged(answer(1, 5)), LowerEpochs()
    assert not lower.believed(known, answer(2, 4), 100.0)
    known = known.with_leader(TP, Leader(3, 7))
    assert not lower.believed(known, answer(1, 6), 100.0 + 100 * GRACE)
    assert not lower.believed(known, answer(1, 6), 100.0 + 101 * GRACE - 1)
    assert lower.believed(known, answer(1, 6), 100.0 + 101 * GRACE) == {TP}


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 20)), min_size=1))
def test_highest_epoch_wins_in_any_order_of_answers(answers: list[tuple[int, int]]) -> None:
    metadata = ClusterMetadata()
    for leader, epoch in answers:
        metadata = metadata.merged(answer(leader, epoch))
    leader = metadata.leader(TP)
    assert leader is not None
    assert leader.epoch == max(epoch for _, epoch in answers)


def test_hint_is_applied_only_when_newer() -> None:
    metadata = ClusterMetadata().merged(answer(1, 5))
    assert metadata.with_leader(TP, Leader(2, 5)) is metadata
    assert metadata.with_leader(TP, Leader(-1, 9)) is metadata
    assert metadata.with_leader(TP, Leader(2, 6)).leader(TP) == Leader(2, 6)
    assert metadata.with_leader(TP, Leader(2, 6)).merged(answer(1, 5)).leader(TP) == Leader(2, 6)


def test_leader_without_an_address_is_no_leader() -> None:
    assert ClusterMetadata().merged(answer(9, 1)).leader(TP) is None
    assert ClusterMetadata().merged(answer(-1, 1)).leader(TP) is None


def test_topic_in_error_is_forgotten_and_its_error_kept() -> None:
    metadata = ClusterMetadata().merged(answer(1, 5)).merged(answer(1, 5, error=3))
    assert metadata.topics == {}
    assert metadata.errors == {"t": 3}
    assert metadata.merged(answer(1, 5)).errors == {}


def test_answer_that_lags_does_not_take_partitions_away() -> None:
    two = answer(1, 1)
    two.topics[0].partitions.append(PartitionMetadata(1, 0, 2, 1))
    metadata = ClusterMetadata().merged(two).merged(answer(1, 1))
    assert metadata.topics["t"].partition_count == 2


def test_backoff_doubles_to_its_limit_within_its_jitter() -> None:
    backoff = Backoff(100, 1_000, system_randomness())
    for failures, middle in ((0, 0.1), (1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (100, 1.0)):
        assert 0.8 * middle <= backoff.seconds(failures) <= 1.2 * middle


@pytest.mark.parametrize("client", [Producer, Admin])
async def test_unreachable_bootstrap_names_every_address_and_why(client: type) -> None:
    brokers = ScriptedBrokers()
    async with asyncio.timeout(5):
        with pytest.raises(NoBrokerReachableError) as error:
            await client("nowhere:1,elsewhere:2", runtime=brokers.runtime).start()
    assert "nowhere:1: " in str(error.value)
    assert "elsewhere:2: " in str(error.value)
    assert "refused" in str(error.value)


async def test_one_silent_address_does_not_delay_the_others() -> None:
    async with ScriptedBrokers(brokers=2) as brokers:
        brokers.network.cut("client", "broker-1")
        async with asyncio.timeout(10), Admin(brokers.bootstrap, runtime=brokers.runtime) as admin:
            assert admin is not None


async def test_an_error_of_any_kind_from_an_address_is_no_answer() -> None:
    class Broken:
        async def call(self, request: Message, timeout: float) -> Message:
            raise ZeroDivisionError("planted")

        async def close(self) -> None:
            pass

    class BrokenNetwork:
        def connect(self, address: Address, service: Service) -> Broken:
            return Broken()

    connections = Connections(BrokenNetwork())  # type: ignore[arg-type]
    addresses = [Address("a", 1), Address("b", 2)]
    async with asyncio.timeout(5):
        with pytest.raises(NoBrokerReachableError, match=r"a:1: .*planted.*b:2: .*planted"):
            await connections.first_answer(addresses, MetadataRequest(), 60)


async def test_consumer_fails_as_fast() -> None:
    runtime: Runtime = ScriptedBrokers().runtime
    async with asyncio.timeout(5):
        with pytest.raises(NoBrokerReachableError, match="nowhere:1"):
            await Consumer("flights", bootstrap_servers="nowhere:1", runtime=runtime).start()


async def test_a_broker_that_knows_nothing_new_is_not_the_only_one_asked() -> None:
    """A broker that is cut off from the cluster, but not from clients, has old metadata forever."""
    async with (
        ScriptedBrokers(brokers=3) as brokers,
        Consumer(
            "flights",
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime,
            metadata_max_age_ms=20,
        ),
    ):
        brokers.asked_for_metadata.clear()  # at the start the client asked all
        async with asyncio.timeout(10):
            while len(brokers.asked_for_metadata) < 3:
                await asyncio.sleep(0.01)


async def test_failed_recently_are_asked_again_when_the_others_know_nothing_new() -> None:
    """The broker that answers may be the one that is cut off from the cluster."""
    async with ScriptedBrokers(brokers=3) as brokers:
        addresses = tuple(Address.parse(each) for each in brokers.bootstrap.split(","))
        cluster = Cluster(ClusterConfig(addresses, metadata_max_age_ms=20), brokers.runtime)
        await cluster.start()
        for broker_id in (1, 2):
            cluster.note_failure(broker_id)
        brokers.asked_for_metadata.clear()
        async with asyncio.timeout(10):
            while len(brokers.asked_for_metadata) < 3:
                await asyncio.sleep(0.01)
        await cluster.close()


async def test_a_failed_lookup_does_not_end_a_watch() -> None:
    """A broker that has just started refuses every topic; a consumer must see it return."""
    async with ScriptedBrokers() as brokers:
        addresses = tuple(Address.parse(each) for each in brokers.bootstrap.split(","))
        cluster = Cluster(ClusterConfig(addresses, metadata_max_age_ms=20), brokers.runtime)
        await cluster.start()
        cluster.watch(["flights"])
        brokers.topic = "not known yet"
        with pytest.raises(UnknownTopicOrPartitionError):
            await cluster.topic("flights", timeout=0.0)
        brokers.topic = "flights"
        async with asyncio.timeout(10):
            while "flights" not in cluster.metadata.topics:
                await asyncio.sleep(0.01)
        await cluster.close()
