"""The whole order of a controller's failover, as `docs/guide/controller.md` describes it.

The cluster has one of everything that a dead controller may leave. The new controller's reads,
writes and requests are recorded in their order.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from barnabas_common.messages.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.active_controller import ActiveController
from barnabas_controller.channels.controller_channel_manager import ControllerChannelManager
from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.reassignment.reassignment_znode import encode_reassignments
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import Broker, Endpoint, ReplicaAssignment, TopicZnode
from barnabas_controller.zookeeper.session import Create, Delete, Operation, SetData, Watch

from tests.support.control_world import ControlWorld, run_world

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "controller.md"


class Seen(NamedTuple):
    """One thing that the new controller did: `what` it did, to which `path` or request."""

    what: str
    path: str = ""
    data: Any = None


class Recording:
    """A session that records its requests."""

    def __init__(self, session: Any, trace: list[Seen]) -> None:
        self._session = session
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def get(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("get", path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("exists", path, watch)

    async def children(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("children", path, watch)

    async def _read(self, operation: str, path: str, watch: Watch | None) -> Any:
        self._trace.append(Seen("read" if watch is None else "read and watch", path))
        return await getattr(self._session, operation)(path, watch)

    async def multi(self, operations: list[Operation]) -> Any:
        for operation in operations:
            if isinstance(operation, Create | SetData):
                self._trace.append(Seen("write", operation.path, operation.data))
            elif isinstance(operation, Delete):
                self._trace.append(Seen("delete", operation.path))
        return await self._session.multi(operations)


# ---- the cluster before the failover: brokers 1 to 3 run, broker 4 does not

ASSIGNED = {
    "led": ReplicaAssignment((1, 2)),
    "follower-gone": ReplicaAssignment((1, 4)),
    "leader-gone": ReplicaAssignment((4, 2)),
    "never-led": ReplicaAssignment((2,)),
    "lost-records": ReplicaAssignment((3, 2)),
    "moving": ReplicaAssignment((2, 1), adding=(2,), removing=(1,)),
    "to-be-moved": ReplicaAssignment((1,)),
    "doomed": ReplicaAssignment((1, 2)),
    "preferred": ReplicaAssignment((2, 1)),
}
STATES = {
    "led": LeaderAndIsr(1, 0, (1, 2), 1),
    "follower-gone": LeaderAndIsr(1, 0, (1, 4), 1),
    "leader-gone": LeaderAndIsr(4, 0, (4, 2), 1),
    # Broker 3 proved in its first incarnation what it has, and has registered again since.
    "lost-records": LeaderAndIsr(3, 0, (3, 2), 1, proved_at={3: 1}),
    "moving": LeaderAndIsr(1, 0, (1,), 1),
    "to-be-moved": LeaderAndIsr(1, 0, (1,), 1),
    "doomed": LeaderAndIsr(1, 0, (1, 2), 1),
    "preferred": LeaderAndIsr(1, 0, (1, 2), 1),
}
ISR_NOTIFICATION = f"{znodes.ISR_CHANGES}/isr_change_0000000001"
LOG_DIR_NOTIFICATION = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000001"


def state_of(topic: str) -> str:
    return znodes.state_path(TopicPartition(topic, 0))


async def prepare(world: ControlWorld) -> None:
    store = world.store
    for broker_id in (1, 2, 3):
        broker = Broker(broker_id, (Endpoint("PLAINTEXT", f"host{broker_id}", 1),))
        await store.session.create(
            znodes.broker_path(broker_id), znodes.encode_broker(broker, 0), ephemeral=True
        )
    for topic, assignment in ASSIGNED.items():
        node = TopicZnode(f"id-of-{topic}", {0: assignment})
        await store.ensure(znodes.topic_path(topic), znodes.encode_topic(node))
    for topic, state in STATES.items():
        await store.ensure(state_of(topic), znodes.encode_state(state))
    await store.ensure(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(4))
    await store.ensure(ISR_NOTIFICATION, b"{}")
    await store.ensure(LOG_DIR_NOTIFICATION, b"{}")
    await store.ensure(znodes.delete_topic_path("doomed"))
    wanted = encode_reassignments({TopicPartition("to-be-moved", 0): (2,)})
    await store.ensure(znodes.REASSIGN_PARTITIONS, wanted)
    election = b'{"version":1,"partitions":[{"topic":"preferred","partition":0}]}'
    await store.ensure(znodes.PREFERRED_REPLICA_ELECTION, election)


# ---- the steps

Step = tuple[str, list[Callable[[Seen], bool]]]
"""A step's name in the guide, and its actions, which all follow those of the step before."""


def reads(path: str, watches: bool = True) -> Callable[[Seen], bool]:
    what = "read and watch" if watches else "read"
    return lambda seen: (seen.what, seen.path) == (what, path)


def deletes(path: str) -> Callable[[Seen], bool]:
    return lambda seen: (seen.what, seen.path) == ("delete", path)


def writes(path: str, text: bytes = b"") -> Callable[[Seen], bool]:
    return lambda seen: (seen.what, seen.path) == ("write", path) and text in seen.data


def sends(kind: type, condition: Callable[[Any], bool]) -> Callable[[Seen], bool]:
    return lambda seen: seen.what == "send" and isinstance(seen.data, kind) and condition(seen.data)


def names(topic: str) -> Callable[[Any], bool]:
    return lambda request: any(p.topic == topic for p in request.partitions)


def as_read(request: UpdateMetadataRequest) -> bool:
    """Whether it has the states before any of them is changed."""
    isrs = {p.topic: p.in_sync_replicas for p in request.partitions}
    return isrs.get("lost-records") == [3, 2]


STEPS: list[Step] = [
    (
        "the epoch is raised",
        [writes(znodes.CONTROLLER), writes(znodes.CONTROLLER_EPOCH, b"5")],
    ),
    (
        "notifications are watched, the old ones deleted",
        [
            reads(znodes.ISR_CHANGES),
            deletes(ISR_NOTIFICATION),
            reads(znodes.LOG_DIR_EVENTS),
            deletes(LOG_DIR_NOTIFICATION),
        ],
    ),
    (
        "brokers are watched and read",
        [reads(znodes.BROKER_IDS), reads(znodes.broker_path(1))],
    ),
    (
        "topics are watched and read",
        [reads(znodes.TOPICS), reads(znodes.topic_path("led"))],
    ),
    ("states are read", [reads(state_of("led"), watches=False)]),
    ("deletion requests are watched and read", [reads(znodes.DELETE_TOPICS)]),
    (
        "all brokers receive the list of those that are alive, and the states that were read",
        [sends(UpdateMetadataRequest, as_read)],
    ),
    ("brokers that lost records leave the ISRs", [writes(state_of("lost-records"), b'"isr":[2]')]),
    (
        "the replica state machine starts",
        [
            sends(LeaderAndIsrRequest, names("led")),
            writes(state_of("follower-gone"), b'"isr":[1]'),
        ],
    ),
    (
        "the partition state machine starts",
        [
            writes(state_of("never-led"), b'"leader":2'),
            writes(state_of("leader-gone"), b'"leader":2'),
        ],
    ),
    (
        "reassignments asked for by the znode are started",
        [reads(znodes.REASSIGN_PARTITIONS), writes(znodes.topic_path("to-be-moved"), b'"0":[2,1]')],
    ),
    ("reassignments under way are resumed", [writes(state_of("moving"), b'"leader_epoch":1')]),
    (
        "deletions are resumed",
        [sends(StopReplicaRequest, lambda request: request.partitions[0].delete_partition)],
    ),
    (
        "preferred leaders asked for by the znode are elected",
        [
            reads(znodes.PREFERRED_REPLICA_ELECTION),
            writes(state_of("preferred"), b'"leader":2'),
            deletes(znodes.PREFERRED_REPLICA_ELECTION),
        ],
    ),
    ("the rebalance task starts", [lambda seen: seen.what == "timers"]),
]


def test_each_step_of_a_failover_comes_after_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace: list[Seen] = []
    send, start_timers = ControllerChannelManager.send, ActiveController.start_timers

    def noted_send(channels: ControllerChannelManager, broker_id: int, request: Any) -> None:
        trace.append(Seen("send", data=request))
        send(channels, broker_id, request)

    def noted_start(active: ActiveController) -> None:
        trace.append(Seen("timers"))
        start_timers(active)

    monkeypatch.setattr(ControllerChannelManager, "send", noted_send)
    monkeypatch.setattr(ActiveController, "start_timers", noted_start)

    async def test(world: ControlWorld) -> None:
        await prepare(world)
        session = Recording(await world.zookeeper.client("new").connect(6000, 1000), trace)
        controller = Controller(ControllerSetup(world.runtime("new"), session, 7, world.config))
        await controller.start()
        await world.until(lambda: Seen("timers") in trace)
        await controller.stop()

    run_world(test)
    done_until = -1
    for name, evidence in STEPS:
        found = [first(trace, proves, name) for proves in evidence]
        assert min(found) > done_until, f"{name}: too early"
        done_until = max(found)


def first(trace: list[Seen], proves: Callable[[Seen], bool], name: str) -> int:
    index = next((index for index, seen in enumerate(trace) if proves(seen)), None)
    assert index is not None, f"{name}: not done"
    return index


def test_the_guide_has_these_steps_in_this_order() -> None:
    rows = [line.split("|") for line in GUIDE.read_text().splitlines() if line.startswith("|")]
    named = [row[2].strip() for row in rows if row[1].strip().isdigit()]
    assert named == [name for name, _ in STEPS]
