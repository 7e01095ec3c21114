"""`explain` names what was done to a cluster, and does not name it where it was not done.

Each scenario runs twice, with the fault and without it. The explanation must name the fault in
answer to the right question, and must not name it in the other run.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from barnabas.admin import ConfigResource
from barnabas.explain import About, Explanation, PartitionView, explain
from barnabas_common.runtime import PausePoint
from barnabas_simulator.loop import run

from tests.support.scene import TP, Scene

MAX_SECONDS = 900.0
SLOW_SESSION = {"zookeeper.session.timeout.ms": "60000"}


@dataclass(frozen=True)
class Scenario:
    """`names` has patterns, by question, that must be found after `inject` and only then."""

    inject: Callable[[Scene], Coroutine[Any, Any, None]]
    names: Callable[[Scene], Mapping[About, str]]
    config: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 4


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, names: Callable[[Scene], Mapping[About, str]], **options: Any) -> Any:
    def add(inject: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        SCENARIOS[name] = Scenario(inject, names, **options)

    return add


# ---- leaders


@scenario(
    "the leader is killed",
    lambda s: {About.LEADER: rf"broker {s.leader} (is suspected to be dead|vanished)"},
)
async def kill_leader(scene: Scene) -> None:
    scene.cluster.kill(scene.leader)
    await scene.until_led_by_another(scene.leader)


@scenario(
    "the leader is told to stop",
    lambda s: {About.LEADER: rf"broker {s.leader} is shutting down"},
)
async def stop_leader(scene: Scene) -> None:
    await scene.cluster.stop_broker(scene.leader)
    await scene.until_led_by_another(scene.leader)


@scenario(
    "the leader's session expires",
    lambda s: {
        About.LEADER: rf"broker {s.leader} (vanished|restarted)",
        About.BROKER: rf"broker {s.leader} was no longer registered: the ZooKeeper session expired",
    },
)
async def expire_leader(scene: Scene) -> None:
    scene.cluster.expire_session(scene.leader)
    await scene.until_led_by_another(scene.leader)


@scenario(
    "the leader stands still until its session has expired",
    lambda s: {
        About.LEADER: rf"broker {s.leader} vanished: its ZooKeeper session ended without",
        About.BROKER: rf"broker {s.leader} was no longer registered: the ZooKeeper session expired",
    },
)
async def pause_leader(scene: Scene) -> None:
    scene.cluster.pause(scene.leader)
    await scene.until_led_by_another(scene.leader)
    scene.cluster.resume(scene.leader)
    await scene.until(lambda: len(scene.state().isr) == 3)


@scenario(
    "a leader that was replaced does not know it",
    lambda s: {
        About.LEADER: rf"broker {s.leader} (vanished|restarted)",
        About.REFUSED: r"an ISR change to \[.*\] was refused: FENCED_LEADER_EPOCH",
    },
)
async def keep_leader_in_the_dark(scene: Scene) -> None:
    scene.isolate_leader()
    await scene.produce(3)  # which no other replica has: the leader will propose to remove them
    scene.cluster.pauses.hold(scene.leader, PausePoint.ROLE_BEFORE_CHANGE)
    scene.cluster.expire_session(scene.leader)
    await scene.until_led_by_another(scene.leader)
    await asyncio.sleep(10.0)


@scenario(
    "leadership is handed back",
    lambda s: {
        About.LEADER: rf"broker {s.leader} has led .* moves leadership back to the preferred"
    },
    config={
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": "10",
    },
)
async def rebalance(scene: Scene) -> None:
    scene.cluster.kill(scene.leader)
    await scene.until_led_by_another(scene.leader)
    await scene.restart(scene.leader)
    await scene.until(lambda: scene.state().leader == scene.leader)


@scenario(
    "an administrator asks for the preferred leader",
    lambda s: {About.LEADER: rf"broker {s.leader} has led .* administrator requested"},
)
async def ask_for_preferred(scene: Scene) -> None:
    scene.cluster.kill(scene.leader)
    await scene.until_led_by_another(scene.leader)
    await scene.restart(scene.leader)
    await scene.until(lambda: len(scene.state().isr) == 3)
    await scene.admin.elect_leaders("preferred", [TP])


@scenario(
    "the machine of the leader loses power",
    lambda s: {
        About.LEADER: rf"broker {s.leader} vanished: its ZooKeeper session ended",
        About.BROKER: rf"broker {s.leader} started: .* machine may have lost its power",
    },
)
async def lose_power(scene: Scene) -> None:
    scene.cluster.lose_power(scene.leader)
    await scene.until_led_by_another(scene.leader)
    await scene.restart(scene.leader)
    await scene.until(lambda: len(scene.state().isr) == 3)


@scenario(
    "a replica outside the ISR is elected",
    lambda s: {About.LEADER: "the election of broker . was unclean"},
    topic={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
)
async def elect_uncleanly(scene: Scene) -> None:
    scene.isolate_leader()
    await scene.produce(5)
    await scene.until_isr(scene.leader)
    scene.cluster.kill(scene.leader)
    await scene.until_led_by_another(scene.leader)


@scenario(
    "the last member of the ISR is dead, the others live",
    lambda s: {
        About.LEADER: rf"it waits for broker {s.leader}: only members of the ISR",
        About.REFUSED: "refused with LEADER_NOT_AVAILABLE",
    },
    topic={"min.insync.replicas": "1"},
)
async def lose_last_member(scene: Scene) -> None:
    scene.isolate_leader()
    await scene.produce(5)
    await scene.until_isr(scene.leader)
    scene.cluster.kill(scene.leader)
    await scene.until(lambda: scene.state().leader == -1)
    await asyncio.sleep(15.0)


@scenario(
    "all replicas are down",
    lambda s: {About.LEADER: r"none of the replicas \[.*\] is online"},
)
async def lose_all(scene: Scene) -> None:
    for broker_id in (scene.leader, scene.follower, scene.second):
        scene.cluster.kill(broker_id)
    await scene.until(lambda: scene.state().leader == -1)
    await asyncio.sleep(15.0)


@scenario(
    "the controller is killed",
    lambda s: {
        About.BROKER: rf"became controller, epoch 2: .*broker {s.controller}",
    },
)
async def kill_controller(scene: Scene) -> None:
    scene.cluster.kill(scene.controller)
    await scene.until(lambda: scene.controller_now() != scene.controller)


# ---- followers


@scenario(
    "a follower stands still",
    lambda s: {
        About.ISR: rf"broker {s.follower} is out of the ISR: .* has not fetched for",
    },
    config=SLOW_SESSION,
)
async def pause_follower(scene: Scene) -> None:
    scene.cluster.pause(scene.follower)
    await scene.produce(5)
    await scene.until_isr(scene.leader, scene.second)


@scenario(
    "a follower cannot reach its leader",
    lambda s: {
        About.ISR: rf"broker {s.follower} could not fetch from broker {s.leader}: ",
    },
    config=SLOW_SESSION,
)
async def cut_follower(scene: Scene) -> None:
    scene.cluster.network.cut(scene.host(scene.follower), scene.host(scene.leader))
    await scene.produce(5)
    await scene.until_isr(scene.leader, scene.second)
    await asyncio.sleep(5.0)


@scenario(
    "a follower is too slow",
    lambda s: {
        About.ISR: rf"broker {s.follower} is out of the ISR: .* it fetches, but is \d+ records",
    },
    config={"replica.fetch.response.max.bytes": "1000"},
)
async def slow_follower(scene: Scene) -> None:
    scene.cluster.network.links.delay((scene.host(scene.leader), scene.host(scene.follower)), 1.5)
    while scene.follower in scene.state().isr:
        await scene.produce(20, size=2000)
    assert scene.second in scene.state().isr


@scenario(
    "the ISR falls below its minimum",
    lambda s: {
        About.HIGH_WATERMARK: "the ISR has 1 of the 2 members that min.insync.replicas wants",
        About.REFUSED: "refused with NOT_ENOUGH_REPLICAS",
    },
    config=SLOW_SESSION,
)
async def thin_isr(scene: Scene) -> None:
    scene.isolate_leader()
    await scene.produce(5)
    await scene.until_isr(scene.leader)


@scenario(
    "one follower holds the high watermark back",
    lambda s: {
        About.HIGH_WATERMARK: rf"broker {s.follower} has fetched only up to offset 10",
    },
    config={**SLOW_SESSION, "replica.lag.time.max.ms": "100000"},
)
async def hold_back(scene: Scene) -> None:
    scene.cluster.pause(scene.follower)
    await scene.produce(5)


# ---- logs


@scenario(
    "what a dead leader alone had is cut off",
    lambda s: {
        About.TRUNCATION: rf"broker {s.leader} truncated its log from 13 to \d+, .* leader-epoch",
    },
    config=SLOW_SESSION,
)
async def truncate(scene: Scene) -> None:
    scene.isolate_leader()
    await scene.produce(3)
    scene.cluster.kill(scene.leader)
    scene.rejoin_leader()
    await scene.until_led_by_another(scene.leader)
    await scene.restart(scene.leader)
    await scene.until(lambda: len(scene.state().isr) == 3)


@scenario(
    "the end of a log is torn",
    lambda s: {
        About.TRUNCATION: rf"broker {s.follower} found its log damaged at its start",
        About.BROKER: rf"broker {s.follower} started: .* had not ended in order",
    },
)
async def tear(scene: Scene) -> None:
    scene.cluster.kill(scene.follower)
    disk = scene.cluster.disks[scene.follower]
    segment = disk.open(f"/data/{TP}/{0:020}.log")
    segment.append([b"torn"])
    segment.close()
    await scene.restart(scene.follower)
    await scene.until(lambda: len(scene.state().isr) == 3)


@scenario(
    "a log directory fails",
    lambda s: {
        About.LEADER: rf"a log directory of broker {s.leader} failed",
        About.BROKER: rf"broker {s.leader} lost its log directory /[ab], which failed",
    },
    config={"log.dirs": "/a,/b"},
)
async def fail_directory(scene: Scene) -> None:
    scene.cluster.disks[scene.leader].fail_next_write = True
    await scene.produce(1)
    await scene.until_led_by_another(scene.leader)


# ---- what administrators do


@scenario(
    "min.insync.replicas is raised",
    lambda s: {
        About.ALSO: "config changed: .*min.insync.replicas=3",
        About.REFUSED: "has 2 of the 3 members that min.insync.replicas requires",
    },
    config=SLOW_SESSION,
)
async def raise_minimum(scene: Scene) -> None:
    await scene.admin.incremental_alter_configs(
        ConfigResource.topic(TP.topic), {"min.insync.replicas": "3"}
    )
    scene.cluster.pause(scene.follower)
    await scene.produce(5)
    await scene.until_isr(scene.leader, scene.second)


@scenario(
    "the partition is moved",
    lambda s: {
        About.LEADER: rf"broker {s.spare[0]} has led .* it is reassigned",
        About.ALSO: "reassignment completed",
    },
    brokers=5,
)
async def move(scene: Scene) -> None:
    target = [scene.spare[0], scene.follower, scene.second]
    await scene.admin.alter_partition_reassignments({TP: target})
    await scene.until(lambda: scene.state().leader == scene.spare[0])
    await scene.until_isr(*target)


async def explained(told: Scenario, inject: bool) -> tuple[Explanation, Mapping[About, str]]:
    async with Scene(told.config, told.topic, told.brokers) as scene:
        if inject:
            await told.inject(scene)
        else:
            await asyncio.sleep(30.0)
        return await scene.explain(), told.names(scene)


@pytest.mark.parametrize("name", SCENARIOS)
def test_with_half_of_the_memory_gone_it_says_what_is_left_and_never_fails(name: str) -> None:
    """Rings drop events and brokers die in any combination: `explain` must answer nevertheless."""

    async def seen() -> PartitionView:
        told = SCENARIOS[name]
        async with Scene(told.config, told.topic, told.brokers) as scene:
            await told.inject(scene)
            return await scene.view()

    view = run(seen(), seed=1, max_time=MAX_SECONDS)
    random = Random(1)
    for _ in range(50):
        left = [event for event in view.events if random.random() < 0.5]
        replicas = {b: r for b, r in view.replicas.items() if random.random() < 0.7}
        explanation = explain(replace(view, events=left, replicas=replicas))
        assert explanation.of(About.LEADER) and explanation.of(About.ISR)
        causes = {event.cause for event in view.events}
        for sentence in explanation.sentences:
            if sentence.time_ms and sentence.about is About.LEADER:
                assert any(cause.partition(";")[0] in sentence.text for cause in causes) or (
                    "unclean" in sentence.text or "assignment" in sentence.text
                )


def is_named(explanation: Explanation, about: About, pattern: str) -> bool:
    return any(re.search(pattern, text) for text in explanation.of(about))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cause_is_named_where_it_was_and_nowhere_else(name: str) -> None:
    told = SCENARIOS[name]
    after, names = run(explained(told, inject=True), seed=1, max_time=MAX_SECONDS)
    for about, pattern in names.items():
        assert is_named(after, about, pattern), f"{about} {pattern!r} is not in\n{after.text}"
    quiet, names = run(explained(told, inject=False), seed=1, max_time=MAX_SECONDS)
    for pattern in names.values():
        assert not re.search(pattern, quiet.text), f"{pattern!r} is in\n{quiet.text}"
