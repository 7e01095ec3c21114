"""Known failures of transactions, each as the shortest schedule that shows it."""

from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import TRANSACTIONAL
from barnabas_common.record.transactional import marker_batch
from barnabas_simulator.invariants import Invariants

from tests.support.idempotent import sent
from tests.support.log_world import NOW
from tests.support.replication_world import TP, ReplicationWorld
from tests.support.watched_world import watched

PRODUCER_ID = 7
UNVERIFIED = {"transaction.partition.verification.enable": "false"}


async def _world() -> tuple[ReplicationWorld, Invariants]:
    """Broker 1 leads, and what it has after the first record reaches no follower."""
    world = ReplicationWorld(config=UNVERIFIED)
    await world.start(1, 2, 3)
    checker = watched(world)
    await world.create(1, 2, 3)
    assert (await world.produce(b"a")).error_code == ErrorCode.NONE
    await world.until_equal(1, 2, 3)
    world.cut(1, 2)
    world.cut(1, 3)
    return world, checker


async def _append(world: ReplicationWorld, batch: bytes, origin: AppendOrigin) -> None:
    """Append to the log of broker 1, and wait for no follower."""
    request = ProduceRequest(1, 5000, [ProducePartition(*TP, batch)], "copy")
    manager = world.incarnations[1].manager
    response = await world.on(1, manager.produces.produce(request, origin))
    assert response is not None and not response.partitions[0].error_code


async def _abort(world: ReplicationWorld) -> None:
    """A transaction of one record, with its marker."""
    record = sent(b"aborted", producer_id=PRODUCER_ID, attributes=TRANSACTIONAL)
    await _append(world, record, AppendOrigin.CLIENT)
    marker = marker_batch(PRODUCER_ID, 1, False, 0, NOW)
    await _append(world, marker, AppendOrigin.COORDINATOR)


async def unreplicated_records() -> None:
    """A leader has what no follower has: readers of committed records do not get it either."""
    world, checker = await _world()
    assert (await world.produce(b"nobody", acks=1)).error_code == ErrorCode.NONE
    await _heal(world)
    await checker.at_rest()


async def truncated_marker() -> None:
    """A deposed leader truncates an aborted transaction, with its entry in the index."""
    world, checker = await _world()
    await _abort(world)
    await world.elect(2, isr=(2, 3))
    await _heal(world)
    assert (await world.produce(b"b")).error_code == ErrorCode.NONE
    await world.until_equal(1, 2, 3)
    await checker.at_rest()


async def _heal(world: ReplicationWorld) -> None:
    world.heal(1, 2)
    world.heal(1, 3)
