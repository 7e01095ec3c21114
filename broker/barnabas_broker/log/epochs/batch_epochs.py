"""The leader epochs in batches, which are not under a checksum.

In a log they never go down, and none is above its leader's.
"""

from collections.abc import Iterable

from barnabas_common.record.batch import BatchHeader, Buffer, CorruptBatch, batches

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, LeaderEpochCache


def check_epochs(headers: Iterable[BatchHeader], leader_epoch: int) -> None:
    """Raise CorruptBatch if the epochs of successive batches cannot be right."""
    lowest = UNDEFINED
    for header in headers:
        epoch = header.partition_leader_epoch
        if not lowest <= epoch <= leader_epoch:
            raise CorruptBatch(
                f"batch at offset {header.base_offset} has leader epoch {epoch}, not one from"
                f" {lowest} to {leader_epoch}"
            )
        lowest = epoch


def first_wrong_epoch(
    records: Buffer, leader_epoch: int, known: LeaderEpochCache
) -> tuple[int, str] | None:
    """Where the first batch of a leader's own log begins that has a wrong epoch, and the fault.

    Of two whose epochs go down one is wrong: the one that has not what the log's epochs say.
    """
    headers = [header for _, header in batches(records)]
    try:
        check_epochs(headers, leader_epoch)
    except CorruptBatch as error:
        for header in headers:
            if header.partition_leader_epoch != known.epoch_for_offset(header.last_offset):
                return header.base_offset, str(error)
    return None
