"""Slips in replication: the ISR, the high watermark, fetch sessions, the purgatory."""

from tests.support.single_line_bugs.bug import SingleLineBug

REPLICA = (
    SingleLineBug(
        "high-watermark-saved-at-the-end",
        "log/manager/offset_checkpoints.py",
        "            return log.high_watermark\n",
        "            return log.log_end_offset\n",
        "a restarted replica takes records for committed that are not",
    ),
    SingleLineBug(
        "high-watermark-not-sent",
        "replica/fetch_session.py",
        "entry.sent_high_watermark = answer.high_watermark\n",
        "entry.sent_high_watermark = NOTHING_SENT if log is None else log.high_watermark\n",
        "an idle follower is not sent a high watermark that moved behind the answer",
    ),
    SingleLineBug(
        "new-partition-not-looked-at",
        "replica/fetch_session.py",
        "            self.changed[entry] = None\n        for item in request.forgotten:\n",
        "                self.changed[entry] = None\n        for item in request.forgotten:\n",
        "a partition that a session names for the first time is not read",
    ),
    SingleLineBug(
        "acknowledged-one-record-early",
        "replica/serve/produce_path.py",
        "required_offset = appended.last_offset + 1",
        "required_offset = appended.last_offset",
        "a produce is answered before its last record is committed",
    ),
    SingleLineBug(
        "partition-epoch-of-the-proposal",
        "replica/leader/isr_changes.py",
        "InSyncReplicas(tuple(answer.in_sync_replicas)), answer.partition_epoch",
        "InSyncReplicas(tuple(answer.in_sync_replicas)), partition_epoch",
        "a leader's next ISR change names a partition epoch that is over",
    ),
    SingleLineBug(
        "timer-of-the-first-deadline",
        "replica/deadlines.py",
        "        if deadline < self._timer_at:\n",
        "        if self._timer is None:\n",
        "a parked request waits for the deadline of another one",
    ),
)
