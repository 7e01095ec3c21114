"""Opposites of the rules of replication: epochs, followers, consumers, and bad input."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-replication.md"
_EPOCH_CACHE = "log/epochs/leader_epoch_cache.py"
_TRUNCATION = "replica/follower/truncation.py"

EPOCH_CACHE = Section(
    _TABLE,
    "8. The leader epoch cache",
    (
        opposite(
            "A new entry removes those of the same or a later epoch",
            _EPOCH_CACHE,
            "self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset",
            "False",
            "unit/test_leader_epoch_cache.py::test_an_epoch_drops_what_contradicts_it",
        ),
        opposite(
            "Where an epoch ended",
            _EPOCH_CACHE,
            "known = self._entries[following - 1].epoch if following else epoch",
            "known = epoch",
            "unit/test_leader_epoch_cache.py::test_where_an_epoch_ended",
        ),
        opposite(
            "Where an epoch ended",
            _EPOCH_CACHE,
            "            return EpochEnd(epoch, log_end_offset)\n",
            "            return EpochEnd(epoch, self._entries[-1].start_offset)\n",
            "unit/test_leader_epoch_cache.py::test_where_an_epoch_ended",
        ),
        opposite(
            "Truncation from the end, and from the start",
            _EPOCH_CACHE,
            "self._entries[-1].start_offset >= end_offset:",
            "self._entries[-1].start_offset > end_offset:",
            "unit/test_leader_epoch_cache.py::test_truncation_from_the_end_drops_epochs_that_start_there",
        ),
        opposite(
            "Truncation from the end, and from the start",
            _EPOCH_CACHE,
            "self._entries[:following] = [kept]",
            "self._entries[:following] = []",
            "unit/test_leader_epoch_cache.py::test_truncation_from_the_start_keeps_the_epoch_of_the_first_offset",
        ),
        opposite(
            "Truncating at the log end removes epochs",
            "log/unified_log.py",
            "            if self.leader_epochs.truncate_from_end(self.log_end_offset):\n"
            "                self._epochs_changed()\n            return\n",
            "            return\n",
            "unit/test_log_truncation.py::test_nothing_to_cut_still_forgets_an_epoch_without_records",
        ),
        opposite(
            "The file is Kafka's; durable before",
            "log/recovery/stored_epochs.py",
            "        return None, str(error)\n",
            "        return LeaderEpochCache(), str(error)\n",
            "unit/test_damaged_checkpoints.py::test_damaged_epochs_are_read_from_the_batches_again",
        ),
        opposite(
            "The file is Kafka's; durable before",
            "log/checkpoint/checkpoint_file.py",
            'f"{epoch} {start_offset}"',
            'f"{start_offset} {epoch}"',
            "unit/test_leader_epoch_cache.py::test_the_checkpoint_is_kafkas",
        ),
        opposite(
            "The file is Kafka's; durable before",
            "log/unified_log.py",
            "            and self.epoch_file.durable_version >= plan.epoch_version\n",
            "",
            "unit/test_log_recovery.py::test_the_recovery_point_does_not_pass_epochs_that_are_not_saved",
        ),
        opposite(
            "The file is Kafka's; durable before",
            "log/manager/log_background_work.py",
            "                await log.epoch_file.write_in_background(self._offload)\n                await self._offload",
            "                await self._offload",
            "unit/test_log_manager_rounds.py::test_recovery_points_are_written_from_time_to_time_after_a_roll_has_flushed",
        ),
        opposite(
            "OffsetsForLeaderEpoch: the leader only",
            "replica/serve/offsets.py",
            "            leadership = partition.lead(item.current_leader_epoch)\n            epoch, end",
            "            leadership = partition.lead()\n            epoch, end",
            "simulation/test_answers_to_followers.py::test_where_an_epoch_ends_is_told_under_the_present_leader_epoch_only",
        ),
    ),
)

FETCHER = Section(
    _TABLE,
    "9. The follower's fetcher, and truncation",
    (
        opposite(
            "One loop per leader",
            "replica/follower/followed_partitions.py",
            "for key in keys if key in fetching}",
            "for key in list(keys)[:1] if key in fetching}",
            "simulation/test_replication.py::test_many_partitions_travel_together_and_idle_ones_cost_nothing",
        ),
        opposite(
            "An answer to a request of an earlier role",
            "replica/follower/followed_partitions.py",
            "if follower is None or self._session.requested(key) is not follower.position:",
            "if follower is None:",
            "unit/test_followed_partitions.py::test_an_answer_to_a_request_of_an_earlier_role_is_ignored",
        ),
        opposite(
            "A partition is truncating, fetching",
            "replica/follower/fetch_state.py",
            "    resumes_in = {TRUNCATING: TRUNCATING, DELAYED: current.resumes_in}"
            ".get(current.state, FETCHING)\n",
            "    resumes_in = FETCHING\n",
            "unit/test_fetch_state.py::test_a_delay_ends_in_the_state_it_interrupted",
        ),
        opposite(
            "A partition is truncating, fetching",
            "replica/follower/fetch_state.py",
            "and current.state is FETCHING:",
            "and True:",
            "unit/test_fetch_state.py::test_errors_lead_to_legal_states_only",
        ),
        opposite(
            "A fetch names a position only when",
            "replica/follower/followed_partitions.py",
            "            self._flush_if_due(key)\n",
            "            pass\n",
            "unit/test_follower_shortage.py::test_what_could_not_be_flushed_is_confirmed_only_when_it_is",
        ),
        opposite(
            "A corrupt batch delays its own partition only",
            "replica/follower/followed_partitions.py",
            '            self._failed(key, follower, error, "the fetched data was refused")\n',
            "            raise\n",
            "simulation/test_replication_faults.py::test_a_corrupt_batch_holds_up_its_own_partition_only_and_is_fetched_again",
        ),
        opposite(
            "Fenced: wait for LeaderAndIsr",
            "replica/follower/fetch_state.py",
            "    if error_code == ErrorCode.FENCED_LEADER_EPOCH:\n        return None\n",
            "",
            "unit/test_fetch_state.py::test_what_a_follower_does_about_an_error",
        ),
        opposite(
            "Fenced: wait for LeaderAndIsr",
            "replica/follower/fetch_state.py",
            "FIRST_BACKOFF if current.backoff is None else 2 * current.backoff",
            "FIRST_BACKOFF",
            "unit/test_fetch_state.py::test_a_series_of_errors_doubles_the_delay_up_to_the_limit",
        ),
        opposite(
            "The decision of one round",
            _TRUNCATION,
            "    if local.epoch == leader.epoch:\n",
            "    if True:\n",
            "unit/test_truncation.py::test_the_decision_of_one_round",
        ),
        opposite(
            "Over several epochs, one per round",
            "replica/follower/follower.py",
            "        return decision.complete\n",
            "        return True\n",
            "simulation/test_replication_truncation.py::test_the_lookup_asks_before_it_fetches_again_and_again_until_the_logs_agree",
        ),
        opposite(
            "By fetching (2.7 and later)",
            _TRUNCATION,
            "return self.asks_before_fetching and not self.by_high_watermark and latest_epoch is not None",
            "return False",
            "simulation/test_replication_truncation.py::test_the_lookup_asks_before_it_fetches_again_and_again_until_the_logs_agree",
        ),
        opposite(
            "By its own high watermark (before 0.11)",
            _TRUNCATION,
            "if self.by_high_watermark or self.asks_before_fetching or latest_epoch is None:",
            "if self.asks_before_fetching or latest_epoch is None:",
            "unit/test_truncation.py::test_by_high_watermark_the_follower_cuts_alone_and_no_epoch_travels",
        ),
        opposite(
            "By its own high watermark (before 0.11)",
            _TRUNCATION,
            "if self.by_high_watermark or latest_epoch is None:",
            "if latest_epoch is None:",
            "unit/test_truncation.py::test_by_high_watermark_the_follower_cuts_alone_and_no_epoch_travels",
        ),
        opposite(
            "By its own high watermark (before 0.11)",
            _TRUNCATION,
            "return self.asks_before_fetching and not self.by_high_watermark and latest_epoch is not None",
            "return self.asks_before_fetching and latest_epoch is not None",
            "unit/test_truncation.py::test_by_high_watermark_the_follower_cuts_alone_and_no_epoch_travels",
        ),
        opposite(
            "A truncation below the high watermark is done too",
            "replica/partition/partition.py",
            "            log.truncate_to(offset)\n",
            "            log.truncate_to(max(offset, high_watermark))\n",
            "simulation/test_truncation_switch.py::test_logs_fork_by_high_watermark_and_agree_by_epochs",
        ),
        opposite(
            "A truncation below the high watermark is done too",
            "replica/partition/partition.py",
            "        if offset < high_watermark:\n",
            "        if False:\n",
            "simulation/test_replication_truncation.py::test_committed_records_that_are_truncated_are_an_error",
        ),
    ),
)

OUT_OF_RANGE = Section(
    _TABLE,
    "10. Out of range",
    (
        opposite(
            "The leader ends earlier",
            _TRUNCATION,
            "    if leader_log_end_offset < log_end_offset:\n",
            "    if False:\n",
            "unit/test_truncation.py::test_out_of_range_cuts_restarts_or_goes_on",
        ),
        opposite(
            "The leader starts later",
            _TRUNCATION,
            "        return OutOfRange(restart_at=leader_log_start_offset)\n",
            "        return OutOfRange()\n",
            "simulation/test_replication_truncation.py::test_a_follower_behind_the_leaders_log_start_begins_again_there",
        ),
        opposite(
            "An empty follower appends a whole first batch",
            "replica/follower/follower.py",
            "                log.truncate_fully_and_start_at(base_offset)\n",
            "                pass\n",
            "simulation/test_moves_of_the_high_watermark.py::test_an_empty_follower_takes_the_whole_batch_in_which_its_leader_starts",
        ),
    ),
)

CONSUMERS = Section(
    _TABLE,
    "11. Consumers and epochs (KIP-320)",
    (
        opposite(
            "FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH",
            "consumer/subscription_state.py",
            "return FetchStep.RETRY if error_for(code).retriable else FetchStep.RAISE",
            "return FetchStep.RAISE",
            "unit/test_consumer_reading.py::test_passing_trouble_is_not_shown",
        ),
        opposite(
            "Under a new leader epoch the position is checked",
            "consumer/subscription_state.py",
            "            and leader_epoch not in (self.checked_epoch, self.fetched_epoch)\n",
            "            and False\n",
            "unit/test_consumer_positions.py::test_records_lost_in_an_unclean_election_are_reported",
        ),
        opposite(
            "What was read is lost",
            "consumer/subscription_state.py",
            "        state.blocked = True\n        return LogTruncationError(",
            "        state.seek(safe)\n        return None\n        return LogTruncationError(",
            "simulation/test_consumer_truncation.py::test_without_a_reset_policy_the_application_is_told_where_the_logs_part",
        ),
        opposite(
            "What was read is lost",
            "consumer/subscription_state.py",
            "        state.seek(safe)\n",
            "        state.await_reset(EARLIEST_TIMESTAMP)\n",
            "simulation/test_consumer_truncation.py::test_with_one_it_goes_on_where_the_logs_part",
        ),
    ),
)

CLASSICAL_FAILURES = Section(
    _TABLE,
    "12 to 14. The classical failures",
    (
        opposite(
            "A committed record is lost by truncating",
            _TRUNCATION,
            "        return log_end_offset\n",
            "        return high_watermark\n",
            "simulation/test_truncation_switch.py::test_an_acknowledged_record_is_lost_by_high_watermark_and_kept_by_epochs",
        ),
        opposite(
            "Two logs diverge after both lost power",
            _TRUNCATION,
            "return leader.epoch < last_fetched_epoch or leader.end_offset < fetch_offset",
            "return False",
            "simulation/test_truncation_switch.py::test_logs_fork_by_high_watermark_and_agree_by_epochs",
        ),
        opposite(
            "Three fast elections need the epoch",
            _TRUNCATION,
            "    if leader.epoch == UNDEFINED or local.end_offset == UNDEFINED:\n",
            "    if True:\n",
            "simulation/test_fast_leader_changes.py::test_replicas_agree_after_fast_leader_changes",
            "return leader.epoch < last_fetched_epoch or leader.end_offset < fetch_offset",
            "return leader.end_offset < fetch_offset",
        ),
    ),
)

BAD_INPUT = Section(
    _TABLE,
    "Bad input",
    (
        opposite(
            "A damaged checkpoint of high watermarks",
            "log/manager/offset_checkpoints.py",
            "            self.damaged[file.path] = str(error)\n            return {}\n",
            "            return {}\n",
            "unit/test_damaged_checkpoints.py::test_a_damaged_offset_checkpoint_costs_no_record",
        ),
        opposite(
            "... of log starts",
            "log/manager/directory_loader.py",
            "    if directory.checkpoints.has_damaged_log_starts:\n",
            "    if False:\n",
            "unit/test_log_compaction_starts.py::test_where_the_log_start_is_lost_everything_is_compacted_again",
        ),
        opposite(
            "... of log starts",
            "log/manager/log_cleaner.py",
            "        if max(stored(log.topic_partition), log.segment_offsets[0]) >= start:\n",
            "        if True:\n",
            "unit/test_log_compaction_starts.py::test_the_log_start_is_durable_before_what_is_above_it_counts_as_clean",
        ),
        opposite(
            "A damaged `leader-epoch-checkpoint`",
            "log/recovery/stored_epochs.py",
            "        return None, str(error)\n",
            '        return None, ""\n',
            "unit/test_damaged_checkpoints.py::test_damaged_epochs_are_read_from_the_batches_again",
        ),
        opposite(
            "A valid `leader-epoch-checkpoint`",
            "log/recovery/log_loader.py",
            "    check_not_outdated(epochs, segments)\n",
            "",
            "unit/test_damaged_checkpoints.py::test_so_are_epochs_from_before_the_last_one",
        ),
        opposite(
            "A valid `leader-epoch-checkpoint`",
            "log/recovery/log_loader.py",
            "            check_not_outdated(epochs, segments[:first])\n",
            "            pass\n",
            "unit/test_damaged_checkpoints.py::test_after_a_kill_older_epochs_are_noticed_too",
        ),
        opposite(
            "Leader epochs of batches that recovery reads",
            "log/recovery/epoch_scan.py",
            "            self._goes_down(header, before)\n",
            "            pass\n",
            "unit/test_damaged_epochs.py::test_above_the_high_watermark_it_finds_what_cannot_be_right_by_itself",
        ),
        opposite(
            "Leader epochs of batches that recovery reads",
            "log/recovery/epoch_scan.py",
            "        if epoch > latest + FAR and self._contradicts_file(header):\n",
            "        if False:\n",
            "unit/test_damaged_epochs.py::test_above_the_high_watermark_it_finds_what_cannot_be_right_by_itself",
        ),
        opposite(
            "... and so is the epoch of a batch below the checkpointed high watermark",
            "log/recovery/epoch_scan.py",
            "        if self._contradictions == 1 or self._rows > 1:\n",
            "        if False:\n",
            "unit/test_damaged_epochs.py::test_a_start_finds_it_and_changes_nothing",
        ),
        opposite(
            "... and so is the epoch of a batch below the checkpointed high watermark",
            "log/recovery/epoch_scan.py",
            "        if self._contradictions == 1 or self._rows > 1:\n",
            "        if True:\n",
            "unit/test_damaged_epochs.py::test_a_file_that_several_batches_contradict_is_an_older_one",
        ),
        opposite(
            "The checkpointed high watermark of a log is not raised before",
            "log/manager/offset_checkpoints.py",
            "        if log.epoch_file.is_durable:\n",
            "        if True:\n",
            "unit/test_high_watermark_checkpoint.py::test_a_line_is_not_raised_as_long_as_the_epoch_file_lacks_an_epoch",
        ),
        opposite(
            "A flush fails",
            "log/recovery/log_history.py",
            " and not has_failed_flush and",
            " and",
            "unit/test_log_history.py::test_after_a_failed_flush_or_in_an_older_copy_something_may_have_been_lost",
        ),
        opposite(
            "A flush fails",
            "log/manager/directory_loader.py",
            "    if directory.had_failed_flush:\n",
            "    if False:\n",
            "unit/test_failed_flush.py::test_a_failed_flush_is_noted_and_the_next_start_writes_again",
        ),
        opposite(
            "A partition's folder is missing",
            "log/recovery/lost_logs.py",
            "        if refused_under is None or state.leader_epoch <= refused_under:\n",
            "        if refused_under is None:\n",
            "simulation/test_unconfirmed_states.py::test_a_replica_whose_log_is_damaged_is_not_asked_over_and_over",
        ),
        opposite(
            "A partition's folder is missing",
            "log/recovery/lost_logs.py",
            "                self._lost[topic_partition] = LostLog(directory, high_watermark)\n",
            "                pass\n",
            "unit/test_lost_logs.py::test_a_log_in_the_isr_is_not_replaced_by_an_empty_one",
        ),
    ),
)

SECTIONS = (EPOCH_CACHE, FETCHER, OUT_OF_RANGE, CONSUMERS, CLASSICAL_FAILURES, BAD_INPUT)
