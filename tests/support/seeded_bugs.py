"""Known bugs, restored in the real code for as long as a `with` lasts.

    with SEEDED_BUGS["M1"].planted():
        run_seed(7)

Each replaces a decision, or a step, by the one before the KIP that fixed it. None of this is in the
product: a bug is a patch by name, and a name that no longer exists is an error. A simulator and a
checker that do not find these bugs are not finished.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from barnabas_broker.log.checkpoint.checkpoint_file import CheckpointFile
from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, EpochEnd, LeaderEpochCache
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica import controller_fence, roles
from barnabas_broker.replica.follower import follower
from barnabas_broker.replica.follower.truncation import Truncation, TruncationPolicy
from barnabas_broker.replica.leader import isr_changes, last_replica
from barnabas_broker.replica.leader.in_sync import InSyncReplicas
from barnabas_broker.replica.partition import partition
from barnabas_broker.replica.serve import follower_fetch
from barnabas_common.record.batch import Buffer
from barnabas_common.runtime import Offload
from barnabas_controller.partitions import alter_partition
from barnabas_controller.store import fenced_store, znodes
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import ANY_VERSION, Check

Patch = tuple[object, str, Any]
"""In what, which name, and what it is instead."""


@dataclass(frozen=True)
class SeededBug:
    """`reopens` names the KIP, or the rule, that fixes the bug."""

    name: str
    reopens: str
    patches: Callable[[], list[Patch]]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Put the bug into the code until the end of the `with`."""
        with ExitStack() as stack:
            for target, name, instead in self.patches():
                assert name in vars(target), f"{self.name}: {target} has no {name} any more"
                stack.callback(setattr, target, name, vars(target)[name])
                setattr(target, name, instead)
            yield


def _truncate_to_high_watermark() -> list[Patch]:
    """M1:

    a follower truncates to its own high watermark, and its fetches carry no epoch (KIP-101).
    """

    def start_of_fetching(_self: Any, _latest: Any, _end: int, high_watermark: int) -> int:
        return high_watermark

    def last_fetched_epoch(_self: Any, _latest: Any) -> int:
        return UNDEFINED

    return [
        (TruncationPolicy, "start_of_fetching", start_of_fetching),
        (TruncationPolicy, "last_fetched_epoch", last_fetched_epoch),
    ]


def _one_step_lookup() -> list[Patch]:
    """M2: the leader's answer is an offset without an epoch (KIP-279).

    A follower that has no record of the epoch that the leader means truncates too little, and
    does not ask again.
    """

    def truncation(leader: EpochEnd, _local: EpochEnd, end: int, offset: int) -> Truncation:
        return Truncation(min(offset if leader.end_offset < 0 else leader.end_offset, end), True)

    def diverges(_last_fetched_epoch: int, fetch_offset: int, leader: EpochEnd) -> bool:
        return leader.end_offset < fetch_offset

    return [(follower, "truncation", truncation), (follower_fetch, "diverges", diverges)]


def _unfenced_fetch() -> list[Patch]:
    """M3: no broker compares the leader epoch of a fetch with its own (KIP-320).

    As in Kafka, none compares the epoch of a role with its log either, nor a follower the epochs of
    the batches with its leader's. Both would hide the same schedule.
    """
    return [
        (partition, "check_leader_epoch", lambda _requested, _local: None),
        (roles, "is_below_log", lambda *_: False),
        (TruncationPolicy, "highest_epoch", lambda *_: None),
    ]


def _admit_at_high_watermark() -> list[Patch]:
    """M4: a follower joins the ISR at the high watermark (KIP-207, rule 4 of KIP-320).

    A new leader's high watermark is behind the true one until it has passed the start of its epoch.
    """

    def is_follower_in_sync(
        log_end_offset: int, high_watermark: int, _epoch_start_offset: int
    ) -> bool:
        return log_end_offset >= high_watermark

    return [(isr_changes, "is_follower_in_sync", is_follower_in_sync)]


def _ignore_proposed_members() -> list[Patch]:
    """M5: the high watermark waits for the committed ISR, not for proposed members (KIP-497)."""
    return [(InSyncReplicas, "maximal", property(lambda isr: isr.committed))]


def _trust_fetches_of_earlier_incarnations() -> list[Patch]:
    """A replica is admitted to the ISR by fetches of an incarnation that has ended (KIP-903)."""
    return [(alter_partition, "with_stale_broker_epoch", lambda _item, _broker_epochs: [])]


def _trust_the_page_cache() -> list[Patch]:
    """The last replica standing does not flush (KIP-966)."""
    return [(last_replica, "isr_requires_flush", lambda _in_sync, _minimum, _replicas: False)]


def _ignore_controller_epoch() -> list[Patch]:
    """M6:

    brokers accept the requests of any controller, and no write checks `/controller_epoch`.
    """

    def fence_of(_epoch: Any) -> Check:
        return Check(znodes.CONTROLLER_EPOCH, ANY_VERSION)

    return [
        (controller_fence, "is_controller_epoch_stale", lambda _sent, _newest: False),
        (fenced_store, "fence_of", fence_of),
    ]


def _ignore_broker_epoch() -> list[Patch]:
    """M7: a broker accepts requests for its earlier incarnation (KIP-380)."""
    return [(controller_fence, "is_broker_epoch_stale", lambda _meant_for, _own: False)]


def _checkpoint_in_place() -> list[Patch]:
    """M11: a checkpoint is overwritten in place: no new file, no fsync, no rename."""

    def write(self: Any, data: bytes) -> None:
        file = self._disk.open(self.path, create=True)
        file.truncate(0)
        file.append([data])
        file.close()

    async def write_in_background(
        self: Any,
        content: Callable[[], bytes],
        _: Offload,
        replaced: Callable[[], None] = lambda: None,
    ) -> None:
        write(self, content())
        replaced()

    return [
        (CheckpointFile, "write", write),
        (CheckpointFile, "write_in_background", write_in_background),
    ]


def _keep_epochs_of_what_was_cut() -> list[Patch]:
    """M12: the epoch cache is not truncated with the log (KIP-101)."""
    return [(LeaderEpochCache, "truncate_from_end", lambda _cache, _end_offset: False)]


def _arm_watch_after_read() -> list[Patch]:
    """M13: a watch is armed by a second read, after the one whose answer is used.

    A change between the two reads is missed.
    """

    def late(name: str) -> Callable[..., Awaitable[Any]]:
        read = vars(Store)[name]

        async def read_then_arm(self: Store, path: str, watch: Any = None) -> Any:
            found = await read(self, path)
            if watch is not None:
                await read(self, path, watch)
            return found

        return read_then_arm

    return [(Store, name, late(name)) for name in ("children", "get", "exists")]


def _take_ambiguous_for_failed() -> list[Patch]:
    """M16: a write counts as failed if its answer was lost and the retry is refused.

    The first attempt had been applied.
    """

    async def holds(_self: FencedStore, _partition: Any, _state: Any) -> bool:
        return False

    return [(FencedStore, "_holds", holds)]


def _know_no_producers_of_the_leader() -> list[Patch]:
    """M8: a follower does not read the producers in what it fetches, nor when it becomes leader
    (KIP-98)."""
    append_as_follower = UnifiedLog.append_as_follower

    def append(self: UnifiedLog, records: Buffer, leader_epoch: int | None = None) -> None:
        note, self.producers.note = self.producers.note, lambda *_: None  # type: ignore[method-assign]
        try:
            append_as_follower(self, records, leader_epoch)
        finally:
            self.producers.note = note  # type: ignore[method-assign]

    return [(UnifiedLog, "append_as_follower", append)]


SEEDED_BUGS = {
    bug.name: bug
    for bug in (
        SeededBug("M1", "KIP-101", _truncate_to_high_watermark),
        SeededBug("M2", "KIP-279", _one_step_lookup),
        SeededBug("M3", "KIP-320", _unfenced_fetch),
        SeededBug("M4", "KIP-207, KIP-320", _admit_at_high_watermark),
        SeededBug("M5", "KIP-497", _ignore_proposed_members),
        SeededBug("M6", "controller epoch", _ignore_controller_epoch),
        SeededBug("M7", "KIP-380", _ignore_broker_epoch),
        SeededBug("M8", "KIP-98", _know_no_producers_of_the_leader),
        SeededBug("M11", "atomic checkpoints", _checkpoint_in_place),
        SeededBug("M12", "KIP-101", _keep_epochs_of_what_was_cut),
        SeededBug("M13", "ZooKeeper's watches", _arm_watch_after_read),
        SeededBug("M16", "ambiguous writes", _take_ambiguous_for_failed),
        SeededBug("Join race", "KIP-903", _trust_fetches_of_earlier_incarnations),
        SeededBug("Last replica standing", "KIP-966", _trust_the_page_cache),
    )
}
