"""Batches with sequences, sent raw to the brokers of a cluster: what each retry is answered."""

import asyncio

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition, ProducePartition, ProduceRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.runtime import Address, Service
from barnabas_controller.store.znodes import decode_state, state_path
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.idempotent import sent
from tests.support.raw_groups import Coordinators


async def init(
    coordinators: Coordinators, broker_id: int, request: InitProducerIdRequest | None = None
) -> InitProducerIdResponse:
    return await coordinators.ask(broker_id, request or InitProducerIdRequest())


async def produce(
    cluster: SimulatedCluster, batch: bytes, acks: int = -1, timeout_ms: int = 10_000
) -> ProducedPartition:
    """Ask the partition's leader."""
    network = cluster.client_runtime("producer").network
    address = Address(f"broker-{leader_of(cluster)}", CLIENT_PORT)
    channel = network.connect(address, Service.DATA)
    request = ProduceRequest(acks, timeout_ms, [ProducePartition(*ORDERS, batch)])
    answer = await channel.call(request, 60.0)
    await channel.close()
    return answer.partitions[0]


def leader_of(cluster: SimulatedCluster) -> int:
    """The leader in ZooKeeper."""
    node = cluster.zookeeper.tree.find(state_path(ORDERS))
    assert node is not None
    return decode_state(ORDERS, node.data, node.version).leader


def test_every_broker_gives_out_ids_and_none_twice() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        answers = await asyncio.gather(*(init(coordinators, 1 + n % 3) for n in range(6)))
        assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}
        found = [answer.producer_id for answer in answers]
        assert len(set(found)) == 6
        with_id = InitProducerIdRequest(producer_id=5, producer_epoch=2)
        assert (await init(coordinators, 2, with_id)).producer_id not in [*found, 5]

    in_cluster(story)


def test_half_a_producer_is_refused() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        for request in (
            InitProducerIdRequest(producer_id=5),
            InitProducerIdRequest(producer_epoch=5),
        ):
            answer = await init(coordinators, 1, request)
            assert answer.error_code == ErrorCode.INVALID_REQUEST and answer.error_message
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    in_cluster(story)


def test_new_producers_start_while_zookeeper_is_down_until_the_ids_are_used_up() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        cluster.zookeeper.stop()
        found = [(await init(coordinators, 1)).producer_id for _ in range(1000)]
        assert min(found) >= 0 and len(set(found)) == 1000
        answer = await init(coordinators, 1)
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        cluster.zookeeper.start()
        while (answer := await init(coordinators, 1)).error_code:
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await asyncio.sleep(0.5)

    in_cluster(story)


def test_a_retry_waits_until_the_original_is_committed() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        first = await produce(cluster, sent(b"a", b"b", producer_id=7))
        assert (first.error_code, first.base_offset) == (0, 0)
        leader = leader_of(cluster)
        followers = [broker_id for broker_id in (1, 2, 3) if broker_id != leader]
        for follower in followers:
            cluster.cut(follower, leader)
        batch = sent(b"c", producer_id=7, sequence=2)
        late = await produce(cluster, batch, timeout_ms=300)
        assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
        again = await produce(cluster, batch, timeout_ms=300)
        assert again.error_code == ErrorCode.REQUEST_TIMED_OUT, "its original is not committed"
        assert (await produce(cluster, batch, acks=1)).base_offset == 2
        for follower in followers:
            cluster.heal(follower, leader)
        committed = await produce(cluster, batch, timeout_ms=30_000)
        assert (committed.error_code, committed.base_offset) == (0, 2)

    in_cluster(story)


def test_the_next_leader_recognizes_what_the_last_one_appended() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        batches = [sent(b"%d" % n, producer_id=7, sequence=n) for n in range(6)]
        for number, batch in enumerate(batches):
            assert (await produce(cluster, batch)).base_offset == number
        old = leader_of(cluster)
        cluster.kill(old)
        while leader_of(cluster) == old:
            await asyncio.sleep(0.2)
        for number in (5, 1, 3):
            assert (await produce(cluster, batches[number])).base_offset == number
        gap = sent(b"late", producer_id=7, sequence=8)
        codes = [(await produce(cluster, batch)).error_code for batch in (gap, batches[0])]
        assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
        assert (await produce(cluster, sent(b"6", producer_id=7, sequence=6))).base_offset == 6

    in_cluster(story)
