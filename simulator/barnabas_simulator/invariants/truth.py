"""What a run must not forget, kept by the simulator and by no broker.

For each partition: the history of its znode, the records below the highest high watermark that a
legitimate leader has exposed, what clients were told was committed, and what consumers have read.
A leader is legitimate while its epoch is the one in ZooKeeper.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from barnabas.topic_partition import TopicPartition
from barnabas_controller.leader_and_isr import LeaderAndIsr

from barnabas_simulator.invariants.image import Batch, LogImage

_last_offset = attrgetter("last_offset")
NEVER = -1


@dataclass(frozen=True)
class FaultBudget:
    """What the faults of a run may cost beyond the promise; each loss it excuses is counted.

    `unsynced_leader`: the disks of a whole ISR may forget, so a replica may have to lead that lost
    what its power cut took, for it alone is left of the ISR (what `Truth.lapsed` tells).
    """

    unsynced_leader: bool = False


@dataclass
class Truth:
    """The truth about one partition.

    `lapsed`: replicas of the ISR, and eligible ones, whose disks forgot something since they
    last showed what they have.
    `unclean_epoch`: that of an unclean election whose leader has yet to begin. `forked`: records
    were lost with leave, so logs may differ until all is healed. `appointed` and `led`: the leader
    of each epoch, by ZooKeeper and in fact. `unsettled`: what clients were told and no legitimate
    leader has shown yet.
    """

    partition: TopicPartition
    state: LeaderAndIsr
    replicas: tuple[int, ...]
    high_watermark: int = 0
    committed: list[Batch] = field(default_factory=list)
    values: dict[int, bytes] = field(default_factory=dict)
    acked: dict[int, bytes] = field(default_factory=dict)
    consumed: dict[int, bytes] = field(default_factory=dict)
    unsettled: dict[int, bytes] = field(default_factory=dict)
    lapsed: set[int] = field(default_factory=set)
    unclean_epoch: int | None = None
    forked: bool = False
    appointed: dict[int, int] = field(default_factory=dict)
    led: dict[int, int] = field(default_factory=dict)
    leader_changes: list[float] = field(default_factory=list)

    def let_lapse(
        self, before: LeaderAndIsr | None, after: LeaderAndIsr, forgot_at: Mapping[int, int]
    ) -> None:
        """A lapsed replica that left, or has shown anew what it has, is lapsed no more.

        `forgot_at`: which transaction of ZooKeeper was the newest when a broker's disk forgot. A
        seat granted afterwards to a life that had registered before is lapsed from the start.
        """
        self.lapsed = {
            broker_id
            for broker_id in self.lapsed
            if broker_id in (*after.isr, *after.eligible)
            and before is not None
            and after.proved_at.get(broker_id) == before.proved_at.get(broker_id)
        } | {
            broker_id
            for broker_id, epoch in after.proved_at.items()
            if epoch <= forgot_at.get(broker_id, NEVER)
        }

    def expose(self, leader: LogImage, high_watermark: int) -> None:
        """A legitimate leader shows its log up to here."""
        for index in range(leader.index_of(self.high_watermark), leader.index_of(high_watermark)):
            self.committed.append(leader.batches[index])
            self.values.update(leader.values(index))
        self.high_watermark = high_watermark

    def missing_from(self, image: LogImage, log_start: int) -> Batch | None:
        """The first committed batch that a log lacks or has otherwise; None if it has all.

        What lies below `log_start` may be gone: retention has deleted it.
        """
        first = bisect_left(self.committed, log_start, key=_last_offset)
        wanted = self.committed[first:]
        if not wanted:
            return None
        start = image.index_of(wanted[0].base_offset)
        kept = image.batches[start : start + len(wanted)]
        if kept == wanted:
            return None
        same = next((n for n, (a, b) in enumerate(zip(wanted, kept, strict=False)) if a != b), None)
        return wanted[len(kept) if same is None else same]

    def settle(self) -> list[tuple[int, bytes]]:
        """What clients were told of, and is committed now: to be held against `values`."""
        reached = [(o, told) for o, told in self.unsettled.items() if o < self.high_watermark]
        for offset, _ in reached:
            del self.unsettled[offset]
        return reached

    def cut_to(self, image: LogImage, log_start: int) -> int:
        """An excused loss: from now on the truth is what this log has; how many records go."""
        missing = self.missing_from(image, log_start)
        lost = 0
        if missing is not None:
            lost = self.high_watermark - missing.base_offset
            del self.committed[self.committed.index(missing) :]
            self.high_watermark = missing.base_offset
        for known in (self.values, self.acked, self.consumed, self.unsettled):
            for offset in [o for o in known if o >= self.high_watermark]:
                if image.value_at(offset) != known[offset]:
                    del known[offset]
        return lost
