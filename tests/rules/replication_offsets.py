"""Opposites of the rules of replication: offsets, and the roles of replicas."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-replication.md"
_HIGH_WATERMARK = "replica/leader/high_watermark.py"
_FOLLOWER_FETCH = "replica/serve/follower_fetch.py"
_LEADERSHIP = "replica/leader/leadership.py"
_IN_SYNC = "replica/leader/in_sync.py"

OFFSETS = Section(
    _TABLE,
    "1. Offsets",
    (
        opposite(
            "The log end offset rises with an append",
            "log/local_log.py",
            "self.log_end_offset = incoming.last_offset + 1",
            "self.log_end_offset = incoming.last_offset",
            "unit/test_log_append.py::test_offsets_and_epoch_are_assigned_and_the_checksum_stays_the_producers",
        ),
        opposite(
            "The log end offset rises with an append",
            "log/local_log.py",
            "        self.log_end_offset = active.next_offset\n",
            "",
            "unit/test_log_truncation.py::test_everything_from_the_offset_on_goes",
        ),
        opposite(
            "A leader's high watermark is the smallest",
            _HIGH_WATERMARK,
            "min((progress.end_offset, *progress.awaited.values()))",
            "progress.end_offset",
            "unit/test_high_watermark.py::test_it_is_the_smallest_log_end_of_those_it_waits_for",
        ),
        opposite(
            "A leader's high watermark is the smallest",
            _HIGH_WATERMARK,
            "return max(progress.high_watermark, min((progress.end_offset, *progress.awaited.values())))",
            "return min((progress.end_offset, *progress.awaited.values()))",
            "unit/test_high_watermark.py::test_it_never_goes_back",
        ),
        opposite(
            "A follower sets its high watermark",
            "replica/follower/follower.py",
            "log.update_high_watermark(min(fetched.high_watermark, log.log_end_offset))",
            "log.maybe_increment_high_watermark(min(fetched.high_watermark, log.log_end_offset))",
            "simulation/test_moves_of_the_high_watermark.py::test_a_followers_high_watermark_falls_to_that_of_a_new_leader",
        ),
        opposite(
            "A follower sets its high watermark",
            "log/unified_log.py",
            "return min(max(offset, self.log_start_offset), self.log_end_offset)",
            "return max(offset, self.log_start_offset)",
            "unit/test_log_truncation.py::test_the_high_watermark_stays_within_the_log",
        ),
        opposite(
            "Log start <= high watermark <= log end",
            "log/unified_log.py",
            "        if offset > self.high_watermark:\n",
            "        if offset > self.log_end_offset:\n",
            "unit/test_log_truncation.py::test_the_high_watermark_stays_within_the_log",
        ),
        opposite(
            "A follower's log start follows its leader's",
            "replica/follower/follower.py",
            "has_new_start = fetched.log_start_offset > log.log_start_offset",
            "has_new_start = False",
            "simulation/test_moves_of_the_high_watermark.py::test_a_followers_log_start_follows_its_leaders",
        ),
        opposite(
            "Consumers read below the high watermark",
            "replica/serve/fetch_isolation.py",
            "                return log.high_watermark\n",
            "                return log.log_end_offset\n",
            "simulation/test_replication.py::test_consumers_see_nothing_above_the_high_watermark_and_are_woken_by_it",
        ),
        opposite(
            "Consumers read below the high watermark",
            _FOLLOWER_FETCH,
            "offset, limit, end, at_least_one, checked=checked",
            "offset, limit, log.high_watermark, at_least_one, checked=checked",
            "simulation/test_replication.py::test_consumers_see_nothing_above_the_high_watermark_and_are_woken_by_it",
        ),
        opposite(
            "The high watermark is checkpointed every 5 s",
            "log/unified_log.py",
            "self.high_watermark = self._clamp(checkpoint.high_watermark)",
            "self.high_watermark = self.log_start_offset",
            "simulation/test_replication_faults.py::test_the_high_watermark_survives_a_clean_stop_and_a_kill_after_its_checkpoint",
        ),
        opposite(
            "The high watermark is checkpointed every 5 s",
            "replica/replica_manager.py",
            "                interval / 1000,\n",
            "                interval,\n",
            "simulation/test_replication_faults.py::test_the_high_watermark_survives_a_clean_stop_and_a_kill_after_its_checkpoint",
        ),
        opposite(
            "A log that ends below its checkpointed high watermark",
            "log/manager/offset_checkpoints.py",
            "            self._high_watermarks.write(encode_offsets(lowered))\n",
            "",
            "unit/test_high_watermark_checkpoint.py::test_the_checkpoint_is_made_durable_once_for_all_logs_truncated_together",
        ),
        opposite(
            "A log that ends below its checkpointed high watermark",
            "log/manager/offset_checkpoints.py",
            "            self._high_watermarks.write_unflushed(encode_offsets(lowered))\n",
            "",
            "unit/test_high_watermark_checkpoint.py::test_so_does_one_that_receives_nothing_before_the_death",
        ),
        opposite(
            "A log that ends below its checkpointed high watermark",
            "log/manager/directory_loader.py",
            "        directory.checkpoints.log_ends_at(name, log.log_end_offset)\n",
            "",
            "unit/test_high_watermark_checkpoint.py::test_so_does_one_whose_end_was_lost_with_the_power",
        ),
        opposite(
            "After the death of a process a start truncates",
            "log/recovery/log_loader.py",
            "    if checkpoint.is_clean or (checkpoint.is_unbroken and not is_torn):\n",
            "    if checkpoint.is_clean:\n",
            "unit/test_log_damage.py::test_nor_what_may_have_been_committed_since_the_checkpoint",
        ),
        opposite(
            "A log whose end is missing",
            "log/recovery/log_loader.py",
            "        _check_end(segments, checkpoint)\n",
            "",
            "unit/test_log_damage.py::test_a_log_whose_end_is_missing_is_damaged",
        ),
        opposite(
            "A log whose end is missing",
            "log/manager/directory_loader.py",
            "min(recovery_point, high_watermark)\n",
            "0\n",
            "simulation/test_damage_found_at_a_start.py::test_after_a_power_loss_nothing_flushed_is_missing",
        ),
        opposite(
            "That checkpoint starts with the first LeaderAndIsr",
            "replica/replica_manager.py",
            '        self._tasks.repeat(self._look_for_offset_moves, INTERVAL_SECONDS, "offset moves")\n',
            '        self._tasks.repeat(self._look_for_offset_moves, INTERVAL_SECONDS, "offset moves")\n'
            "        write = self._context.log_manager.checkpoint_high_watermarks\n"
            '        self._tasks.repeat(write, 5.0, "too early")\n',
            "simulation/test_replication_faults.py::test_a_broker_without_orders_does_not_overwrite_its_checkpoint",
        ),
        opposite(
            "The last stable offset equals the high watermark",
            "log/readable_log.py",
            "            return self.high_watermark\n",
            "            return self._local.log_end_offset\n",
            "unit/test_log_append.py::test_the_last_stable_offset_is_the_high_watermark",
        ),
    ),
)

ROLES = Section(
    _TABLE,
    "2. Becoming leader or follower",
    (
        opposite(
            "A LeaderAndIsr with an older partition epoch",
            "replica/roles.py",
            "partition_state.leader_epoch <= partition.leader_epoch\n",
            "partition_state.leader_epoch < partition.leader_epoch\n",
            "simulation/test_replication_roles.py::test_an_epoch_that_is_not_new_changes_nothing",
        ),
        opposite(
            "A LeaderAndIsr with an older partition epoch",
            "replica/roles.py",
            "            or partition_state.partition_epoch < partition.partition_epoch\n",
            "",
            "simulation/test_replication_roles.py::test_an_epoch_that_is_not_new_changes_nothing",
        ),
        opposite(
            "A leader refuses an epoch that its log has records of",
            "replica/epoch_refusals.py",
            "return partition_state.leader_epoch < epoch",
            "return False",
            "simulation/test_restored_zookeeper.py::test_all_brokers_restarted_together_serve_an_older_copy",
        ),
        opposite(
            "A leader refuses an epoch that its log has records of",
            "replica/epoch_refusals.py",
            "return start_offset < log.log_end_offset",
            "return False",
            "unit/test_epoch_refusals.py::test_a_leader_needs_an_epoch_without_records_and_a_follower_one_that_is_not_over",
        ),
        opposite(
            "A leader adds (epoch, log end)",
            _LEADERSHIP,
            "log.assign_epoch(self.epoch, self.epoch_start_offset)",
            "pass",
            "simulation/test_replication_roles.py::test_a_leader_notes_its_epoch_before_anything_is_written",
        ),
        opposite(
            "A new leader knows no follower's offset",
            _IN_SYNC,
            "self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET",
            "self.log_start_offset = UNKNOWN_OFFSET",
            "unit/test_isr.py::test_a_new_leader_knows_no_offsets_but_gives_members_a_full_lag_time",
        ),
        opposite(
            "A new leader knows no follower's offset",
            _IN_SYNC,
            "        if keep_offset:\n",
            "        if False:\n",
            "unit/test_isr.py::test_a_leader_that_goes_on_leading_keeps_the_offsets_it_knows",
        ),
        opposite(
            "A new leader knows no follower's offset",
            _IN_SYNC,
            "self.last_caught_up_time = now if in_sync else NEVER",
            "self.last_caught_up_time = NEVER",
            "unit/test_isr.py::test_a_new_leader_knows_no_offsets_but_gives_members_a_full_lag_time",
        ),
        opposite(
            "A new leader knows no follower's offset",
            _LEADERSHIP,
            "led_until_now = previous is not None and previous.epoch == self.epoch - 1",
            "led_until_now = previous is not None",
            "simulation/test_moves_of_the_high_watermark.py::test_a_leader_that_missed_an_epoch_knows_no_offsets",
        ),
        opposite(
            "It cannot commit until every member has fetched",
            _HIGH_WATERMARK,
            "min((progress.end_offset, *progress.awaited.values()))",
            "min((progress.end_offset, *(e for e in progress.awaited.values() if e >= 0)))",
            "unit/test_high_watermark.py::test_it_waits_for_a_member_that_has_not_fetched_since_the_leader_began",
        ),
        opposite(
            "Until the high watermark reaches the start of the epoch",
            "replica/serve/offsets.py",
            "if is_consumer and log.high_watermark < leadership.epoch_start_offset:",
            "if False:",
            "simulation/test_replication.py::test_the_latest_offset_is_not_given_out_before_a_new_leader_has_caught_up_with_it",
        ),
        opposite(
            "Until the high watermark reaches the start of the epoch",
            "replica/serve/offsets.py",
            "    if is_consumer and log",
            "    if log",
            "simulation/test_replication.py::test_the_latest_offset_is_not_given_out_before_a_new_leader_has_caught_up_with_it",
        ),
        opposite(
            "A new follower answers waiting requests",
            "replica/partition/partition.py",
            "            high_watermark=log.high_watermark,\n        )\n"
            "        self.delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)\n",
            "            high_watermark=log.high_watermark,\n        )\n",
            "simulation/test_replication.py::test_producers_and_consumers_are_told_when_their_leader_is_replaced",
        ),
        opposite(
            "It fetches from its log end if it has epochs",
            "replica/follower/truncation.py",
            "        return log_end_offset\n",
            "        return high_watermark\n",
            "unit/test_truncation.py::test_fetching_starts_at_the_log_end_never_at_the_high_watermark_if_there_are_epochs",
        ),
        opposite(
            "It fetches from its log end if it has epochs",
            "replica/follower/truncation.py",
            "if self.by_high_watermark or latest_epoch is None:",
            "if self.by_high_watermark:",
            "unit/test_truncation.py::test_fetching_starts_at_the_log_end_never_at_the_high_watermark_if_there_are_epochs",
        ),
        opposite(
            "It waits while it has no address of the leader",
            "replica/follower/replica_fetcher.py",
            "self._context.backoff if has_work else followed.shortest_delay()",
            "followed.shortest_delay()",
            "simulation/test_replication_faults.py::test_a_follower_whose_leader_has_no_address_waits_for_it",
        ),
        opposite(
            "Listeners of a topic are notified",
            "replica/roles.py",
            "        self._listeners.role_taken(partition)\n",
            "",
            "simulation/test_role_listeners.py::test_leader_follower_and_leader_again_each_with_its_epoch",
        ),
        opposite(
            "Listeners of a topic are notified",
            "replica/role_listeners.py",
            "except Exception:",
            "except KeyError:",
            "simulation/test_role_listeners.py::test_a_listener_that_fails_stops_neither_the_role_nor_the_next_listener",
        ),
        opposite(
            "Listeners of a topic are notified",
            "replica/role_listeners.py",
            "if key.topic == topic and leadership is not None:",
            "if False:",
            "simulation/test_role_listeners.py::test_a_listener_that_is_added_late_is_told_of_what_is_led_now",
        ),
        opposite(
            "An empty log never takes the place of a lost one",
            "log/recovery/lost_logs.py",
            "return lost is not None and (in_sync or (bool(lost.damage) and not has_leader))",
            "return False",
            "unit/test_lost_logs.py::test_a_log_in_the_isr_is_not_replaced_by_an_empty_one",
        ),
        opposite(
            "A replica that was deleted while it was in the ISR",
            "replica/vanished.py",
            "        return self._broker_id in state.in_sync_replicas\n",
            "        return False\n",
            "simulation/test_late_stop_replica.py::test_a_vanished_replica_does_not_lead_with_an_empty_log",
        ),
        opposite(
            "A replica that was deleted while it was in the ISR",
            "replica/vanished.py",
            "            not state.is_new\n",
            "            False\n",
            "unit/test_vanished.py::test_a_role_in_the_isr_is_refused_with_an_empty_log_if_the_replica_was_here",
        ),
        opposite(
            "A replica that was deleted while it was in the ISR",
            "replica/vanished.py",
            "                free.append(key)\n",
            "                pass\n",
            "simulation/test_late_stop_replica.py::test_a_member_that_hosts_nothing_leaves_the_isr_and_comes_back",
        ),
    ),
)

SECTIONS = (OFFSETS, ROLES)
