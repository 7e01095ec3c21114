"""A leader's link to the controller is cut, while both reach ZooKeeper.

The leader removes a late member from the ISR by its own conditional write. Otherwise it could
commit nothing for as long as the cut lasts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import pytest
from barnabas import Admin, Producer
from barnabas.explain import About
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_common.events import Event, EventKind
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import Operation, OperationResult
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.raw import batch
from tests.support.whole_cluster import TP, read_back

LAG_SECONDS = 5.0
# A member leaves after 1 to 1.5 times the lag time; then the controller is given 5 s.
SERVED_AGAIN_SECONDS = 1.5 * LAG_SECONDS + 5.0 + 3.0
WRITTEN = "written to ZooKeeper by the leader"
MAX_SECONDS = 900.0


class Cast(NamedTuple):
    """The brokers by their roles; `leader`, `controller` and `other` have the replicas."""

    leader: int
    controller: int
    other: int
    spare: int


class Scene:
    """Four brokers, a topic with three replicas, and a producer that writes all the time."""

    def __init__(self, seed: int, config: dict[str, str] | None = None) -> None:
        self.cluster = SimulatedCluster(
            seed, 4, {"replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)), **(config or {})}
        )
        self.history = History()
        self.acked_at: list[float] = []
        self.cast = Cast(-1, -1, -1, -1)
        self._number = 0

    async def start(self, controller_follows: bool = True, min_in_sync: int = 2) -> None:
        cluster = self.cluster
        Invariants(cluster).install()
        await cluster.start()
        controller = self.controller()
        leader, other, spare = (b for b in cluster.broker_ids if b != controller)
        self.cast = Cast(leader, controller, other, spare)
        replicas = [leader, controller if controller_follows else spare, other]
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(
                TP.topic,
                assignments={0: replicas},
                configs={"min.insync.replicas": str(min_in_sync)},
            )
        await self.acknowledged(20)

    def controller(self) -> int:
        (found,) = [
            b.broker_id
            for b in self.cluster.brokers().values()
            if b.membership.controller is not None and b.membership.controller.is_active
        ]
        return found

    async def acknowledged(self, count: int, patience: float = 60.0) -> None:
        """Send records one after the other with acks=all."""
        runtime = self.cluster.client_runtime("producer")
        async with (
            asyncio.timeout(patience),
            Producer(self.cluster.bootstrap, runtime=runtime) as producer,
        ):
            for _ in range(count):
                value = b"%d" % self._number
                self._number += 1
                self.history.sent.append(value)
                metadata = await producer.send_and_wait(TP.topic, value, partition=0)
                self.history.acked[value] = metadata.offset

    def leadership(self, broker_id: int) -> Leadership:
        partition = self.cluster.broker(broker_id).replica_manager.partitions.get(TP)
        assert partition is not None and partition.leadership is not None
        return partition.leadership

    def store(self, broker_id: int) -> Store:
        store = self.cluster.broker(broker_id).membership.store
        assert store is not None
        return store

    async def state(self) -> LeaderAndIsr:
        state = await self.store(self.cast.other).state(TP)
        assert state is not None
        return state

    def cut(self, pairs: list[tuple[int, int]]) -> None:
        for sender, receiver in pairs:
            self.cluster.cut(sender, receiver)

    def heal(self, pairs: list[tuple[int, int]]) -> None:
        for sender, receiver in pairs:
            self.cluster.heal(sender, receiver)

    def events(self, kind: EventKind, broker_id: int) -> list[Event]:
        return [e for e in self.cluster.events() if (e.kind, e.broker_id) == (kind, broker_id)]

    def written_by(self, broker_id: int) -> list[Event]:
        return [e for e in self.events(EventKind.ISR_CHANGED, broker_id) if WRITTEN in e.cause]

    async def until(self, holds: Callable[[], bool], within: float = 60.0) -> None:
        async with asyncio.timeout(within):
            while not holds():
                await asyncio.sleep(0.1)

    async def nothing_is_lost(self) -> None:
        judge({TP: self.history}, {TP: await read_back(self.cluster)}).assert_good()


def play(story: Callable[[Scene], Awaitable[None]], seed: int = 0, **config: str) -> None:
    scene = Scene(seed, {key.replace("_", "."): value for key, value in config.items()})

    async def whole() -> None:
        await story(scene)

    run(whole(), seed=seed, max_time=MAX_SECONDS)


def ways(cast: Cast, way: str) -> list[tuple[int, int]]:
    there, back = (cast.leader, cast.controller), (cast.controller, cast.leader)
    return {"both": [there, back], "there": [there], "back": [back]}[way]


async def it_is_explained(scene: Scene) -> None:
    """Assert that `explain` names both cuts: leader to controller, and follower to leader."""
    cluster, cast = scene.cluster, scene.cast
    # The follower notices when its request times out (replica.socket.timeout.ms).
    failed = EventKind.FETCH_FAILED
    await scene.until(
        lambda: any(e.topic_partition is None for e in scene.events(failed, cast.controller))
    )
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("asker")) as admin:
        sentences = (await admin.explain(TP.topic, 0)).of(About.ISR)
    text = "\n".join(sentences)
    assert f"broker {cast.leader}, the leader, could not reach the controller" in text
    assert WRITTEN in text
    assert f"broker {cast.controller} could not fetch from broker {cast.leader}" in text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("way", ["both", "there", "back"])
def test_writes_go_on_when_the_controller_follows_and_is_cut_off(way: str, seed: int) -> None:
    async def story(scene: Scene) -> None:
        await scene.start()
        cast = scene.cast
        scene.cut(ways(cast, way))
        await scene.acknowledged(1, SERVED_AGAIN_SECONDS)
        await scene.acknowledged(20, 5.0)
        state = await scene.state()
        assert state.leader == cast.leader and set(state.isr) == {cast.leader, cast.other}
        if way == "both":
            (event,) = scene.written_by(cast.leader)
            assert f"broker-{cast.controller}" in event.cause and "cannot be reached" in event.cause
            await it_is_explained(scene)
        accepted = EventKind.ISR_CHANGE_ACCEPTED
        await scene.until(lambda: bool(scene.events(accepted, cast.controller)))
        scene.heal(ways(cast, way))
        await scene.until(lambda: cast.controller in scene.leadership(cast.leader).isr.committed)
        await scene.acknowledged(20)
        scene.cluster.kill(cast.leader)
        await scene.acknowledged(20)
        await scene.nothing_is_lost()
        assert len(await read_back(scene.cluster)) <= len(scene.history.sent) + 10

    play(story, seed)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_leaders_own_write_keeps_the_proofs_of_the_members(enabled: bool) -> None:
    """As a write of the controller does; it drops them where the cluster does without them."""

    async def story(scene: Scene) -> None:
        await scene.start()
        cast = scene.cast
        proved = (await scene.state()).proved_at
        scene.cut(ways(cast, "both"))
        await scene.acknowledged(1, SERVED_AGAIN_SECONDS)
        state = await scene.state()
        assert scene.written_by(cast.leader)
        kept = {cast.leader: proved[cast.leader], cast.other: proved[cast.other]} if enabled else {}
        assert state.proved_at == kept

    play(story, eligible_leader_replicas_enable=str(enabled).lower())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dies", [True, False])
def test_writes_go_on_when_another_follower_is_late_or_dead(dies: bool, seed: int) -> None:
    """The controller removes the dead one in a new leader epoch, but cannot notify the leader."""

    async def story(scene: Scene) -> None:
        await scene.start(controller_follows=False)
        cast = scene.cast
        scene.cut(ways(cast, "both"))
        if dies:
            scene.cluster.kill(cast.spare)
        else:
            scene.cut([(cast.leader, cast.spare), (cast.spare, cast.leader)])
        await scene.acknowledged(1, SERVED_AGAIN_SECONDS + LAG_SECONDS)
        await scene.acknowledged(20, 10.0)
        state = await scene.state()
        assert state.leader == cast.leader and set(state.isr) == {cast.leader, cast.other}
        scene.heal(ways(cast, "both"))
        if dies:
            scene.cluster.start_broker(cast.spare)
            await scene.cluster.serving()
        else:
            scene.heal([(cast.leader, cast.spare), (cast.spare, cast.leader)])
        await scene.until(lambda: cast.spare in scene.leadership(cast.leader).isr.committed)
        scene.cluster.kill(cast.leader)
        await scene.acknowledged(20)
        await scene.nothing_is_lost()

    play(story, seed)


@pytest.mark.parametrize("seed", range(3))
def test_an_addition_in_flight_keeps_no_late_member_in(seed: int) -> None:
    """The controller may have committed the addition or not; the leader's write decides."""

    async def story(scene: Scene) -> None:
        await scene.start(min_in_sync=1)
        cast = scene.cast
        to_other = [(cast.leader, cast.other), (cast.other, cast.leader)]
        scene.cut(to_other)
        await scene.acknowledged(20)
        assert cast.other not in (await scene.state()).isr
        scene.cut(ways(cast, "both"))
        scene.heal(to_other)
        await scene.until(lambda: scene.leadership(cast.leader).isr.in_flight)
        assert cast.other in scene.leadership(cast.leader).isr.maximal
        await scene.acknowledged(1, SERVED_AGAIN_SECONDS)
        await scene.acknowledged(20, 5.0)
        assert (await scene.state()).isr == (cast.leader,)
        scene.heal(ways(cast, "both"))
        await scene.until(lambda: len(scene.leadership(cast.leader).isr.committed) == 3)
        scene.cluster.kill(cast.leader)
        await scene.acknowledged(20)
        await scene.nothing_is_lost()

    play(story, seed)


def test_a_leader_that_hears_no_one_waits() -> None:
    """It is probably the broker that is cut off, and silence costs it no leadership."""

    async def story(scene: Scene) -> None:
        await scene.start(min_in_sync=1)
        cast = scene.cast
        everybody = [
            pair
            for broker in (cast.controller, cast.other, cast.spare)
            for pair in ((cast.leader, broker), (broker, cast.leader))
        ]
        scene.cut(everybody)
        with pytest.raises(TimeoutError):
            await scene.acknowledged(1, 60.0)
        state = await scene.state()
        assert (state.leader, len(state.isr)) == (cast.leader, 3)
        assert scene.written_by(cast.leader) == []
        scene.heal(everybody)
        await scene.acknowledged(20)
        await scene.nothing_is_lost()

    play(story)


async def elect_another(scene: Scene) -> None:
    """Elect another leader as a controller does; the old one does not get its LeaderAndIsr."""
    cast, store = scene.cast, scene.store(scene.cast.other)
    state = await scene.state()
    elected = state.with_leader(cast.other, [cast.other, cast.controller])
    await store.put(znodes.state_path(TP), znodes.encode_state(elected))
    await store.propagate_isr_change([TP])


def cut_off_from_both(scene: Scene) -> None:
    leader = scene.cast.leader
    for broker in (scene.cast.controller, scene.cast.other):
        scene.cut([(leader, broker), (broker, leader)])


async def it_acknowledges_nothing(scene: Scene, old: Leadership, before: int) -> None:
    cast = scene.cast
    await asyncio.sleep(30)
    assert old.log.high_watermark == before
    assert set(old.isr.maximal) == {cast.leader, cast.controller, cast.other}
    assert scene.written_by(cast.leader) == []
    assert (await scene.state()).leader == cast.other


def refusals(scene: Scene) -> list[str]:
    return [e.cause for e in scene.events(EventKind.ISR_CHANGE_REFUSED, scene.cast.leader)]


@pytest.mark.parametrize("seed", range(3))
def test_a_deposed_leader_writes_nothing_and_acknowledges_nothing(seed: int) -> None:
    """Another leader was elected while this one could not be notified."""

    async def story(scene: Scene) -> None:
        await scene.start()
        cut_off_from_both(scene)
        await elect_another(scene)
        old = scene.leadership(scene.cast.leader)
        before = old.log.high_watermark
        old.append(batch(b"not acknowledged"), -1, 0)
        await scene.until(lambda: bool(refusals(scene)))
        assert "FENCED_LEADER_EPOCH" in refusals(scene)[-1]
        await it_acknowledges_nothing(scene, old, before)

    play(story, seed)


@pytest.mark.parametrize("seed", range(3))
def test_an_election_at_the_moment_of_the_write_wins(seed: int) -> None:
    """The election happens after the leader has read the state and before its write arrives."""

    async def story(scene: Scene) -> None:
        await scene.start()
        cast = scene.cast
        scene.cut(ways(cast, "both"))
        session = scene.store(cast.leader).session
        multi = session.multi

        async def late(operations: Sequence[Operation]) -> list[OperationResult]:
            scene.cut([(cast.leader, cast.other), (cast.other, cast.leader)])
            if (await scene.state()).leader == cast.leader:
                await elect_another(scene)
            return await multi(operations)

        session.multi = late  # type: ignore[method-assign]
        old = scene.leadership(cast.leader)
        before = old.log.high_watermark
        old.append(batch(b"not acknowledged"), -1, 0)
        await scene.until(lambda: bool(refusals(scene)))
        assert "BadVersion" in refusals(scene)[0]
        await it_acknowledges_nothing(scene, old, before)

    play(story, seed)
