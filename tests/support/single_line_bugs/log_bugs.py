"""Slips in the log: checkpoints, epochs, producers, flushes, compaction."""

from tests.support.single_line_bugs.bug import SingleLineBug

LOG = (
    SingleLineBug(
        "recovery-point-at-the-end",
        "log/unified_log.py",
        "self.recovery_point = max(self.recovery_point, plan.end_offset)",
        "self.recovery_point = max(self.recovery_point, self.log_end_offset)",
        "the recovery point covers what was appended while the flush was under way",
    ),
    SingleLineBug(
        "names-made-during-a-flush",
        "log/unified_log.py",
        "self._durable_names = max(self._durable_names, plan.names_version)",
        "self._durable_names = max(self._durable_names, self._local.names_version)",
        "a segment created during a flush counts as durable by name",
    ),
    SingleLineBug(
        "recovery-point-above-a-truncation",
        "log/unified_log.py",
        "        self.recovery_point = min(self.recovery_point, offset)\n",
        "",
        "after a truncation what is written next counts as flushed",
    ),
    SingleLineBug(
        "epoch-found-one-too-late",
        "log/epochs/leader_epoch_cache.py",
        "following = bisect_right(self._entries, epoch, key=_epoch)",
        "following = bisect_right(self._entries, epoch - 1, key=_epoch)",
        "a leader says of an epoch that it has that it ends where it begins",
    ),
    SingleLineBug(
        "two-epochs-at-one-offset",
        "log/epochs/leader_epoch_cache.py",
        "self._entries[-1].start_offset >= start_offset\n",
        "self._entries[-1].start_offset > start_offset\n",
        "an epoch without records stays in the cache beside its successor",
    ),
    SingleLineBug(
        "snapshot-not-copied",
        "log/producers/producer_state_manager.py",
        "entries = list(self.entries.values())",
        "entries = self.entries.values()",
        "a snapshot has producers of batches above its offset",
    ),
    SingleLineBug(
        "batches-of-the-epoch-before",
        "log/producers/producer_state.py",
        "if producer[1] == header.producer_epoch and producer[3] >= 0:",
        "if producer[3] >= 0:",
        "a batch of a new producer epoch is taken for a retry of one of the epoch before",
    ),
    SingleLineBug(
        "marker-at-the-high-watermark",
        "log/producers/transactions.py",
        "if marker_offset >= high_watermark:",
        "if marker_offset > high_watermark:",
        "the last stable offset passes a transaction whose marker is not committed",
    ),
    SingleLineBug(
        "compaction-of-the-unflushed",
        "log/manager/log_cleaner.py",
        "return min(log.last_stable_offset, log.recovery_point)",
        "return log.last_stable_offset",
        "a pass removes records because of later ones that a power loss takes",
    ),
    SingleLineBug(
        "log-start-of-the-first-segment",
        "log/recovery/log_loader.py",
        "log_start_offset = max(checkpoint.log_start_offset, segments[0].base_offset)",
        "log_start_offset = segments[0].base_offset",
        "after a restart the log begins again with records that were deleted",
    ),
)
