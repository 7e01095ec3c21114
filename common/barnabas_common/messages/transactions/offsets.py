"""TxnOffsetCommit: offsets that count once the producer's transaction is committed."""

from dataclasses import dataclass, field

from barnabas_common.messages.transactions.partitions import TransactionPartitionResult


@dataclass(slots=True)
class TxnOffsetCommitPartition:
    """`committed_offset` is that of the next record to read."""

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str = ""


@dataclass(slots=True)
class TxnOffsetCommitRequest:
    """Without a generation and a member no membership is checked (KIP-447)."""

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str = ""
    partitions: list[TxnOffsetCommitPartition] = field(default_factory=list)


@dataclass(slots=True)
class TxnOffsetCommitResponse:
    partitions: list[TransactionPartitionResult] = field(default_factory=list)
