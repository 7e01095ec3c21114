"""What leaders answer about producers, and to markers for partitions that are not theirs."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.transactions import (
    ActiveProducer,
    DescribeProducersRequest,
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_common.runtime import Address, Message, Service
from barnabas_simulator.cluster import CLIENT_PORT, INTERNAL_PORT, SimulatedCluster

from tests.support.idempotent import sent
from tests.support.raw_transactions import TransactionCoordinators, in_cluster

E = ErrorCode


async def ask(
    cluster: SimulatedCluster, broker_id: int, service: Service, request: Message
) -> Message:
    port = INTERNAL_PORT if service is Service.REPLICA else CLIENT_PORT
    network = cluster.client_runtime("asking").network
    channel = network.connect(Address(f"broker-{broker_id}", port), service)
    try:
        return await channel.call(request, 30.0)
    finally:
        await channel.close()


def leader_of(cluster: SimulatedCluster, partition: int) -> int:
    state = cluster.broker(1).metadata_cache.partition("orders", partition)
    assert state is not None
    return state.leader


def test_a_leader_describes_the_producers_of_its_partition() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        leader = leader_of(cluster, 0)
        for producer_id, values in ((9, (b"a", b"b", b"c")), (7, (b"d",))):
            item = ProducePartition("orders", 0, sent(*values, producer_id=producer_id))
            request = ProduceRequest(-1, 30_000, [item])
            answer = await ask(cluster, leader, Service.DATA, request)
            assert answer.partitions[0].error_code == E.NONE
        asked = [TransactionPartition("orders", 0), TransactionPartition("absent", 0)]
        answer = await ask(cluster, leader, Service.DATA, DescribeProducersRequest(asked))
        known, absent = answer.partitions
        assert [(p.producer_id, p.last_sequence) for p in known.active_producers] == [
            (7, 0),
            (9, 2),
        ]
        first = known.active_producers[0]
        assert first == ActiveProducer(7, 0, 0, first.last_timestamp, -1, -1)
        assert absent.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
        other = next(broker for broker in cluster.broker_ids if broker != leader)
        answer = await ask(cluster, other, Service.DATA, DescribeProducersRequest(asked[:1]))
        assert answer.partitions[0].error_code == E.NOT_LEADER_OR_FOLLOWER

    in_cluster(story)


def test_each_marker_has_an_outcome_of_its_own() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        not_led = [p for p in range(3) if leader_of(cluster, p) != 1]
        markers = [
            WritableTxnMarker(7, 0, True, [TransactionPartition("orders", not_led[0])], 0),
            WritableTxnMarker(8, 0, False, [], 0),
            WritableTxnMarker(
                9,
                0,
                False,
                [TransactionPartition("absent", 4), TransactionPartition("orders", not_led[1])],
                0,
            ),
        ]
        request = WriteTxnMarkersRequest(markers)
        answer = await ask(cluster, 1, Service.REPLICA, request)
        assert [item.producer_id for item in answer.markers] == [7, 8, 9]
        assert [[(p.topic, p.error_code) for p in item.partitions] for item in answer.markers] == [
            [("orders", E.NOT_LEADER_OR_FOLLOWER)],
            [],
            [("absent", E.UNKNOWN_TOPIC_OR_PARTITION), ("orders", E.NOT_LEADER_OR_FOLLOWER)],
        ]

    in_cluster(story)
