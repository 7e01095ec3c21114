"""One run: warm up, chaos, heal (all, or a core), settle, read everything back, judge."""

import asyncio
import gc
import logging
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from barnabas_common.history.promise import Promise

from barnabas_simulator.campaign.clients.factory import Read
from barnabas_simulator.campaign.clients.workload import TOPIC, Workload
from barnabas_simulator.campaign.conclusion import conclude
from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.campaign.faults.nemesis import Nemesis
from barnabas_simulator.campaign.judge.core import can_progress, choose_core
from barnabas_simulator.campaign.judge.states import States
from barnabas_simulator.campaign.judge.varied import assert_varied
from barnabas_simulator.campaign.judge.verdict import (
    assert_copied,
    assert_delivered,
    assert_fenced,
    assert_promise_kept,
    ends_of,
)
from barnabas_simulator.campaign.options import COPIES, ORDERS, Mode, Options
from barnabas_simulator.campaign.state import partition_states
from barnabas_simulator.campaign.story import Story
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.invariants.excuses import LOST
from barnabas_simulator.invariants.truth import FaultBudget
from barnabas_simulator.loop import run
from barnabas_simulator.network import NetworkConditions

WARM_UP_SECONDS = 3.0
CALM_SECONDS = 5.0  # of producing after the healing
READ_SECONDS = 60.0
IN_FLIGHT_SECONDS = 2.0


@dataclass
class Outcome:
    """The outcome of a run; `violation` begins with `kind`, and is None for a good run.

    `trace` is a digest of every frame and its time: equal for equal runs. `counts` is how often
    each kind of event, fault and act occurred. `story` is all that was recorded, `short_story` what
    tells most about the violation.
    """

    seed: int
    kind: str = ""
    violation: str | None = None
    trace: str = ""
    acked: int = 0
    virtual_seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    short_story: list[str] = field(default_factory=list)


def run_schedule(options: Options, faults: Sequence[Fault], tell: bool = False) -> Outcome:
    """Run a schedule on a new virtual loop; `tell` records its timeline, at some cost."""
    schedule = _Schedule(options, faults, tell)
    root, was_disabled = logging.getLogger(), logging.root.manager.disable
    root.addHandler(schedule.tracebacks)
    logging.disable(logging.WARNING)
    gc.disable()  # finalisers run at arbitrary points, and cost a third of the time
    gc.freeze()  # what exists already is not garbage of this run
    try:
        run(schedule.main(), seed=options.seed, max_time=24 * 3600.0)
    except Exception as error:
        schedule.failed(error)
    finally:
        gc.enable()
        gc.collect()
        gc.unfreeze()
        logging.disable(was_disabled)
        root.removeHandler(schedule.tracebacks)
    return schedule.outcome


class _Tracebacks(logging.Handler):
    """Collects errors that were logged with a traceback; they are violations too."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            at = ""
            with suppress(RuntimeError):  # the loop has ended
                at = f"{asyncio.get_running_loop().time():.3f} s "
            self.found.append(f"{at}{record.name}: {record.getMessage()}: {record.exc_info[1]!r}")


class _Digest:
    """A checksum over every frame, its link and its time."""

    def __init__(self) -> None:
        self.value = 0

    def __call__(self, link: tuple[str, str], frame: Any) -> None:
        if isinstance(frame, bytes):
            when = int(asyncio.get_running_loop().time() * 1e6)
            self.value = zlib.crc32(frame, self.value ^ (when & 0xFFFFFFFF))


class _Schedule:
    def __init__(self, options: Options, faults: Sequence[Fault], tell: bool) -> None:
        self.options = options
        self.faults = faults
        self.outcome = Outcome(options.seed)
        self._cluster = SimulatedCluster(options.seed, options.brokers, options.broker_config)
        self._story = Story(self._cluster, tell)
        self._digest = _Digest()
        self.tracebacks = _Tracebacks()
        self._chance = random.Random(f"end {options.seed}")

    def failed(self, error: Exception) -> None:
        name = error.name if isinstance(error, InvariantViolation) else type(error).__name__
        self.outcome.kind = name.partition(" ")[0]
        self.outcome.violation = f"{type(error).__name__}: {error}"
        at, partitions = self.outcome.virtual_seconds, self._story.partitions()
        self.outcome.short_story = self._story.short(conclude(error, at, partitions))

    async def main(self) -> None:
        try:
            await self._run()
        finally:
            outcome = self.outcome
            outcome.virtual_seconds = asyncio.get_running_loop().time()
            outcome.trace = f"{self._digest.value:08x}"
            outcome.counts.update(self._story.event_counts())
            outcome.story = self._story.lines()

    async def _run(self) -> None:
        cluster, options = self._cluster, self.options
        cluster.network.links.on_frame = self._digest
        cluster.network.links.conditions = NetworkConditions(late_chance=options.late_chance)
        retention = {TOPIC: options.delete_retention_ms} if options.is_compacted else {}
        budget = FaultBudget(power_cuts=options.may_lose_records and not options.flush_all)
        invariants = Invariants(cluster, budget, retention)
        invariants.install()
        if self._story.tell:
            self._story.watch_starts()
            invariants.findings.follow(self._story.checked)
        await cluster.start()
        workload = Workload(cluster, options, invariants, self._story.note)
        await workload.start()
        await asyncio.sleep(WARM_UP_SECONDS)
        waits = options.elr_wait_ms / 1000
        nemesis = Nemesis(
            cluster,
            workload.hosts,
            workload.strike,
            self._story.fault,
            waits,
            options.min_isr,
        )
        counts = self.outcome.counts
        invariants.watchers.append(States(counts, TOPIC, nemesis.present, workload.unanswered))
        try:
            await self._chaos(nemesis)
            workload.calm()
            core = await self._heal(nemesis)
            invariants.healed()
            await asyncio.sleep(CALM_SECONDS)
            try:
                async with asyncio.timeout(options.settling_seconds):
                    await workload.finish()
            except TimeoutError:
                invariants.stuck(workload.reading, core)
            await invariants.at_rest(options.settling_seconds, core)
            await workload.close()
            try:
                async with asyncio.timeout(READ_SECONDS):
                    records = await workload.read_back(core)
                    committed_ones = await workload.read_transactions(core)
                    await workload.varied.read_back(core)
            except TimeoutError:
                invariants.stuck(workload.reading, core)
                raise
        finally:
            nemesis.close()
            self._count(nemesis, workload)
            counts.update({f"excused: {what}": n for what, n in invariants.excused.items()})
        self._judge(workload, invariants, records, committed_ones)

    def _judge(
        self, workload: Workload, invariants: Invariants, records: Read, committed_ones: Read
    ) -> None:
        """Judge what was read back when all was over: all records, and the committed ones."""
        options = self.options
        committed = invariants.committed() if options.is_compacted else None
        lost = invariants.lost()
        assert_delivered(
            workload.histories, workload.seen, records, committed, options.idempotent, lost
        )
        assert_varied(workload.varied, workload.times, committed, self.outcome.counts)
        promise = Promise(
            clean_elections=not invariants.excused[LOST],  # also what a later leader has again
            compacted=options.is_compacted,
            idempotent=options.idempotent,
        )
        assert_promise_kept(workload.operations, promise)
        if options.has_transactions:
            transactional = workload.transactional
            assert_promise_kept(transactional.operations, Promise(idempotent=True))
            assert_fenced(transactional.operations, transactional.takeovers)
            assert_copied(committed_ones, ORDERS, COPIES if options.copiers else "")
        assert not self.tracebacks.found, f"tracebacks: {self.tracebacks.found[:3]}"

    async def _chaos(self, nemesis: Nemesis) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.options.chaos_seconds
        await nemesis.play(self.faults)
        await asyncio.sleep(max(0.0, end - loop.time()))

    async def _heal(self, nemesis: Nemesis) -> list[int] | None:
        """Heal everything, or for liveness only a core. Returns the core; None for everything."""
        await nemesis.heal()
        if self.options.mode is not Mode.LIVENESS:
            return None
        cluster, min_isr = self._cluster, self.options.min_isr
        partitions = list(partition_states(cluster).values())
        core = choose_core(cluster.broker_ids, partitions, min_isr, self._chance)
        outsiders = [b for b in cluster.broker_ids if b not in core]
        nemesis.break_for_ever(outsiders, self._chance)
        # ISR changes in flight are decided: also those that waited for a paused controller.
        await asyncio.sleep(IN_FLIGHT_SECONDS)
        if not can_progress(core, partition_states(cluster).values(), min_isr):
            nemesis.mend()
            return None
        self._story.fault(f"only brokers {core} are healed, permanently")
        return core

    def _count(self, nemesis: Nemesis, workload: Workload) -> None:
        counts = self.outcome.counts
        for prefix, kinds in (("fault", nemesis.struck), ("skipped", nemesis.skipped)):
            counts.update({f"{prefix}: {kind}": count for kind, count in kinds.items()})
        counts.update(workload.errors)
        counts["broker exited by itself"] += len(self._cluster.exits)
        counts["commit acknowledged"] += workload.committed
        counts.update(ends_of(workload.transactional.operations))
        self.outcome.acked = workload.acked
