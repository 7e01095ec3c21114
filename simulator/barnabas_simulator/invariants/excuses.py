"""Which losses are excused, and that nothing else is lost: after an unclean election, and where all
that might lead have lost something.

The log of the elected leader says what is lost. An unclean election may lose all that this log has
not. A leader that lost power with all others may lack what its own disk lacked right after that,
and nothing that this disk had kept.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from barnabas_common.messages.sentinels import NO_EPOCH
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.log_rules import Held, log_matching
from barnabas_simulator.invariants.logs.image import Images, LogImage
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.truth import FaultBudget, Truth
from barnabas_simulator.invariants.view import Replica

LOST = "records lost beyond the promise"


@rule("I4 LeaderCompleteness")
def leader_has_what_its_disk_kept(
    leader: Replica, image: LogImage, truth: Truth, kept: int | None
) -> str | None:
    """A leader that lost power with all others has every committed record that its disk still had:
    all below the offset `kept`, or all if that is None."""
    missing = truth.missing_from(image, leader.log_start)
    if missing is None or (kept is not None and missing.base_offset >= kept):
        return None
    what = "everything" if kept is None else f"all below {kept}"
    return f"the disk had {what} when power was back, and the log lacks {missing}; {leader}"


class Excuses:
    """`counts`: unclean elections, and records whose loss was excused."""

    def __init__(
        self, findings: Findings, images: Images, budget: FaultBudget, counts: Counter[str]
    ) -> None:
        self._hold = findings.hold
        self._images = images
        self._budget = budget
        self._counts = counts

    def forgot(self, brokers: Collection[int], truths: Mapping[TopicPartition, Truth]) -> None:
        """The disks of these brokers have lost something, all of them at once."""
        for truth in truths.values():
            candidates = {*truth.state.isr, *truth.state.eligible}
            truth.lapsed |= candidates & set(brokers)
            if not self._budget.power_cuts or not candidates <= truth.lapsed:
                continue
            truth.all_lapsed = True
            stored = self._images.stored(truth.partition)
            for broker_id in set(brokers) & stored.keys():
                lacks = truth.missing_from(stored[broker_id], 0)
                truth.kept_below.pop(broker_id, None)
                if lacks is not None:
                    truth.kept_below[broker_id] = lacks.base_offset

    def is_unclean(self, truth: Truth) -> None:
        """An unclean election is in ZooKeeper; its leader has not started yet."""
        self._counts["unclean elections"] += 1
        truth.unclean_epoch, truth.forked = truth.state.leader_epoch, True

    def leads(self, truth: Truth, leader: Replica, image: LogImage) -> None:
        """A leader has started: what its log lacks is lost, as far as that is excused."""
        if truth.unclean_epoch is None and truth.all_lapsed:
            kept = truth.kept_below.get(leader.broker_id)
            rule = leader_has_what_its_disk_kept
            self._hold(truth.partition, rule, leader, image, truth, kept)
        is_unsynced = leader.broker_id in truth.lapsed and self._budget.unsynced_leader
        if truth.unclean_epoch is not None or truth.all_lapsed or is_unsynced:
            before = len(truth.lost)
            truth.cut_to(image, leader.log_start)
            if len(truth.lost) > before:
                self._counts[LOST] += len(truth.lost) - before
                truth.forked = True
            if truth.unclean_epoch is not None:
                truth.unclean[truth.unclean_epoch] = truth.high_watermark
            truth.unclean_epoch = None
            truth.lapsed.discard(leader.broker_id)
        truth.all_lapsed = False
        truth.kept_below.clear()

    def deposed_exposed(self, truth: Truth, deposed: Replica, image: LogImage) -> None:
        """A leader that was deposed by an unclean election, and does not know it, goes on with the
        ISR that it knows: what it exposes beyond the log of its successor is lost too."""
        assert deposed.led_epoch is not None
        cuts = [start for epoch, start in truth.unclean.items() if epoch > deposed.led_epoch]
        for entry in image.entries_between(min(cuts), deposed.high_watermark) if cuts else ():
            told = entry.offset, entry.label
            if truth.values.get(entry.offset) != entry.label and told not in truth.lost:
                truth.lost.add(told)
                self._counts[LOST] += 1

    @staticmethod
    def look_whether_agreed(truth: Truth, held: Sequence[Held]) -> None:
        """Once all replicas run and have the same log again, they are judged as ever. Not while a
        leader that was deposed by an unclean election goes on: it appends what is not to last."""
        if not truth.forked or truth.unclean_epoch is not None or len(held) < len(truth.replicas):
            return
        newest = max(truth.unclean, default=NO_EPOCH)
        led = (one.replica.led_epoch for one in held)
        if any(epoch is not None and epoch < newest for epoch in led):
            return
        ends = [one.replica.log_end for one in held]
        known = [one.replica.high_watermark for one in held]
        if max(known) <= min(ends) and all(_match(one, held) for one in held):
            truth.forked = False


def _match(one: Held, others: Iterable[Held]) -> bool:
    return all(log_matching.broken(one, other) is None for other in others if other is not one)
