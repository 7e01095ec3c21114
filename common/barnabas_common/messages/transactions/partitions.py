"""A partition, and what became of it."""

from dataclasses import dataclass


@dataclass(slots=True)
class TransactionPartition:
    topic: str
    partition: int


@dataclass(slots=True)
class TransactionPartitionResult:
    topic: str
    partition: int
    error_code: int = 0
