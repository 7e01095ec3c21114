"""Opposites of the rules of replication: the ISR, and produce requests."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-replication.md"
_LEADERSHIP = "replica/leader/leadership.py"
_IN_SYNC = "replica/leader/in_sync.py"
_ISR_WRITER = "server/isr_writer.py"

ISR = Section(
    _TABLE,
    "6. The ISR shrinks and grows",
    (
        opposite(
            "Out: *stuck*",
            _IN_SYNC,
            "not followers[member].is_caught_up(leader_log_end_offset, now, max_lag)\n",
            "False\n",
            "simulation/test_ways_out_of_the_isr.py::test_a_stuck_follower_fetches_no_more",
        ),
        opposite(
            "Out: *slow*",
            _IN_SYNC,
            "or now - self.last_caught_up_time <= max_lag",
            "or now - self.last_fetch_time <= max_lag",
            "simulation/test_ways_out_of_the_isr.py::test_a_slow_follower_fetches_all_the_time_and_never_catches_up",
        ),
        opposite(
            "Out: *new*",
            _IN_SYNC,
            "return log_end_offset >= high_watermark and log_end_offset >= epoch_start_offset",
            "return True",
            "simulation/test_ways_out_of_the_isr.py::test_a_new_follower_is_outside_until_it_has_what_is_committed",
        ),
        opposite(
            "Checked at half the limit",
            "replica/replica_manager.py",
            "self._max_lag / 2",
            "self._max_lag * 2",
            "simulation/test_replication_isr.py::test_a_stopped_follower_leaves_after_one_to_one_and_a_half_lag_times",
        ),
        opposite(
            "In: at the high watermark *and*",
            _IN_SYNC,
            "return log_end_offset >= high_watermark and log_end_offset >= epoch_start_offset",
            "return log_end_offset >= high_watermark",
            "unit/test_isr.py::test_a_follower_joins_with_all_that_is_committed_and_this_epoch_reached",
        ),
        opposite(
            "In: at the high watermark *and*",
            _LEADERSHIP,
            "if proposal is not None and self._environment.is_alive(follower.broker_id):",
            "if proposal is not None:",
            "simulation/test_replication_isr.py::test_an_idle_follower_joins_as_soon_as_its_broker_is_known_to_live",
        ),
        opposite(
            "Only a fetch of this session counts",
            "replica/serve/follower_fetch.py",
            "            elif entry.noted_epoch == leadership.epoch:\n",
            "            else:\n",
            "simulation/test_replication_isr.py::test_where_a_follower_was_in_an_earlier_life_does_not_let_it_join",
        ),
        opposite(
            "One AlterPartition in flight",
            "replica/leader/alter_partition_manager.py",
            "if self._closed or key in self._pending:",
            "if self._closed:",
            "unit/test_replica_alter_partition.py::test_a_second_change_of_a_partition_is_refused_while_the_first_is_out",
        ),
        opposite(
            "One AlterPartition in flight",
            "replica/leader/alter_partition_manager.py",
            "            [item for item, _ in self._pending.values()],\n",
            "            [item for item, _ in self._pending.values()][:1],\n",
            "unit/test_replica_alter_partition.py::test_what_comes_while_a_request_is_out_travels_together_in_the_next",
        ),
        opposite(
            "A controller that does not answer",
            _ISR_WRITER,
            "    return decide_alter_partition(item, current, broker_epochs, sender, broker_epochs)\n",
            "    return None\n",
            "simulation/test_leader_without_controller.py::test_writes_go_on_when_the_controller_follows_and_is_cut_off",
        ),
        opposite(
            "A controller that does not answer",
            _ISR_WRITER,
            "await snapshot.store.session.multi([snapshot.fence, write])",
            "(None, *await snapshot.store.session.multi([write]))",
            "simulation/test_isr_writer.py::test_an_election_or_a_change_since_the_reading_stops_it",
        ),
        opposite(
            "A controller that does not answer",
            _ISR_WRITER,
            "znodes.encode_state(state), current.partition_epoch\n",
            "znodes.encode_state(state)\n",
            "simulation/test_isr_writer.py::test_an_election_or_a_change_since_the_reading_stops_it",
        ),
        opposite(
            "... under a later leader epoch of its own",
            _ISR_WRITER,
            "if state.leader != self.facts.broker_id:",
            "if True:",
            "simulation/test_leader_without_controller.py::test_writes_go_on_when_another_follower_is_late_or_dead",
        ),
        opposite(
            "... under a later leader epoch of its own",
            _ISR_WRITER,
            "if current.leader_epoch > item.leader_epoch or current.leader != sender:",
            "if False:",
            "simulation/test_leader_without_controller.py::test_a_deposed_leader_writes_nothing_and_acknowledges_nothing",
        ),
        opposite(
            "... one that hears no other broker waits",
            _ISR_WRITER,
            "if item.new_isr == [sender] and not hears_a_broker:",
            "if False:",
            "simulation/test_leader_without_controller.py::test_a_leader_that_hears_nobody_waits",
        ),
        opposite(
            "A refused change rolls back",
            "replica/leader/isr_changes.py",
            "return isr.rolled_back(), partition_epoch",
            "return isr, partition_epoch",
            "simulation/test_replication_isr.py::test_a_refused_change_falls_back_and_is_tried_again",
        ),
        opposite(
            "A refused change rolls back",
            "replica/leader/alter_partition_manager.py",
            "ErrorCode.INVALID_UPDATE_VERSION: AlterPartitionOutcome.AWAIT_LEADER_AND_ISR",
            "ErrorCode.INVALID_UPDATE_VERSION: AlterPartitionOutcome.ROLL_BACK",
            "simulation/test_replication_isr.py::test_a_change_overtaken_by_the_controller_waits_for_its_word",
        ),
        opposite(
            "A refused change rolls back",
            "replica/leader/isr_changes.py",
            "answer.leader_epoch == leader_epoch and answer.partition_epoch >= partition_epoch",
            "True",
            "unit/test_isr_changes.py::test_an_answer_commits_rolls_back_or_leaves_the_proposal",
        ),
        opposite(
            "`replica.lag.max.messages`, off",
            _IN_SYNC,
            "return max_messages is not None and (\n",
            "return False and (\n",
            "simulation/test_replication_isr.py::test_a_burst_throws_healthy_followers_out_if_lag_is_counted_in_records",
        ),
    ),
)

PRODUCE = Section(
    _TABLE,
    "7. Produce, and delayed requests",
    (
        opposite(
            "`acks` 0, 1, -1",
            "replica/serve/produce_path.py",
            "if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):",
            "if False:",
            "simulation/test_replication.py::test_acks_that_kafka_does_not_know_are_refused_and_write_nothing",
        ),
        opposite(
            "`acks` 0, 1, -1",
            _LEADERSHIP,
            "        return ErrorCode.NONE\n\n    def _outcome_of_committed",
            "        return None\n\n    def _outcome_of_committed",
            "simulation/test_replication.py::test_acks_one_answers_before_the_followers_have_it",
        ),
        opposite(
            "0: no answer; a failed append",
            "replica/serve/produce_path.py",
            "            _check_all_appended(produced)\n",
            "",
            "simulation/test_replication.py::test_acks_zero_has_no_answer_and_a_failed_append_drops_the_connection",
        ),
        opposite(
            "0: no answer; a failed append",
            "replica/serve/produce_path.py",
            "            return None\n        return ProduceResponse(produced)",
            "        return ProduceResponse(produced)",
            "simulation/test_replication.py::test_acks_zero_has_no_answer_and_a_failed_append_drops_the_connection",
        ),
        opposite(
            "-1 with too small an ISR",
            _LEADERSHIP,
            "if acks == ACKS_ALL and len(self.isr.committed) < self.min_in_sync:",
            "if False:",
            "simulation/test_replication_isr.py::test_too_few_in_sync_replicas_refuse_acks_all_before_anything_is_written",
        ),
        opposite(
            "Committed, but the ISR is too small",
            _LEADERSHIP,
            "if len(self.isr.maximal) >= self.min_in_sync:",
            "if True:",
            "simulation/test_replication_isr.py::test_a_committed_record_is_told_when_too_few_replicas_are_left_by_then",
        ),
        opposite(
            "Not committed in time",
            "replica/purgatory.py",
            "self.errors.append(ErrorCode.REQUEST_TIMED_OUT)",
            "self.errors.append(ErrorCode.NONE)",
            "simulation/test_replication.py::test_a_produce_that_is_not_replicated_in_time_times_out_and_stays_in_the_log",
        ),
        opposite(
            "Completed once, when all partitions are done",
            "replica/purgatory.py",
            "        if not self._pending:\n",
            "        if True:\n",
            "unit/test_purgatory.py::test_a_produce_is_done_when_its_last_partition_is_committed",
        ),
        opposite(
            "Completed once, when all partitions are done",
            "replica/purgatory.py",
            "        if self.waiter.done():\n            return\n",
            "",
            "unit/test_purgatory.py::test_what_is_not_committed_in_time_is_timed_out_and_later_news_changes_nothing",
        ),
        opposite(
            "A parked consumer is woken by the high watermark",
            "replica/purgatory.py",
            "        self._wake_consumers()\n        _complete(",
            "        _complete(",
            "simulation/test_replication.py::test_consumers_see_nothing_above_the_high_watermark_and_are_woken_by_it",
        ),
        opposite(
            "A producer's batch is refused as a whole",
            "log/validation.py",
            "    return validate_records(header, data, compacted, exact, unpacked)\n",
            "    return header.base_timestamp\n",
            "unit/test_record_validation.py::test_what_is_accepted_can_be_read_to_its_end",
        ),
        opposite(
            "A leader whose own log is damaged",
            "log/recovery/log_loader.py",
            "if offset < checkpoint.high_watermark and (checkpoint.is_clean or checkpoint.is_unbroken):",
            "if False:",
            "unit/test_log_damage.py::test_where_no_power_was_lost_nothing_committed_is_cut_off",
        ),
        opposite(
            "A leader whose own log is damaged",
            "replica/damaged_replicas.py",
            "            self._ask_for_roles()\n",
            "            pass\n",
            "unit/test_damaged_replicas.py::test_with_another_member_the_controller_is_asked_once",
        ),
        opposite(
            "A follower keeps offsets, epochs and timestamps",
            "log/validation.py",
            "            check_crc(view, position, header)\n            if header.base_offset < expected",
            "            if header.base_offset < expected",
            "unit/test_log_append.py::test_a_follower_refuses_what_is_corrupt_or_out_of_order",
        ),
        opposite(
            "A follower keeps offsets, epochs and timestamps",
            "log/unified_log.py",
            "                self.assign_epoch(header.partition_leader_epoch, header.base_offset)\n",
            "                pass\n",
            "unit/test_log_append.py::test_a_follower_takes_batches_as_they_are",
        ),
    ),
)

SECTIONS = (ISR, PRODUCE)
