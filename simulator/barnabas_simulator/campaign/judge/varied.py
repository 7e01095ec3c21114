"""Judges the clients that only some runs have."""

from collections import Counter
from collections.abc import Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.growth import GROWN
from barnabas_simulator.campaign.clients.varied.expiring import Expiring
from barnabas_simulator.campaign.clients.varied.seekers import ACTS
from barnabas_simulator.campaign.clients.varied.work import VariedWork
from barnabas_simulator.campaign.judge.low_acks import judge_low_acks
from barnabas_simulator.campaign.judge.recreated import wrong_incarnations
from barnabas_simulator.campaign.judge.seeks import wrong_seeks
from barnabas_simulator.delivery import judge
from barnabas_simulator.labels import may_be_gone, newest_by_key

Committed = Mapping[TopicPartition, Mapping[int, bytes]]

LOST_1, LOST_0 = "low acks: lost with acks=1", "low acks: lost with acks=0"
WANTED = (
    GROWN,
    "recreated: created",
    "recreated: deleted",
    "recreated: record read",
    "expiring: records deleted",
    "expiring: reader went on where the log starts",
    "low acks: burst",
    "low acks: record too large",
    LOST_0,
    *(f"seeker: {act}" for act in ACTS),
)
"""What must occur in a campaign."""
WANTED_IN_MANY = ("expiring: reader out of range", LOST_1)
"""What must occur in a long one."""


def assert_varied(
    work: VariedWork,
    times: Mapping[TopicPartition, Mapping[int, int]],
    committed: Committed | None,
    counts: Counter[str],
) -> None:
    """Raise AssertionError with the first findings. `times`: the timestamps of what is in the
    common topic in the end; `committed`: all its records, if it is compacted."""
    wrong: dict[str, list[str]] = {}
    if work.recreated is not None:
        wrong["recreated"] = wrong_incarnations(work.recreated.history, work.recreated.records)
    if work.expiring is not None:
        wrong["expiring"] = wrong_expiry(work.expiring)
    if work.low_acks is not None:
        found = judge_low_acks(work.low_acks.by_sender, work.low_acks.records, work.low_acks.epochs)
        wrong["low acks"] = found.wrong
        counts.update({LOST_1: found.lost["1"], LOST_0: found.lost["0"]})
    if work.seekers is not None:
        newest = {tp: newest_by_key(found.items()) for tp, found in (committed or {}).items()}

        def gone(tp: TopicPartition, offset: int) -> bool:
            label = (committed or {}).get(tp, {}).get(offset)
            return label is not None and may_be_gone(offset, label, newest[tp])

        wrong["seekers"] = wrong_seeks(work.seekers.journal, times, gone)
    shown = {part: found[:5] for part, found in wrong.items() if found}
    assert not shown, f"{shown}"


def wrong_expiry(expiring: Expiring) -> list[str]:
    """What retention has rightly taken may be gone; I27 has judged it."""
    starts = expiring.starts
    return judge(
        expiring.history,
        expiring.records,
        lambda partition, offset, _: offset < starts[partition],
    ).findings
