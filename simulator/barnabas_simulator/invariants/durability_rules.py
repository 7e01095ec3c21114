"""Invariants of durability: I4, I4b, I9, I12; I20 and I21 of the checkpoint files."""

import posixpath
from collections.abc import Callable, Mapping

from barnabas_broker.log.checkpoint.checkpoint_file import decode_epochs, decode_offsets
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.disk import NONSENSE, MemoryDisk
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.labels import key_of


@rule("I4 LeaderCompleteness")
def leader_completeness(leader: Replica, image: LogImage, truth: Truth) -> str | None:
    """A new leader has every committed and every acknowledged record, byte for byte. (Vanlightly,
    LeaderCompleteness.)"""
    return _lacks(leader, image, truth)


@rule("I4b CandidateCompleteness")
def candidate_completeness(
    member: Replica,
    state: LeaderAndIsr,
    true_high_watermark: int,
    lost_nothing_since: Callable[[int], int],
) -> str | None:
    """Every running member of ZooKeeper's ISR, and every eligible replica outside it (KIP-966), has
    all records below the true high watermark, because it may be elected at any moment. (Vanlightly,
    LeaderCandidateCompleteness.)

    Elections pass over a broker that has registered as one that lost something since its replica
    last proved to be in sync. `lost_nothing_since`: what the registration of a broker says.
    """
    may_lead = member.broker_id in state.isr or member.broker_id in state.eligible
    if not may_lead or member.log_end >= true_high_watermark:
        return None
    proved_at = state.proved_at.get(member.broker_id)
    if proved_at is not None and lost_nothing_since(member.broker_id) > proved_at:
        return None
    return (
        f"a replica that may be elected ends below the true high watermark {true_high_watermark};"
        f" {state}; {member}"
    )


@rule("I9 NoGlobalLoss")
def no_global_loss(stored: Mapping[int, LogImage], truth: Truth) -> str | None:
    """Some disk has every committed record. (Vanlightly, NoCommittedRecordLostGlobally.)"""
    if not truth.committed:
        return None
    missing = {}
    for broker_id, image in stored.items():
        start = image.batches[0].base_offset if image.batches else 0
        lacks = truth.missing_from(image, start)
        if lacks is None:
            return None
        missing[broker_id] = lacks.base_offset
    return f"no disk has all below {truth.high_watermark}; each lacks what begins at: {missing}"


@rule("I9 NoGlobalLoss")
def isr_has_everything(member: Replica, image: LogImage, truth: Truth) -> str | None:
    """At rest every member of the ISR has every committed and every acknowledged record."""
    return _lacks(member, image, truth)


def _lacks(replica: Replica, image: LogImage, truth: Truth) -> str | None:
    if replica.log_end < truth.high_watermark:
        return f"the log ends below the true high watermark {truth.high_watermark}; {replica}"
    missing = truth.missing_from(image, replica.log_start)
    if missing is not None:
        return f"the committed {missing} is not in the log; {replica}"
    for offset, told in truth.unsettled.items():
        if offset < truth.log_start:
            continue  # a deposed leader committed it, and retention has deleted it
        value = image.label_at(offset)
        is_superseded = (
            truth.keyed is not None
            and value is None
            and image.has_later(key_of(told) or b"", offset, replica.log_end)
        )
        if value != told and not is_superseded:
            return f"a client was told of {told!r} at {offset}, the log has {value!r}; {replica}"
    return None


@rule("I12 ConsistentRead")
def consistent_read(truth: Truth, offset: int, value: bytes) -> str | None:
    """An offset always has one value: the same for its producer, for every reader, and below the
    true high watermark. (Vanlightly, ConsistentRead.)"""
    for what, known in (
        ("acknowledged", truth.acked),
        ("consumed", truth.consumed),
        ("committed", truth.values),
    ):
        if known.get(offset, value) != value:
            return f"at offset {offset} there is {value!r}, but {known[offset]!r} was {what}"
    return None


@rule("I21 RecoveryPointIsFlushed")
def recovery_points_are_flushed(
    path: str, recovery_points: Mapping[TopicPartition, int], images: Mapping[str, LogImage]
) -> str | None:
    """Below a recovery point on the disk everything is flushed, files and names: after a power loss
    recovery does not read it. (Kafka's `UnifiedLog.flush` before `updateRecoveryPoint`.)

    `images` by the name of the folder; a log without one is being deleted.
    """
    for partition, recovery_point in recovery_points.items():
        image = images.get(str(partition))
        if image is not None and recovery_point > image.durable_end:
            return (
                f"{path}: the recovery point of {partition} is {recovery_point}, and a power loss"
                f" would leave the log below {image.durable_end} of {image.end}"
            )
    return None


CHECKPOINTS = {
    "replication-offset-checkpoint": decode_offsets,
    "recovery-point-offset-checkpoint": decode_offsets,
    "log-start-offset-checkpoint": decode_offsets,
    "cleaner-offset-checkpoint": decode_offsets,
    "leader-epoch-checkpoint": decode_epochs,
}


@rule("I20 Disk")
def checkpoints_parse(disk: MemoryDisk, directory: str) -> str | None:
    """After any crash each checkpoint file is one that was written: old or new, never mixed, never
    truncated."""
    for name, stored in disk.look_into(directory).items():
        if name in CHECKPOINTS:
            data = bytes(stored.sound)
            if data == NONSENSE:  # written by a fault, and reported at the broker's next start
                continue
            try:
                CHECKPOINTS[name](data)
            except MalformedCheckpoint as error:
                return f"{posixpath.join(directory, name)}: {error}; it holds {data!r}"
            if not data.endswith(b"\n"):
                return f"{posixpath.join(directory, name)} is cut short; it holds {data!r}"
    return None
