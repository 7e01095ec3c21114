"""All members of the ISR are gone permanently, and there is an eligible replica.

Seed 810056 of a campaign found the case: the last leader of a partition was paused forever after it
had proposed an ISR of itself alone. The others had every acknowledged record, and none ever led.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import pytest
from barnabas.explain import About
from barnabas_common.events import EventKind
from barnabas_controller.store import znodes
from barnabas_controller.store.config_store import BROKER_DEFAULT, topic_entity
from barnabas_controller.store.leader_and_isr import NO_LEADER
from barnabas_simulator.loop import run

from tests.support.config_world import log_of, store_of, write_overrides
from tests.support.scene import TP, Scene
from tests.support.whole_cluster import read_back, send

SESSION, WAIT = 6.0, 20.0
CONFIG = {
    "zookeeper.session.timeout.ms": str(int(SESSION * 1000)),
    "eligible.leader.replicas.wait.ms": str(int(WAIT * 1000)),
}
MIN_2 = {"min.insync.replicas": "2"}
ACKNOWLEDGED = [b"all-%d" % number for number in range(20)]


class Stage(Scene):
    """The leader is alone in the ISR; both followers left it with every committed record."""

    def __init__(self, config: Mapping[str, str], topic_config: Mapping[str, str]) -> None:
        super().__init__({**CONFIG, **config}, {})
        self._topic_config = dict(topic_config)

    async def leave_leader_alone(self) -> None:
        await send(self.cluster, TP, ACKNOWLEDGED)
        self.isolate_leader()
        await send(self.cluster, TP, [b"behind"], acks=1)
        await self.until_isr(self.leader)
        assert set(self.state().eligible) == {self.follower, self.second}

    def is_registered(self, broker_id: int) -> bool:
        return self.cluster.zookeeper.tree.find(znodes.broker_path(broker_id)) is not None

    async def until_session_ended(self) -> float:
        """Wait until the registration of the last member vanishes; returns that time."""
        await self.until(lambda: not self.is_registered(self.leader))
        return self.now()

    async def until_replaced(self) -> int:
        await self.until(lambda: self.state().leader not in (self.leader, NO_LEADER))
        return self.state().leader

    async def assert_nobody_leads(self, seconds: float) -> None:
        """Assert for `seconds` that no other replica leads, and that the ISR stays."""
        end = self.now() + seconds
        while self.now() < end:
            await asyncio.sleep(0.1)
            assert self.state().leader in (self.leader, NO_LEADER)
            assert self.state().isr == (self.leader,)

    async def assert_kept(self, values: Iterable[bytes]) -> None:
        """Assert that everything acknowledged can be read once all replicas are in sync again."""
        self.rejoin_leader()
        await self.until_isr(self.leader, self.follower, self.second)
        assert set(values) <= {value for _, value in await read_back(self.cluster)}

    async def until_minimum(self, size: int) -> None:
        """Wait until the leader has read the minimum."""
        log = log_of(self.cluster, self.leader, TP)
        await self.until(lambda: log.config.min_insync_replicas == size)

    def now(self) -> float:
        return asyncio.get_running_loop().time()


Story = Callable[[Stage], Coroutine[Any, Any, None]]


def play(story: Story, config: Mapping[str, str] = MIN_2, topic: Mapping[str, str] = MIN_2) -> None:
    async def whole() -> None:
        async with Stage(config, topic) as stage:
            await stage.leave_leader_alone()
            await story(stage)

    run(whole(), seed=1, max_time=900.0)


@pytest.mark.parametrize("is_paused", [False, True], ids=["killed", "paused"])
def test_an_eligible_replica_leads_once_the_wait_is_over(is_paused: bool) -> None:
    async def story(stage: Stage) -> None:
        if is_paused:
            stage.cluster.pause(stage.leader)
        else:
            stage.cluster.kill(stage.leader)
        ended = await stage.until_session_ended()
        await stage.assert_nobody_leads(WAIT - 0.5)
        assert await stage.until_replaced() in (stage.follower, stage.second)
        assert WAIT <= stage.now() - ended < WAIT + 1.0
        later = [b"later-%d" % number for number in range(5)]
        await send(stage.cluster, TP, later)
        if is_paused:
            stage.cluster.resume(stage.leader)
        else:
            stage.cluster.start_broker(stage.leader)
        await stage.assert_kept([*ACKNOWLEDGED, *later])

    play(story)


def test_a_last_member_whose_log_is_lost_is_replaced_when_the_others_are_back() -> None:
    """While they were away it was elected, because no better candidate was there, and refused."""

    async def story(stage: Stage) -> None:
        cluster, others = stage.cluster, (stage.follower, stage.second)
        await asyncio.sleep(6.0)  # a checkpoint names the log
        for broker_id in (*others, stage.leader):
            cluster.kill(broker_id)
        disk = cluster.disks[stage.leader]
        disk.remove_tree(f"/data/{TP}")
        disk.sync_directory("/data")
        await stage.until(lambda: not any(map(stage.is_registered, others)))
        stage.rejoin_leader()
        cluster.start_broker(stage.leader)
        await asyncio.sleep(WAIT + 2 * SESSION)
        for broker_id in others:
            cluster.start_broker(broker_id)
        assert await stage.until_replaced() in others
        await send(cluster, TP, [b"later"])
        await stage.until_isr(stage.leader, *others)
        kept = {value for _, value in await read_back(cluster)}
        assert {*ACKNOWLEDGED, b"later"} <= kept

    play(story)


def test_a_suspicion_is_not_the_end_of_a_session() -> None:
    """The process is dead, and its session lasts for longer than the wait."""

    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.leader)
        await stage.assert_nobody_leads(60.0)
        assert stage.is_registered(stage.leader)
        ended = await stage.until_session_ended()
        await stage.until_replaced()
        assert stage.now() - ended >= 1.0

    slow = {
        "zookeeper.session.timeout.ms": "70000",
        "eligible.leader.replicas.wait.ms": "1000",
    }
    play(story, slow)


def test_who_is_back_within_the_wait_leads_with_all_it_had() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(WAIT / 2)
        stage.cluster.start_broker(stage.leader)
        await stage.until(lambda: stage.state().leader == stage.leader)
        await stage.assert_nobody_leads(WAIT)
        await stage.assert_kept([*ACKNOWLEDGED, b"behind"])

    play(story)


@pytest.mark.parametrize("seconds_back", [0.0, WAIT], ids=["at once", "later"])
def test_a_second_absence_begins_a_wait_of_its_own(seconds_back: float) -> None:
    """Also if the first wait has ended in between."""

    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await asyncio.sleep(WAIT - 8.0)
        stage.cluster.start_broker(stage.leader)
        await stage.until(lambda: stage.state().leader == stage.leader)
        await asyncio.sleep(seconds_back)
        stage.cluster.kill(stage.leader)
        ended = await stage.until_session_ended()
        await stage.until_replaced()
        assert stage.now() - ended >= WAIT

    play(story)


def test_one_that_came_back_after_the_wait_is_waited_for_again() -> None:
    """Nobody could take its place while it was away: the others were down too."""

    async def story(stage: Stage) -> None:
        others = (stage.follower, stage.second)
        for broker_id in (*others, stage.leader):
            stage.cluster.kill(broker_id)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(WAIT + 1.0)
        stage.cluster.start_broker(stage.leader)
        await stage.until(lambda: stage.state().leader == stage.leader)
        for broker_id in others:
            stage.cluster.start_broker(broker_id)
        await stage.cluster.serving()
        assert set(stage.state().eligible) == set(others)
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(WAIT - 0.5)
        assert await stage.until_replaced() in others

    play(story)


def test_each_wait_for_a_better_leader_is_as_long_as_the_first() -> None:
    """Twice the last member loses power, and returns while the eligible replicas are down."""

    async def story(stage: Stage) -> None:
        others = (stage.follower, stage.second)
        for _ in range(2):
            for broker_id in others:
                stage.cluster.kill(broker_id)
            stage.cluster.kill(stage.leader, keep_unflushed=False)
            await stage.until(lambda: stage.state().leader == NO_LEADER)
            stage.cluster.start_broker(stage.leader)
            await stage.cluster.serving()
            returned = stage.now()
            await stage.until(lambda: stage.state().leader == stage.leader)
            assert WAIT - 0.5 < stage.now() - returned < WAIT + 1.0
            for broker_id in others:
                stage.cluster.start_broker(broker_id)
            stage.rejoin_leader()
            await stage.until_isr(stage.leader, *others)
            await stage.leave_leader_alone()

    play(story, {"last.replica.fsync.enable": "false"})


def test_no_one_leads_who_lost_something() -> None:
    """Of two eligible replicas the one that lost nothing leads; without one the partition waits."""

    async def story(stage: Stage) -> None:
        for broker_id in (stage.follower, stage.second):
            stage.cluster.kill(broker_id, keep_unflushed=False)
            stage.cluster.start_broker(broker_id)
        await stage.cluster.serving()
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(3 * WAIT)
        stage.cluster.start_broker(stage.leader)
        await stage.assert_kept(ACKNOWLEDGED)

    play(story)


def test_the_sound_one_of_two_leads() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.follower, keep_unflushed=False)
        stage.cluster.start_broker(stage.follower)
        await stage.cluster.serving()
        stage.cluster.kill(stage.leader)
        assert await stage.until_replaced() == stage.second
        stage.cluster.start_broker(stage.leader)
        await stage.assert_kept(ACKNOWLEDGED)

    play(story)


@pytest.mark.parametrize(
    ("entity", "topic"),
    [(topic_entity(TP.topic), MIN_2), (BROKER_DEFAULT, {})],
    ids=["of the topic", "of all brokers"],
)
def test_what_was_committed_under_a_lowered_minimum_is_not_given_up(
    entity: str, topic: dict[str, str]
) -> None:
    """Lowered to 1, raised again: the last member committed records that no other replica has."""

    async def story(stage: Stage) -> None:
        store = await store_of(stage.cluster)
        alone = [b"alone-%d" % number for number in range(5)]
        await write_overrides(store, entity, {"min.insync.replicas": "1"})
        await stage.until_minimum(1)
        await send(stage.cluster, TP, alone)
        await write_overrides(store, entity, {"min.insync.replicas": "2"})
        await stage.until_minimum(2)
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(3 * WAIT)
        stage.cluster.start_broker(stage.leader)
        await stage.assert_kept([*ACKNOWLEDGED, *alone])

    play(story, MIN_2, topic)


def test_a_new_controller_begins_the_wait_again() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.assert_nobody_leads(WAIT - 2.0)
        first = stage.controller
        stage.cluster.kill(first)
        began = stage.now()
        await stage.until(lambda: stage.controller_now() != first)
        await stage.until_replaced()
        assert WAIT <= stage.now() - began < WAIT + SESSION + 2.0
        for broker_id in (first, stage.leader):
            stage.cluster.start_broker(broker_id)
        await stage.assert_kept(ACKNOWLEDGED)

    play(story)


def test_explain_names_who_is_awaited_and_who_leads_afterwards() -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.kill(stage.leader)
        await stage.until_session_ended()
        await stage.until(lambda: stage.state().leader == NO_LEADER)
        told = [s.text for s in (await stage.explain()).sentences if s.about is About.LEADER]
        refusal = (
            f"no member of the ISR [{stage.leader}] is registered; broker {stage.follower}, which"
            " left the ISR with every committed record, leads if none of them registers again"
            " within eligible.leader.replicas.wait.ms"
        )
        assert any(refusal in text for text in told)
        assert not any("only members of the ISR" in text for text in told)
        await stage.until_replaced()
        told = [s.text for s in (await stage.explain()).sentences if s.about is About.LEADER]
        assert any(f"broker {stage.leader} did not register again within 20 s" in t for t in told)
        elected = [
            event for event in stage.cluster.events() if event.kind is EventKind.LEADER_ELECTED
        ]
        assert not elected[-1].details["unclean"]

    play(story)


def test_without_eligible_replicas_no_one_leads_as_in_kafka() -> None:
    async def whole() -> None:
        async with Stage({"eligible.leader.replicas.enable": "false"}, MIN_2) as stage:
            await send(stage.cluster, TP, ACKNOWLEDGED)
            stage.isolate_leader()
            await send(stage.cluster, TP, [b"behind"], acks=1)
            await stage.until_isr(stage.leader)
            stage.cluster.kill(stage.leader)
            await stage.until_session_ended()
            await stage.assert_nobody_leads(3 * WAIT)

    run(whole(), seed=1, max_time=900.0)
