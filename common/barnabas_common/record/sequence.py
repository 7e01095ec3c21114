"""The sequence numbers of an idempotent producer's records: after 2^31 - 1 comes 0 (KIP-98)."""

from barnabas_common.record.batch import BatchHeader

MAX_SEQUENCE = 2**31 - 1
NO_SEQUENCE = -1


def sequence_after(sequence: int, count: int) -> int:
    """The sequence that is `count` records later."""
    return (sequence + count) & MAX_SEQUENCE


def sequence_before(sequence: int, count: int) -> int:
    """The sequence that is `count` records earlier."""
    return (sequence - count) & MAX_SEQUENCE


def last_sequence_of(header: BatchHeader) -> int:
    """The sequence of the batch's last record, also after compaction; -1 if it has none, as
    coordinators write it."""
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return sequence_after(header.base_sequence, header.last_offset_delta)
