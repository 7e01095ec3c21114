"""The leader epochs of the batches that recovery reads, and those among them that cannot be right.

No checksum covers a batch's leader epoch. A changed bit in it could make a log seem newer than all
others, and they would truncate committed records to follow it. In a log epochs never go down. They
rise in small steps; an election by the logs may raise them by many, and soon after that the epoch
file has the new one. What that file says of an offset also decides which of two epochs is wrong.

The file has all epochs below the recovery point and the checkpointed high watermark. If one batch
there contradicts it, or several that do not follow each other, their epochs are wrong. If several
in a row do, the file is wrong: it is an older one, or one of its numbers has changed. A damaged log
that is not in the ISR is compared up to its end: what is cut off can be fetched again.

Not recognized: in the batches above, an epoch that is a little too high at the end of the log, or
that of its neighbour where one epoch ends and the next begins; and any that never goes down, if
there is no file.
"""

from barnabas_common.record.batch import BatchHeader, CorruptBatch

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, LeaderEpochCache
from barnabas_broker.log.recovery.stored_epochs import FAR, OutdatedEpochs


class WrongEpoch(Exception):
    """The batches from `offset` on have a leader epoch that cannot be right. They have been read
    already: the log is to be read again, up to there."""

    def __init__(self, offset: int, fault: str) -> None:
        super().__init__(fault)
        self.offset = offset


class EpochScan:
    """Adds the epochs of new batches to `epochs`, those of the file below the recovery point.

    `stored`: all epochs of the file; it has those of the batches below `complete_below`. `wrong`
    and `is_file_wrong`: what an earlier reading of this log has found.
    """

    def __init__(
        self,
        epochs: LeaderEpochCache,
        stored: LeaderEpochCache,
        complete_below: int,
        wrong: WrongEpoch | None,
        is_file_wrong: bool,
    ) -> None:
        self._epochs = epochs
        self._stored = stored
        self._complete_below = complete_below
        self._wrong = wrong
        self._is_file_wrong = is_file_wrong
        self._contradiction: WrongEpoch | None = None
        """The first batch that contradicts the file."""
        self._contradictions = 0
        self._rows = 0
        """Of how many rows of successive batches they are."""
        self._contradicted = False
        """Whether the last batch did."""
        self._before: BatchHeader | None = None
        self._run_start = 0
        """Where the batches begin that have the epoch of the one before."""

    def note(self, header: BatchHeader) -> None:
        """Take the next batch of the log.

        Raises:
            CorruptBatch: its epoch cannot be right.
            WrongEpoch: that of the batches before it cannot.
        """
        epoch, offset, before = header.partition_leader_epoch, header.base_offset, self._before
        if epoch < 0:
            raise CorruptBatch(f"leader epoch {epoch} at offset {offset}")
        if self._wrong is not None and offset >= self._wrong.offset:
            raise CorruptBatch(str(self._wrong))
        if before is not None and epoch < before.partition_leader_epoch:
            self._goes_down(header, before)
        known = self._epochs.latest_epoch()
        latest = UNDEFINED if known is None else known
        if epoch > latest + FAR and self._contradicts_file(header):
            raise CorruptBatch(f"leader epoch {epoch} at offset {offset}, after {latest}")
        if epoch > latest:
            self._epochs.assign(epoch, offset)
        if before is None or epoch != before.partition_leader_epoch:
            self._run_start = offset
        self._before = header
        self._compare(header)

    def finish(self) -> None:
        """Judge the batches that contradict the file.

        Raises:
            WrongEpoch: their epochs are wrong.
            OutdatedEpochs: the file is, and it is not known yet.
        """
        if self._contradiction is None:
            return
        if self._contradictions == 1 or self._rows > 1:
            raise self._contradiction
        if not self._is_file_wrong:
            raise OutdatedEpochs(str(self._contradiction))

    def found_below(self, end_offset: int) -> bool:
        """Whether an earlier reading has found a wrong epoch below `end_offset`."""
        return self._wrong is not None and self._wrong.offset < end_offset

    def _compare(self, header: BatchHeader) -> None:
        is_known = header.last_offset < self._complete_below
        contradicts = is_known and self._contradicts_file(header)
        if contradicts:
            self._contradictions += 1
            self._rows += not self._contradicted
        if contradicts and self._contradiction is None:
            epoch, stored = header.partition_leader_epoch, self._stored_epoch(header)
            fault = f"leader epoch {epoch} at offset {header.base_offset}, and {stored} in the file"
            self._contradiction = WrongEpoch(header.base_offset, fault)
        self._contradicted = contradicts

    def _goes_down(self, header: BatchHeader, before: BatchHeader) -> None:
        fault = (
            f"leader epoch {before.partition_leader_epoch} at offset {self._run_start}, and"
            f" {header.partition_leader_epoch} at offset {header.base_offset}"
        )
        if self._is_stored(before):
            raise CorruptBatch(fault)
        raise WrongEpoch(self._run_start, fault)

    def _contradicts_file(self, header: BatchHeader) -> bool:
        return self._stored_epoch(header) not in (None, header.partition_leader_epoch)

    def _is_stored(self, header: BatchHeader) -> bool:
        return self._stored_epoch(header) == header.partition_leader_epoch

    def _stored_epoch(self, header: BatchHeader) -> int | None:
        return self._stored.epoch_for_offset(header.last_offset)
