"""Runs with the clients that only some runs have: right without a bug, wrong with a planted one."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import count

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.readable_log import ReadableLog
from barnabas_broker.log.retention import SegmentFacts
from barnabas_broker.replica.serve.produce_path import ProducePath
from barnabas_common.messages.produce import ProducedPartition
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.judge.varied import LOST_0, LOST_1
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.schedule import run_schedule
from barnabas_simulator.campaign.workload_options import KINDS, WorkloadOptions

SHORT = Options(seed=5, chaos_seconds=12.0, partitions=1, has_admin=False, pause=0.2)
RECREATED = replace(SHORT, recreated=1)
EXPIRING = replace(SHORT, expiring=1, expiring_ms=3_000, expiring_segment_bytes=300)
LOW_ACKS = replace(SHORT, low_acks="0,1", burst=20)
SEEKING = replace(SHORT, seekers=1)
GROWING = replace(SHORT, growth=1, groups=1, member_fetch_ms=1_000)

KILLS = [Fault(1.0 + 3.0 * n, FaultKind.KILL, "leader", "", 1.0) for n in range(4)]

Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (RECREATED, ["recreated: created", "recreated: record read"]),
        (EXPIRING, ["expiring: records deleted"]),
        (LOW_ACKS, ["low acks: burst", "low acks: record too large"]),
        (SEEKING, ["seeker: go back", "seeker: to a time", "seeker: start again"]),
        (GROWING, ["partitions added"]),
    ],
    ids=["recreated", "expiring", "low acks", "seeking", "growing"],
)
def test_a_run_with_killed_leaders_is_right_and_does_what_it_is_for(
    options: Options, seen: list[str]
) -> None:
    outcome = run_schedule(options, KILLS)
    assert outcome.violation is None
    assert [what for what in seen if not outcome.counts[what]] == []


def test_leaders_that_are_cut_off_and_killed_lose_what_was_not_for_all() -> None:
    """The positive control: without losses the judge of acks=1 has judged nothing."""
    faults = []
    for n in range(4):
        broker = str(n % 3 + 1)
        faults.append(Fault(1.0 + 3.0 * n, FaultKind.ISOLATE, broker, "", 2.0))
        faults.append(Fault(2.5 + 3.0 * n, FaultKind.KILL, broker, "", 1.0))
    outcome = run_schedule(replace(LOW_ACKS, pause=0.05), faults)
    assert outcome.violation is None
    assert outcome.counts[LOST_0] > 0
    assert outcome.counts[LOST_1] > 0


# ---- planted faults


def _keep_the_records_of_a_deleted_topic(patch: pytest.MonkeyPatch) -> None:
    """Its log stays, and the next topic of its name gets it."""

    async def keep(manager: LogManager, topic_partition: TopicPartition) -> None:
        log = manager.get(topic_partition)
        if log is not None:
            log.topic_id = ""

    patch.setattr(LogManager, "delete", keep)


def _delete_too_early(patch: pytest.MonkeyPatch) -> None:
    def older(retention_ms: int, now_ms: int) -> Callable[[SegmentFacts], bool]:
        return lambda segment: 0 < retention_ms // 3 < now_ms - segment.largest_timestamp

    patch.setattr("barnabas_broker.log.retention._older", older)


def _answer_without_appending(patch: pytest.MonkeyPatch) -> None:
    """Some records with acks=1 are forgotten."""
    append, turns = ProducePath._append, count()

    def forget(self: ProducePath, item, acks, *rest):  # type: ignore[no-untyped-def]
        if acks != 1 or next(turns) % 5:
            return append(self, item, acks, *rest)
        log = self._partitions.hosted(TopicPartition(item.topic, item.partition)).lead().log
        return ProducedPartition(item.topic, item.partition, base_offset=log.log_end_offset)

    patch.setattr(ProducePath, "_append", forget)


def _look_too_late(patch: pytest.MonkeyPatch) -> None:
    """A question for a time is answered with a later record."""
    find = ReadableLog.offset_for_timestamp
    patch.setattr(
        ReadableLog, "offset_for_timestamp", lambda log, wanted: find(log, wanted + 1_000)
    )


def _never_notice_growth(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("barnabas.group.member.changed", lambda *_: "")


@pytest.mark.parametrize(
    ("options", "plant", "found"),
    [
        (RECREATED, _keep_the_records_of_a_deleted_topic, "I26"),
        (EXPIRING, _delete_too_early, "I27"),
        (LOW_ACKS, _answer_without_appending, "'low acks'"),
        (SEEKING, _look_too_late, "'seekers'"),
        (GROWING, _never_notice_growth, "L9"),
    ],
    ids=["recreated", "expiring", "low acks", "seeking", "growing"],
)
def test_a_planted_fault_is_found(
    options: Options, plant: Patch, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    outcome = run_schedule(options, [])
    assert outcome.violation is not None
    assert found in outcome.violation.splitlines()[0]


# ---- what is drawn


def test_each_kind_of_clients_is_in_some_runs() -> None:
    drawn = [Options.draw(seed, Mode.SAFETY) for seed in range(400)]
    for name, one_in, _ in KINDS:
        having = [one for one in drawn if _has(one, name)]
        assert 0.5 * len(drawn) / one_in < len(having) < 1.7 * len(drawn) / one_in, name
    assert not any(Options.draw(seed, Mode.LIVENESS).recreated for seed in range(100))


def test_they_change_nothing_else_of_a_run_but_whether_elections_may_be_unclean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = [Options.draw(seed) for seed in range(400)]
    monkeypatch.setattr("barnabas_simulator.campaign.options.draw_workload", lambda *_: {})
    own = {field.name: field.default for field in fields(WorkloadOptions)}
    for one in drawn:
        without = Options.draw(one.seed)
        changed = without.unclean_elections and not one.may_lose_records
        assert replace(one, **own, unclean_elections=one.unclean_elections or changed) == without


def _has(options: Options, kind: str) -> bool:
    defaults = Options(seed=options.seed)
    field = kind.replace(" ", "_")
    return bool(getattr(options, field) != getattr(defaults, field))
