"""A `ReplicationWorld` under the invariants; a table stands for its controller."""

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants import FaultBudget, Invariants
from barnabas_simulator.invariants.view import NO_CONTROLLER, Running, StateChange

from tests.support.replication_world import ReplicationWorld


class WorldView:
    """The checker's view of the world, whose table stands for ZooKeeper."""

    def __init__(self, world: ReplicationWorld) -> None:
        self._world = world
        self._known: dict[TopicPartition, LeaderAndIsr] = {}

    @property
    def disks(self) -> dict[int, MemoryDisk]:
        return self._world.disks

    @property
    def zxid(self) -> int:
        return 0  # these worlds have no ZooKeeper

    @property
    def most_skew_ms(self) -> int:
        return 0

    def running(self) -> list[Running]:
        return [
            Running(
                broker_id,
                incarnation.name,
                incarnation.manager.partitions,
                int(incarnation.name.rpartition("/")[2]),
                damaged=incarnation.manager.damaged,
            )
            for broker_id, incarnation in self._world.incarnations.items()
        ]

    def is_to_be_deleted(self, _topic: str) -> bool:
        return False

    def lost_nothing_since(self, _broker_id: int) -> int:
        return -1  # it has no registrations

    def states(self) -> list[StateChange]:
        raise NotImplementedError("there is no ZooKeeper to be restored")

    def changes(self) -> list[StateChange]:
        changes = []
        for key, state in self._world.states.items():
            now = LeaderAndIsr(
                state.leader, state.leader_epoch, state.isr, 0, state.partition_epoch
            )
            if self._known.get(key) != now:
                self._known[key] = now
                changes.append(StateChange(key, now, state.replicas, NO_CONTROLLER))
        return changes


def watched(world: ReplicationWorld, budget: FaultBudget | None = None) -> Invariants:
    """Install and return the checker of a world."""
    checker = Invariants(WorldView(world), budget)
    checker.install()
    return checker
