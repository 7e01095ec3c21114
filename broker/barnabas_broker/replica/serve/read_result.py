"""What the fetches of followers and consumers share: the read, and the answer if it is refused."""

from barnabas_common.errors import CorruptMessageError, KafkaError
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.epochs.batch_epochs import first_wrong_epoch
from barnabas_broker.replica.damaged_replicas import DamagedReplicas, first_damage
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_broker.replica.partition.partitions import Partitions


def read_records(
    leadership: Leadership,
    damaged: DamagedReplicas,
    offset: int,
    limit: int,
    end: int,
    at_least_one: bool,
    *,
    checked: int | None,
) -> bytes:
    """Whole batches from `offset` on, all of them below `end`; see `UnifiedLog.read`.

    Checks the checksums of the first `checked` batches; if it is None, those of all, and their
    epochs. Raises the error that `damaged` has for the reader if the log is damaged.
    """
    try:
        records = leadership.log.read(offset, limit, end, at_least_one)
        if at_least_one and not records and leadership.log.is_gap(offset, end):
            return records
    except CorruptMessageError as error:
        raise damaged.found(leadership, offset, error.message) from error
    must_look = checked != 0 or (at_least_one and not records)
    damage = first_damage(records, offset, at_least_one, checked) if must_look else None
    if damage is None and checked is None:
        damage = first_wrong_epoch(records, leadership.epoch, leadership.log.leader_epochs)
    if damage is not None:
        raise damaged.found(leadership, *damage)
    return records


def refused_fetch(
    key: TopicPartition, error: KafkaError, partitions: Partitions
) -> FetchedPartition:
    """Answer for a partition that cannot be read; names the leader if that is the reason."""
    hint = partitions.leader_hint(key, error.code)
    return FetchedPartition(
        *key,
        error_code=error.code,
        current_leader_id=hint.leader_id,
        current_leader_epoch=hint.leader_epoch,
    )
