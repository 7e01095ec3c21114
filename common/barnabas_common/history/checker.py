"""Judges a history: every class of anomaly, against what the configuration promises."""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas_common.history.checks.cycles import circular_reads, circular_writes
from barnabas_common.history.checks.finding import Anomaly, Finding, Findings
from barnabas_common.history.checks.groups import Groups, lost_commits, missed_by_groups
from barnabas_common.history.checks.losses import lost_writes, torn_transactions, vanished
from barnabas_common.history.checks.offsets import duplicates, inconsistent_offsets
from barnabas_common.history.checks.pairing import paired
from barnabas_common.history.checks.polls import Polls, skipped_records
from barnabas_common.history.checks.reads import (
    aborted_reads,
    dirty_reads,
    phantoms,
    precommitted_reads,
)
from barnabas_common.history.checks.seen import Seen
from barnabas_common.history.checks.sends import nonmonotonic_sends, send_skips
from barnabas_common.history.operations import Operation
from barnabas_common.history.promise import Promise


@dataclass(frozen=True)
class Judgement:
    """`unread`: partitions with acknowledged records that were not read to the end at last."""

    promise: Promise
    findings: Findings
    acknowledged: int
    read: int
    unread: list[str]

    @property
    def broken(self) -> dict[Anomaly, int]:
        """What was found although the configuration rules it out, with how often."""
        permitted = self.promise.permitted()
        return {
            anomaly: count
            for anomaly, count in sorted(self.findings.counts.items())
            if anomaly not in permitted
        }

    @property
    def good(self) -> bool:
        """Whether the run shows that the promise was kept: something must have been acknowledged,
        and everything read at the end."""
        return not self.broken and not self.unread and self.acknowledged > 0

    def examples(self) -> list[Finding]:
        """Return some of what breaks the promise."""
        return [each for anomaly in self.broken for each in self.findings.examples[anomaly]]


def check(operations: Iterable[Operation], promise: Promise | None = None) -> Judgement:
    """Judge a history, in one pass and with a few references for each record.

    Raises `MalformedHistoryError` if it is none.
    """
    seen, polls, groups = Seen(), Polls(), Groups()
    for operation in paired(operations):
        seen.take(operation)
        polls.take(operation)
        groups.take(operation)
    findings = Findings()
    for found in (
        inconsistent_offsets(seen),
        duplicates(seen),
        lost_writes(seen),
        torn_transactions(seen),
        vanished(seen),
        phantoms(seen),
        aborted_reads(seen),
        dirty_reads(seen),
        precommitted_reads(seen),
        polls.backwards,
        skipped_records(seen, polls),
        nonmonotonic_sends(seen),
        send_skips(seen),
        circular_reads(seen),
        circular_writes(seen),
        groups.ahead,
        lost_commits(seen, groups),
        missed_by_groups(seen, groups),
    ):
        findings.add(found)
    acknowledged = {
        partition
        for partition, log in seen.partitions.items()
        if any(sent.offset >= 0 for sent in log.sent.values())
    }
    return Judgement(
        promise or Promise(),
        findings,
        seen.acknowledged,
        sum(len(log.read) for log in seen.partitions.values()),
        sorted(p for p in acknowledged if seen.partitions[p].end is None),
    )
