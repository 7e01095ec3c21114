"""Each invariant is broken on purpose, and this one must be violated and no other.

All tests begin with the same run, which violates none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import encode_offsets
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import StopReplicaRequest, UpdateMetadataRequest
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import stamp
from barnabas_common.runtime import Address, Service
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import INTERNAL_PORT
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.loop import run

from tests.support.cluster_schedules import create_topic, started_cluster
from tests.support.idempotent import sent
from tests.support.raw import batch
from tests.support.replication_world import TP, ReplicationWorld
from tests.support.seeded_bugs import SEEDED_BUGS
from tests.support.watched_world import watched

Tamper = Callable[[ReplicationWorld, Invariants], Awaitable[None]]
MAX_SECONDS = 600.0


async def calm(tamper: Tamper | None = None) -> Invariants:
    """Run three replicas with two leader epochs and three committed records; tamper; rest."""
    world = ReplicationWorld()
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    for number in range(2):
        assert (await world.produce(b"%d" % number)).error_code == ErrorCode.NONE
        checker.acked(TP, number, b"%d" % number)
    await world.elect(1)
    assert (await world.produce(b"2")).error_code == ErrorCode.NONE
    checker.acked(TP, 2, b"2")
    await world.until_equal(1, 2, 3)
    if tamper is not None:
        await tamper(world, checker)
    await checker.at_rest(within=10.0)
    return checker


async def type_ok(world: ReplicationWorld, _: Invariants) -> None:
    await world.on(2, set_high_watermark(world, 2, 99))


async def leader_in_isr(world: ReplicationWorld, _: Invariants) -> None:
    world.states[TP].isr = (2, 3)


async def isr_not_empty(world: ReplicationWorld, _: Invariants) -> None:
    world.states[TP].isr = ()


async def leader_from_isr(world: ReplicationWorld, _: Invariants) -> None:
    world.states[TP].isr = (1, 2)
    await asyncio.sleep(0.1)
    world.states[TP].leader, world.states[TP].isr = 3, (3,)


async def quorum_superset(world: ReplicationWorld, _: Invariants) -> None:
    world.kill(3)
    await world.elect(1, isr=(1, 2))
    world.states[TP].isr = (1, 2, 3)


async def leader_completeness(world: ReplicationWorld, _: Invariants) -> None:
    world.kill(2)
    file = world.disks[2].open(f"/data/{TP.topic}-{TP.partition}/{0:020d}.log")
    file.truncate(file.size() - 1)
    await world.start(2)
    await world.elect(2)


async def candidate_completeness(world: ReplicationWorld, _: Invariants) -> None:
    async def cut() -> None:
        world.log(3).truncate_to(2)

    await world.on(3, cut())


async def strong_isr(world: ReplicationWorld, checker: Invariants) -> None:
    await world.on(2, rewrite_last(world, 2, epoch=0, value=b"2"))
    await world.on(2, set_high_watermark(world, 2, 0))
    checker.compare_logs()


async def log_matching(world: ReplicationWorld, checker: Invariants) -> None:
    await world.on(2, rewrite_last(world, 2, epoch=1, value=b"other"))
    checker.compare_logs()


async def one_leader_per_epoch(world: ReplicationWorld, _: Invariants) -> None:
    state = world.states[TP]
    state.leader_epoch += 1
    state.partition_epoch += 1
    order = world.leader_and_isr()
    order.partitions[0].leader = 2
    await world.on(2, world.incarnations[2].manager.become_leader_or_follower(order))


async def epoch_monotone(world: ReplicationWorld, _: Invariants) -> None:
    async def go_back() -> None:
        world.partition(2).leader_epoch -= 1

    await world.on(2, go_back())


async def record_epochs_rise(world: ReplicationWorld, checker: Invariants) -> None:
    for broker_id in (1, 2, 3):
        await world.on(broker_id, rewrite_last(world, broker_id, epoch=1, value=b"2", at=1))
        await world.on(broker_id, rewrite_last(world, broker_id, epoch=0, value=b"2"))
    checker.compare_logs()


async def no_global_loss(world: ReplicationWorld, _: Invariants) -> None:
    for broker_id in (1, 2, 3):
        world.kill(broker_id)
        world.disks[broker_id].wipe()


async def consistent_read(_: ReplicationWorld, checker: Invariants) -> None:
    checker.consumed(TP, 1, b"something else")


async def send_in_sequence(world: ReplicationWorld) -> None:
    request = ProduceRequest(-1, 5000, [ProducePartition(*TP, sent(b"3"))])
    manager = world.incarnations[world.states[TP].leader].manager
    response = await world.on(world.states[TP].leader, manager.produces.produce(request))
    assert response is not None and response.partitions[0].error_code == ErrorCode.NONE
    await world.until_equal(1, 2, 3)


async def producers_forgotten(world: ReplicationWorld, _: Invariants) -> None:
    await send_in_sequence(world)
    world.log(3).producers.entries.clear()


async def sequence_twice(world: ReplicationWorld, _: Invariants) -> None:
    await send_in_sequence(world)
    world.log(world.states[TP].leader).producers.entries.clear()
    await send_in_sequence(world)


async def disk(world: ReplicationWorld, _: Invariants) -> None:
    checkpoint = world.disks[3].open("/data/replication-offset-checkpoint", create=True)
    checkpoint.truncate(0)
    checkpoint.append([b"0\n2\nflights 0 3\n"])
    checkpoint.flush()
    world.disks[3].sync_directory("/data")
    world.kill(3, keep_unflushed=False)


async def recovery_point(world: ReplicationWorld, _: Invariants) -> None:
    async def advance() -> None:
        world.log(3).recovery_point = world.log(3).log_end_offset
        await world.incarnations[3].logs.checkpoint_all_offsets()

    await world.on(3, advance())


async def one_uncommitted(world: ReplicationWorld) -> None:
    """Append a fourth record on 1 and 2, which 3 does not get."""
    world.cut(1, 3)
    await world.produce(b"3", acks=1)
    leader = world.partition(1).lead()
    await world.until(lambda: leader.followers[2].log_end_offset == 4)


async def high_watermark_of_a_follower(world: ReplicationWorld, _: Invariants) -> None:
    await one_uncommitted(world)
    await world.on(2, set_high_watermark(world, 2, 4))


async def high_watermark_after_a_start(world: ReplicationWorld, _: Invariants) -> None:
    await one_uncommitted(world)
    world.kill(2)
    world.disks[2].write_file("/data/replication-offset-checkpoint", encode_offsets({TP: 4}))
    await world.start(2)
    await world.announce(only=2)


async def belief(world: ReplicationWorld, _: Invariants) -> None:
    await one_uncommitted(world)

    async def cut() -> None:
        world.log(2).truncate_to(3)

    await world.on(2, cut())


async def hosting(world: ReplicationWorld, _: Invariants) -> None:
    async def remove() -> None:
        world.incarnations[3].manager.partitions.remove(TP)

    await world.on(3, remove())


async def followers_fetch(world: ReplicationWorld, _: Invariants) -> None:
    world.log(3).append_as_follower = lambda *_: None  # type: ignore[method-assign]
    await world.produce(b"3", acks=1)


async def readers_fetch(_: ReplicationWorld, checker: Invariants) -> None:
    checker.stuck({"consumer-0": {TP: (1, 3)}, "consumer-1": {TP: (3, 3)}})


async def has_leader(world: ReplicationWorld, _: Invariants) -> None:
    world.states[TP].leader = -1
    world.states[TP].leader_epoch += 1


async def isr_is_full(world: ReplicationWorld, _: Invariants) -> None:
    world.cut(1, 3)
    await world.elect(1, isr=(1, 2))


async def produces_resolve(_: ReplicationWorld, checker: Invariants) -> None:
    checker.sent(TP, b"never answered")


async def nothing_unseen(_: ReplicationWorld, checker: Invariants) -> None:
    checker.consumed(TP, 0, b"0")


async def high_watermark_at_end(world: ReplicationWorld, _: Invariants) -> None:
    world.refuse_with = ErrorCode.NOT_CONTROLLER
    world.cut(1, 3)
    await world.produce(b"3", acks=1)


async def leadership_settles(world: ReplicationWorld, checker: Invariants) -> None:
    checker.healed()
    for _ in range(10):
        await world.elect(2)
        await world.until_equal(1, 2, 3)
        await world.elect(1)
        await world.until_equal(1, 2, 3)


async def set_high_watermark(world: ReplicationWorld, broker_id: int, offset: int) -> None:
    world.log(broker_id).high_watermark = offset


async def rewrite_last(
    world: ReplicationWorld, broker_id: int, epoch: int, value: bytes, at: int = 2
) -> None:
    """Replace the record at an offset by another one, within one turn of the loop."""
    log = world.log(broker_id)
    known = log.high_watermark
    log.truncate_to(at)
    data = bytearray(batch(value))
    data[:16] = stamp(at, epoch, len(data) - 12)
    log.append_as_follower(bytes(data))
    for offset in range(at + 1, 3):
        data[:16] = stamp(offset, epoch, len(data) - 12)
        log.append_as_follower(bytes(data))
    log.high_watermark = known


TAMPERED: list[tuple[str, Tamper]] = [
    ("I1 TypeOk", type_ok),
    ("I2 LeaderInIsr", leader_in_isr),
    ("I2 LeaderInIsr", isr_not_empty),
    ("I2 LeaderInIsr", leader_from_isr),
    ("I3 QuorumSuperset", quorum_superset),
    ("I4 LeaderCompleteness", leader_completeness),
    ("I4b CandidateCompleteness", candidate_completeness),
    ("I5 StrongIsr", strong_isr),
    ("I6 LogMatching", log_matching),
    ("I7 OneLeaderPerEpoch", one_leader_per_epoch),
    ("I8 EpochMonotone", epoch_monotone),
    ("I8 EpochMonotone", record_epochs_rise),
    ("I9 NoGlobalLoss", no_global_loss),
    ("I12 ConsistentRead", consistent_read),
    ("I13 Idempotence", producers_forgotten),
    ("I13 Idempotence", sequence_twice),
    ("I20 Disk", disk),
    ("I21 RecoveryPointIsFlushed", recovery_point),
    ("I22 TrueHighWatermark", high_watermark_of_a_follower),
    ("I22 TrueHighWatermark", high_watermark_after_a_start),
    ("I23 TrueBelief", belief),
    ("I24 MemberHosts", hosting),
    ("L1 EveryPartitionHasALeader", has_leader),
    ("L2 IsrIsLiveReplicas", isr_is_full),
    ("L3 EveryProduceResolves", produces_resolve),
    ("L4 NothingUnseen", nothing_unseen),
    ("L5 HighWatermarkReachesTheEnd", high_watermark_at_end),
    ("L6 NoLivelock", leadership_settles),
    ("L7 EveryFetchMakesProgress", followers_fetch),
    ("L7 EveryFetchMakesProgress", readers_fetch),
]


def test_a_calm_run_breaks_nothing_and_asks_all_the_rules_it_can() -> None:
    checker = run(calm(), seed=1, max_time=MAX_SECONDS)
    asked = {name.partition(" ")[0] for name in checker.findings.checks}
    assert asked >= {"I1", "I2", "I3", "I4", "I4b", "I5", "I6", "I7", "I8", "I9", "I12"}


@pytest.mark.parametrize(
    ("name", "tamper"), TAMPERED, ids=[tamper.__name__ for _, tamper in TAMPERED]
)
def test_what_is_broken_on_purpose_trips_its_own_invariant(name: str, tamper: Tamper) -> None:
    with pytest.raises(InvariantViolation) as caught:
        run(calm(tamper), seed=1, max_time=MAX_SECONDS)
    assert caught.value.name == name, str(caught.value)
    assert caught.value.at > 0 and caught.value.states and caught.value.events
    at = f"{caught.value.at:.3f} s"
    waited = "not known; it was waited for from", f"to {at}"
    assert caught.value.since.startswith((f"{at}, this very step", f"{at} or before", waited[0]))
    if name.startswith("L"):
        assert str(TP) in str(caught.value)
        assert caught.value.since.startswith(waited[0]) and caught.value.since.endswith(waited[1])


@pytest.mark.parametrize("leads", [False, True])
def test_a_damaged_log_need_not_know_its_producers_before_it_is_truncated(leads: bool) -> None:
    """A leader whose log is damaged is not truncated, and answers producers."""

    async def tamper(world: ReplicationWorld, _: Invariants) -> None:
        await send_in_sequence(world)
        broker = world.states[TP].leader if leads else 3
        world.incarnations[broker].manager.damaged.found_by_follower(TP, 1, "CRC")
        world.log(broker).producers.entries.clear()

    with pytest.raises(InvariantViolation, match="I13") if leads else nullcontext():
        run(calm(tamper), seed=1, max_time=MAX_SECONDS)


def test_a_broker_that_shuts_down_is_watched_to_its_end() -> None:
    """Until then it may lead, and move the high watermark."""

    async def story() -> None:
        cluster, checker = await started_cluster()
        await create_topic(cluster)
        leader = checker.state_of(TP).leader
        incarnation = cluster.incarnation(leader)
        stopping = asyncio.ensure_future(cluster.stop_broker(leader))
        await asyncio.sleep(0.001)
        assert leader not in cluster.running_brokers and incarnation in cluster.brokers()
        await stopping
        assert incarnation not in cluster.brokers()

    run(story(), seed=1, max_time=MAX_SECONDS)


def test_a_write_of_a_controller_that_was_replaced_trips_i10() -> None:
    async def story() -> None:
        cluster, checker = await started_cluster()
        await create_topic(cluster)
        session = await cluster.zookeeper.client("operator").connect(6000, 1000)
        path = znodes.state_path(TP)
        data, _ = await session.get(path)
        await session.set(znodes.CONTROLLER_EPOCH, b"7")
        await session.set(path, data)
        await checker.at_rest()

    with pytest.raises(InvariantViolation, match="I10 ControllerFencing"):
        run(story(), seed=1, max_time=MAX_SECONDS)


@pytest.mark.parametrize(
    ("bug", "name", "controller_epoch", "broker_epoch"),
    [("M6", "I10 ControllerFencing", 0, -1), ("M7", "I11 BrokerEpoch", 1_000, 1)],
)
@pytest.mark.parametrize("order", [UpdateMetadataRequest, StopReplicaRequest])
def test_an_order_that_should_be_refused_trips_i10_and_i11(
    bug: str, name: str, controller_epoch: int, broker_epoch: int, order: type
) -> None:
    async def story() -> None:
        cluster, _ = await started_cluster()
        await create_topic(cluster)
        network = cluster.client_runtime("another controller").network
        channel = network.connect(Address("broker-1", INTERNAL_PORT), Service.CONTROL)
        await channel.call(order(1, controller_epoch, broker_epoch), 5.0)
        await asyncio.sleep(1.0)

    run(story(), seed=1, max_time=MAX_SECONDS)  # refused
    with SEEDED_BUGS[bug].planted(), pytest.raises(InvariantViolation, match=name):
        run(story(), seed=1, max_time=MAX_SECONDS)
