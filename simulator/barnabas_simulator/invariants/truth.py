"""What a run must not lose, recorded by the simulator and by no broker.

For each partition: the history of its znode, the records below the highest high watermark that a
legitimate leader has exposed, what was acknowledged, and what consumers have read. A leader is
legitimate while its epoch is the one in ZooKeeper.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

from barnabas_simulator.invariants.logs.image import Batch, Images, LogImage
from barnabas_simulator.invariants.logs.keyed import KeyedRecords
from barnabas_simulator.invariants.view import Replica, StateChange, View

_last_offset = attrgetter("last_offset")
NEVER = -1


@dataclass(frozen=True)
class FaultBudget:
    """The losses that a run's faults may cause beyond the promise; each excused loss is counted.

    `unsynced_leader`: the disks of a whole ISR may lose data, so that the last member of the ISR
    must lead although it lost records with its power (it is in `Truth.lapsed`). `vanished_replica`:
    replicas may be removed behind the controller's back. `power_cuts`: all machines may lose power
    at once, and with it what no disk had flushed.
    """

    unsynced_leader: bool = False
    power_cuts: bool = False
    vanished_replica: bool = False


@dataclass
class Truth:
    """The truth about one partition.

    `lapsed`: replicas in the ISR, and eligible ones, whose disks have lost something since they
    last proved to be in sync. `unclean_epoch`: of an unclean election whose leader has not started
    yet. `is_in_doubt`: its state is from an older copy of ZooKeeper, so that members of the ISR may
    be behind, until all have caught up with a leader that has everything. `is_restored`: it was
    once, so a controller may ask its replicas again. `forked`: a loss was excused, so logs may
    differ until all is healed. `elected` and `led`: the leader of each epoch,
    by ZooKeeper and in fact. `unsettled`: records that clients have seen and no legitimate leader
    has exposed yet. `claimed`: the highest high watermark of any replica, and `claimed_by` which
    one. `all_lapsed`: the budget has `power_cuts`, every replica that may lead has lost something,
    and none has led since; `kept_below`: the first committed offset that the disk of each lacked
    right after that, no entry if it lacked nothing. `was_set_back`: an older leader epoch was
    written into its state by hand. `unclean`: the epochs of unclean elections,
    each with the offset where its log began to be the truth. `lost`: offsets and labels whose loss
    was excused. `topic_id`: None if unknown. `keyed`: the committed records by key, None unless the
    partition is compacted. `log_start`: below it retention may have deleted all.
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
    is_in_doubt: bool = False
    is_restored: bool = False
    elected: dict[int, int] = field(default_factory=dict)
    led: dict[int, int] = field(default_factory=dict)
    leader_changes: list[float] = field(default_factory=list)
    claimed: int = 0
    claimed_by: str = ""
    all_lapsed: bool = False
    kept_below: dict[int, int] = field(default_factory=dict)
    was_set_back: bool = False
    unclean: dict[int, int] = field(default_factory=dict)
    lost: set[tuple[int, bytes]] = field(default_factory=set)
    topic_id: str | None = None
    keyed: KeyedRecords | None = None
    log_start: int = 0

    @property
    def may_be_elected(self) -> list[int]:
        """Those that have lost nothing; the others may be elected too, but prove nothing."""
        candidates = dict.fromkeys((*self.state.isr, *self.state.eligible))
        return [broker_id for broker_id in candidates if broker_id not in self.lapsed]

    def let_lapse(
        self, before: LeaderAndIsr | None, after: LeaderAndIsr, forgot_at: Mapping[int, int]
    ) -> None:
        """Update `lapsed`: remove replicas that left, or have proved again to be in sync.

        `forgot_at`: ZooKeeper's newest transaction when a broker's disk lost data. A later ISR
        membership of an incarnation that registered before is lapsed from the start.
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
        """Record what a legitimate leader exposes, up to its high watermark."""
        for index in range(leader.index_of(self.high_watermark), leader.index_of(high_watermark)):
            self.committed.append(leader.batches[index])
            for record in leader.entries(index):
                self.values[record.offset] = record.label
                self.lost.discard((record.offset, record.label))
                self.told(record.offset, record.label)
        self.high_watermark = high_watermark

    def told(self, offset: int, label: bytes) -> None:
        """A record is committed, or a client was told so."""
        if self.keyed is not None:
            self.keyed.note(offset, label)

    def missing_from(self, image: LogImage, log_start: int) -> Batch | None:
        """Return the first committed batch that a log lacks or has differently, None if it has all.
        Of a compacted partition it is about the newest record of each key.

        Batches below `log_start` may be missing: retention has deleted them.
        """
        if self.keyed is not None:
            bound = max(self.high_watermark, self.claimed)
            end = self.high_watermark
            offset = self.keyed.missing_from(image, end, end, bound)
            return None if offset is None else self._batch_at(offset)
        first = bisect_left(self.committed, max(log_start, self.log_start), key=_last_offset)
        wanted = self.committed[first:]
        if not wanted:
            return None
        start = image.index_of(wanted[0].base_offset)
        kept = image.batches[start : start + len(wanted)]
        if kept == wanted:
            return None
        same = next((n for n, (a, b) in enumerate(zip(wanted, kept, strict=False)) if a != b), None)
        return wanted[len(kept) if same is None else same]

    def _batch_at(self, offset: int) -> Batch:
        index = bisect_left(self.committed, offset, key=_last_offset)
        if index < len(self.committed) and self.committed[index].base_offset <= offset:
            return self.committed[index]
        return Batch(offset, offset, NEVER, 0, 0)  # only a client was told of it

    @property
    def led_epoch(self) -> int | None:
        """The leader epoch in ZooKeeper, None while there is no leader. An epoch that was set back
        may be that of an earlier leader, which still runs and does not know that it was deposed."""
        return self.state.leader_epoch if self.state.leader != NO_LEADER else None

    def may_be_led_again(self, epoch: int, images: Images) -> bool:
        """Whether an epoch may have a second leader: a state was set back, and no log shows it."""
        stored = images.stored(self.partition).values()
        has_records = any(image.batches and image.batches[-1].epoch >= epoch for image in stored)
        return self.was_set_back and not has_records

    def settle(self) -> list[tuple[int, bytes]]:
        """Return what clients have seen and is committed now, to be compared with `values`."""
        reached = [(o, told) for o, told in self.unsettled.items() if o < self.high_watermark]
        for offset, _ in reached:
            del self.unsettled[offset]
        return reached

    def cut_to(self, image: LogImage, log_start: int) -> int:
        """Excuse a loss: this log is the truth from now on. Returns the number of lost records."""
        missing = self.missing_from(image, log_start)
        lost = 0
        if missing is not None:
            lost = self.high_watermark - missing.base_offset
            first = bisect_left(self.committed, missing.base_offset, key=_last_offset)
            del self.committed[first:]
            self.high_watermark = missing.base_offset
            if self.keyed is not None:
                self.keyed.forget_from(missing.base_offset)
        self.claimed = min(self.claimed, self.high_watermark)
        for known in (self.values, self.acked, self.consumed, self.unsettled):
            for offset in [o for o in known if o >= self.high_watermark]:
                if image.label_at(offset) != known[offset]:
                    self.lost.add((offset, known.pop(offset)))
        return lost


# ---- an older copy of ZooKeeper, once all brokers start with it
#
# The copy's ISRs are of no account: their members may have fallen behind since, or lost records.
# What was acknowledged and consumed stays as it was, and the leaders of the next epochs must have
# it. Those epochs are above all that a log has records of; one without records may be given again.


def accept_copy(
    view: View,
    images: Images,
    truths: MutableMapping[TopicPartition, Truth],
    forgot_at: MutableMapping[int, int],
    is_new: Callable[[StateChange], None],
) -> None:
    """Take over the states of the copy. Partitions that it does not have exist no more."""
    view.changes()
    for broker_id, zxid in forgot_at.items():
        forgot_at[broker_id] = min(zxid, view.zxid)
    changes = {change.partition: change for change in view.states()}
    for partition in [known for known in truths if known not in changes]:
        del truths[partition]
    for partition, change in changes.items():
        truth = truths.get(partition)
        if truth is not None and truth.topic_id == change.topic_id:
            _take_over(truth, change, forgot_at)
            _forget_epochs_without_records(truth, images)
        else:
            truths.pop(partition, None)
            is_new(change)
            truths[partition].is_in_doubt = truths[partition].is_restored = True


def _take_over(truth: Truth, change: StateChange, forgot_at: Mapping[int, int]) -> None:
    assert change.state is not None
    truth.state, truth.replicas = change.state, change.replicas
    truth.let_lapse(None, change.state, forgot_at)
    truth.is_in_doubt = truth.is_restored = True


def _forget_epochs_without_records(truth: Truth, images: Images) -> None:
    stored = images.stored(truth.partition).values()
    newest = max((image.batches[-1].epoch for image in stored if image.batches), default=-1)
    for known in (truth.elected, truth.led):
        for epoch in [epoch for epoch in known if epoch > newest]:
            del known[epoch]


def end_doubt(truth: Truth, replicas: Sequence[Replica]) -> None:
    """End the doubt once a leader of the present epoch, and all of the ISR, have everything."""
    known = {replica.broker_id: replica for replica in replicas}
    leader = known.get(truth.state.leader)
    truth.is_in_doubt = truth.is_in_doubt and not (
        leader is not None
        and leader.led_epoch == truth.state.leader_epoch
        and leader.high_watermark >= truth.high_watermark
        and all(
            member in known and known[member].log_end >= truth.high_watermark
            for member in truth.state.isr
        )
    )
