"""Every sentence of `explain` is true: compared with what was done, in sequences of operations.

It is compared with the operations and the events of all processes, including ended ones; `explain`
has only the events that the running brokers still hold.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import pytest
from barnabas.admin import ConfigResource
from barnabas.explain import About, Explanation, Sentence
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event, EventKind
from barnabas_simulator.loop import run

from tests.support.scene import TP, Scene

SEQUENCES = 30
MAX_SECONDS = 3_000.0
LED = re.compile(r"(?:broker (\d) (?:has )?led|there was no leader) (?:since|from) epoch (\d+)")
ABOUT_BROKER = re.compile(r"broker (\d)")
# Events that end or replace a process, or take it out of the cluster.
_ENDS = r"vanished|stopped|is shutting down|is suspected|restarted|was no longer registered"
GONE = re.compile(rf"broker (\d) (?:{_ENDS}|began to shut down|started|rejoined)")


@dataclass
class Sequence:
    """Carries out random operations on a scene, and records them."""

    scene: Scene
    random: Random
    ended: set[int] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    partitions: int = 1

    async def run(self, steps: int) -> None:
        doings = (
            self.restart,
            self.kill_and_start,
            self.restart_all,
            self.kill_controller,
            self.prefer,
            self.reassign,
            self.configure,
            self.grow,
        )
        for _ in range(steps):
            doing = self.random.choice(doings)
            self.done.append(doing.__name__)
            await doing()
            await self.settle()

    async def settle(self) -> None:
        await self.scene.until(lambda: len(self.scene.state().isr) >= 3)
        await asyncio.sleep(self.random.uniform(1.0, 5.0))

    def any_broker(self) -> int:
        return self.random.choice(self.scene.cluster.broker_ids)

    async def restart(self) -> None:
        broker = self.any_broker()
        self.ended.add(broker)
        await self.scene.cluster.stop_broker(broker)
        await asyncio.sleep(self.random.choice([0.1, 2.0]))
        await self.scene.restart(broker)

    async def kill_and_start(self) -> None:
        broker = self.any_broker()
        self.ended.add(broker)
        self.scene.cluster.kill(broker)
        await asyncio.sleep(self.random.choice([0.1, 10.0]))
        await self.scene.restart(broker)

    async def kill_controller(self) -> None:
        broker = self.scene.controller_now()
        self.ended.add(broker)
        self.scene.cluster.kill(broker)
        await asyncio.sleep(10.0)
        await self.scene.restart(broker)

    async def restart_all(self) -> None:
        """Stop and start all brokers, as `cluster stop` and `cluster start` do."""
        brokers = list(self.scene.cluster.broker_ids)
        self.ended.update(brokers)
        await asyncio.gather(*map(self.scene.cluster.stop_broker, brokers))
        self.random.shuffle(brokers)
        for broker in brokers:
            self.scene.cluster.start_broker(broker)
        await self.scene.cluster.serving()

    async def prefer(self) -> None:
        await self._admin(self.scene.admin.elect_leaders("preferred", [TP]))

    async def reassign(self) -> None:
        target = self.random.sample(self.scene.cluster.broker_ids, 3)
        await self._admin(self.scene.admin.alter_partition_reassignments({TP: target}))
        await asyncio.sleep(10.0)

    async def configure(self) -> None:
        value = str(self.random.randrange(10_000, 99_999))
        resource = ConfigResource.topic(TP.topic)
        await self._admin(
            self.scene.admin.incremental_alter_configs(resource, {"retention.ms": value})
        )

    async def grow(self) -> None:
        self.partitions += 1
        await self._admin(self.scene.admin.create_partitions(TP.topic, self.partitions))

    async def _admin(self, request: object) -> None:
        try:
            await request  # type: ignore[misc]
        except BarnabasError as error:
            self.done[-1] += f" ({error})"


@dataclass(frozen=True)
class Oracle:
    """The sentences that may be said, by the decisions of all controllers and the operations."""

    decisions: Mapping[int, Event]
    causes: frozenset[str]
    ended: frozenset[int]
    done: frozenset[str]

    def check(self, told: Explanation) -> None:
        self._check_leaders([s for s in told.sentences if s.about is About.LEADER])
        for sentence in told.sentences:
            self._check_causes(sentence)
            self._check_who_ended(sentence)
        for about in (About.BROKER, About.ALSO):
            times = [s.time_ms for s in told.sentences if s.about is about]
            assert times == sorted(times), about
        for broker in told.replicas:
            out = any(f"broker {broker} is out of the ISR" in s for s in told.of(About.ISR))
            assert out == (broker not in told.in_sync_replicas)
        also = "\n".join(told.of(About.ALSO))
        assert "config changed" not in also or "configure" in self.done
        assert "reassignment" not in also or any("reassign" in what for what in self.done)

    def _check_leaders(self, sentences: list[Sentence]) -> None:
        epochs, times = [], []
        for sentence in sentences:
            if (said := LED.search(sentence.text)) is None:
                continue
            leader, epoch = int(said[1] or -1), int(said[2])
            decision = self.decisions[epoch]
            assert decision.details["leader"] == leader
            assert decision.details["leader_before"] != leader, "only its ISR changed then"
            assert sentence.text.endswith(f": {decision.cause}"), decision.cause
            epochs.append(epoch)
            times.append(sentence.time_ms)
        assert epochs == sorted(epochs, reverse=True)
        assert times == sorted(times, reverse=True), "a later event is told before an earlier one"

    def _check_causes(self, sentence: Sentence) -> None:
        """Check that a sentence about an ISR states the cause of an event that was recorded."""
        said = re.search(r"(?:out of|left|rejoined) the ISR: (.*)", sentence.text)
        if said is not None:
            assert any(said[1] in cause for cause in self.causes), sentence.text

    def _check_who_ended(self, sentence: Sentence) -> None:
        for said in GONE.finditer(sentence.text):
            assert int(said[1]) in self.ended, sentence.text


def oracle(sequence: Sequence) -> Oracle:
    events = sequence.scene.cluster.events()
    decisions = {
        int(str(event.details["leader_epoch"])): event
        for event in events
        if event.topic_partition == TP
        and event.kind in (EventKind.LEADER_ELECTED, EventKind.ISR_CHANGED)
        and "leader_before" in event.details
    }
    causes = frozenset(event.cause for event in events if event.topic_partition == TP)
    return Oracle(decisions, causes, frozenset(sequence.ended), frozenset(sequence.done))


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_every_sentence_is_true_of_what_was_done(seed: int) -> None:
    async def play() -> tuple[list[str], Explanation, Oracle]:
        async with Scene({}, {}) as scene:
            sequence = Sequence(scene, Random(seed))
            await sequence.run(steps=4)
            return sequence.done, await scene.explain(), oracle(sequence)

    done, told, truth = run(play(), seed=seed, max_time=MAX_SECONDS)
    try:
        truth.check(told)
    except (AssertionError, KeyError) as error:
        raise AssertionError(f"{error}\nafter {done}:\n{told.text}") from error
