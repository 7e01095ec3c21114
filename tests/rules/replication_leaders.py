"""Opposites of the rules of replication: what a leader answers, and what it waits for."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-replication.md"
_LEADERSHIP = "replica/leader/leadership.py"
_FOLLOWER_FETCH = "replica/serve/follower_fetch.py"
_HIGH_WATERMARK = "replica/leader/high_watermark.py"
_IN_SYNC = "replica/leader/in_sync.py"

LEADERS_SIDE_OF_A_FETCH = Section(
    _TABLE,
    "3. A follower's fetch, at the leader",
    (
        opposite(
            "Unknown partition, offline directory, then epoch",
            "replica/partition/partition.py",
            "        if requested_epoch not in (NO_EPOCH, self.leader_epoch):\n"
            "            self._check_leader_epoch(requested_epoch)\n"
            "        if self.leadership is None:\n",
            "        if self.leadership is None:\n",
            "simulation/test_replication.py::test_offsets_out_of_range_wrong_epochs_and_other_brokers_are_refused",
            "        return self.leadership\n\n    def _check",
            "        if requested_epoch not in (NO_EPOCH, self.leader_epoch):\n"
            "            self._check_leader_epoch(requested_epoch)\n"
            "        return self.leadership\n\n    def _check",
        ),
        opposite(
            "Another topic id than that of the log here",
            "replica/topic_identity.py",
            "return not local or not requested or local == requested",
            "return True",
            "unit/test_topic_identity.py::test_topics_are_the_same_unless_both_ids_are_known_and_differ",
        ),
        opposite(
            "Another topic id than that of the log here",
            "replica/partition/partitions.py",
            "if topic_id and not same_topic(partition.topic_id, topic_id):",
            "if False:",
            "simulation/test_answers_to_followers.py::test_another_topic_id_is_refused_before_any_epoch_is_compared",
        ),
        opposite(
            "A member that the follower's own fetch session does not name",
            "replica/leader/hosting.py",
            "if now - max(since, last_named[member]) >= grace",
            "if False",
            "simulation/test_late_stop_replica.py::test_a_member_that_hosts_nothing_leaves_the_isr_and_comes_back",
        ),
        opposite(
            "A member that the follower's own fetch session does not name",
            "replica/leader/hosting.py",
            "if now - max(since, last_named[member]) >= grace",
            "if now - since >= 0",
            "unit/test_topic_identity.py::test_a_member_is_given_time_to_name_the_partition_again",
        ),
        opposite(
            "Older epoch: FENCED_LEADER_EPOCH",
            "replica/leader_epoch.py",
            "if requested < local:",
            "if requested > local:",
            "unit/test_truncation.py::test_an_older_epoch_is_fenced_and_a_newer_one_unknown",
        ),
        opposite(
            "A broker without a replica is refused",
            _LEADERSHIP,
            "        follower = self.followers.get(broker_id)\n        if follower is None:\n",
            "        follower = self.followers.setdefault(broker_id, RemoteReplica(broker_id))\n"
            "        if follower is None:\n",
            "simulation/test_replication.py::test_a_fetch_of_a_broker_without_a_replica_is_refused_and_moves_nothing",
        ),
        opposite(
            "The answer carries the offsets from before the fetch",
            _FOLLOWER_FETCH,
            "            entry.noted_epoch = leadership.epoch\n",
            "            entry.noted_epoch = leadership.epoch\n"
            "            answer.high_watermark = log.high_watermark\n",
            "simulation/test_answers_to_followers.py::test_an_answer_carries_the_high_watermark_from_before_its_fetch",
        ),
        opposite(
            "If the logs diverge, the answer says where",
            _FOLLOWER_FETCH,
            "answer.diverging_end_offset = epoch_end\n                return answer\n",
            "answer.diverging_end_offset = epoch_end\n",
            "simulation/test_answers_to_followers.py::test_a_diverging_fetch_is_told_where_and_has_no_other_effect",
        ),
        opposite(
            "If the logs diverge, the answer says where",
            "replica/follower/truncation.py",
            "return leader.epoch < last_fetched_epoch or leader.end_offset < fetch_offset",
            "return False",
            "unit/test_truncation.py::test_a_fetch_beyond_the_epochs_end_or_of_an_unknown_epoch_shows_divergence",
        ),
        opposite(
            "Below the log start or above the log end",
            "log/readable_log.py",
            "if not start <= offset <= end:",
            "if False:",
            "simulation/test_replication.py::test_offsets_out_of_range_wrong_epochs_and_other_brokers_are_refused",
        ),
        opposite(
            "Otherwise: note its position",
            _LEADERSHIP,
            "        if offset != offset_before:\n            self.advance_high_watermark()\n",
            "",
            "simulation/test_replication.py::test_acks_all_waits_for_every_in_sync_follower",
        ),
        opposite(
            "Otherwise: note its position",
            _LEADERSHIP,
            "        proposal = expansion(self.isr, follower, "
            "self.log.high_watermark, self.epoch_start_offset)\n",
            "        proposal = None\n",
            "simulation/test_replication_isr.py::test_a_follower_that_returns_catches_up_and_joins_again",
        ),
        opposite(
            "The second look of a parked fetch",
            _FOLLOWER_FETCH,
            "findings = self._look(session, request, is_fetch=False)",
            "findings = self._look(session, request, is_fetch=True)",
            "simulation/test_answers_to_followers.py::test_a_parked_fetch_is_answered_when_data_comes_and_is_still_one_fetch",
        ),
        opposite(
            "Answered immediately with data",
            "replica/purgatory.py",
            "            follower.data_arrived()\n",
            "            follower.offsets_moved()\n",
            "simulation/test_answers_to_followers.py::test_a_parked_fetch_is_answered_when_data_comes_and_is_still_one_fetch",
        ),
        opposite(
            "Answered immediately with data",
            _FOLLOWER_FETCH,
            "while not (timed_out or findings.urgent or findings.size >= request.min_bytes):",
            "while not (timed_out or findings.size >= request.min_bytes):",
            "simulation/test_answers_to_followers.py::test_a_diverging_fetch_is_told_where_and_has_no_other_effect",
        ),
        opposite(
            "Incremental sessions",
            "replica/follower/followed_partitions.py",
            "keys = fetching if self._session.is_full else self._session.to_name()",
            "keys = list(fetching)",
            "simulation/test_replication.py::test_many_partitions_travel_together_and_idle_ones_cost_nothing",
        ),
        opposite(
            "Incremental sessions",
            "replica/fetch_session.py",
            "        elif not entry.has_more(log):\n",
            "        elif False:\n",
            "unit/test_replica_fetch_session.py::test_the_same_offsets_are_no_news_twice",
        ),
        opposite(
            "Topic ids in fetches",
            "replica/roles.py",
            "if not same_topic(partition.topic_id, partition_state.topic_id):",
            "if False:",
            "simulation/test_replication_roles.py::test_another_topic_of_the_same_name_is_not_taken_for_this_one",
        ),
    ),
)

HIGH_WATERMARK = Section(
    _TABLE,
    "4. The high watermark",
    (
        opposite(
            "It does not move while the ISR is under",
            _HIGH_WATERMARK,
            "    if progress.in_sync_count < progress.min_in_sync:\n"
            "        return progress.high_watermark\n",
            "",
            "unit/test_high_watermark.py::test_it_stays_while_the_isr_is_under_the_minimum",
        ),
        opposite(
            "The minimum is never more than",
            _IN_SYNC,
            "return min(min_insync_replicas, replica_count)",
            "return min_insync_replicas",
            "unit/test_isr.py::test_min_in_sync_never_exceeds_the_number_of_replicas",
        ),
        opposite(
            "It waits for the maximal ISR, and for an alive follower",
            _HIGH_WATERMARK,
            "return in_maximal_isr or (caught_up and alive)",
            "return in_maximal_isr",
            "unit/test_high_watermark.py::test_who_it_waits_for",
        ),
        opposite(
            "It waits for the maximal ISR, and for an alive follower",
            _HIGH_WATERMARK,
            "return in_maximal_isr or (caught_up and alive)",
            "return in_maximal_isr or caught_up",
            "unit/test_high_watermark.py::test_who_it_waits_for",
        ),
        opposite(
            "The maximal ISR includes a proposed member",
            _IN_SYNC,
            "return max(self.committed, self.proposed or (), key=len)",
            "return self.committed",
            "unit/test_isr.py::test_the_maximal_isr_is_the_larger_one_while_a_change_is_under_way",
        ),
        opposite(
            "The maximal ISR includes a proposed member",
            _IN_SYNC,
            "return max(self.committed, self.proposed or (), key=len)",
            "return self.proposed or self.committed",
            "unit/test_isr.py::test_the_maximal_isr_is_the_larger_one_while_a_change_is_under_way",
        ),
        opposite(
            "It is tried after an append",
            _LEADERSHIP,
            "        self._durability.appended()\n        self.advance_high_watermark()\n",
            "        self._durability.appended()\n",
            "simulation/test_replication_isr.py::test_a_single_replica_commits_alone_whatever_the_minimum",
        ),
        opposite(
            "It is tried after an append",
            _LEADERSHIP,
            "        if not is_behind:\n            self._review_durability()\n"
            "            self.advance_high_watermark()\n",
            "        if not is_behind:\n            self._review_durability()\n",
            "simulation/test_moves_of_the_high_watermark.py::test_a_committed_change_of_the_isr_moves_it_at_once",
        ),
        opposite(
            "It is tried after an append",
            _LEADERSHIP,
            "        self._review_durability()\n        self.advance_high_watermark()\n\n    def end",
            "        self._review_durability()\n\n    def end",
            "simulation/test_moves_of_the_high_watermark.py::test_becoming_leader_again_moves_it_at_once",
        ),
        opposite(
            "While the ISR is below the minimum or of one member",
            "replica/leader/last_replica.py",
            "return replica_count > 1 and in_sync_count < max(min_in_sync, 2)",
            "return False",
            "unit/test_last_replica.py::test_what_a_thin_isr_is",
        ),
        opposite(
            "While the ISR is below the minimum or of one member",
            "replica/leader/last_replica.py",
            "        return self._log.recovery_point\n",
            "        return self._log.log_end_offset\n",
            "unit/test_last_replica.py::test_an_append_with_acks_1_waits_for_its_flush",
        ),
        opposite(
            "Such an ISR is proposed only once the log is flushed",
            "replica/leader/last_replica.py",
            "return self.phase is not Phase.FLUSHING",
            "return True",
            "unit/test_last_replica.py::test_a_smaller_isr_waits_for_the_flush_that_it_requires",
        ),
        opposite(
            "Such an ISR is proposed only once the log is flushed",
            "replica/leader/last_replica.py",
            "        self.phase = Phase.REPORTED\n",
            "        pass\n",
            "unit/test_last_replica.py::test_the_controller_is_asked_once_to_confirm_the_isr_of_a_flushed_log",
        ),
    ),
)

CAUGHT_UP = Section(
    _TABLE,
    "5. Caught up",
    (
        opposite(
            "At the log end: caught up now",
            _IN_SYNC,
            "            self.last_caught_up_time = max(self.last_caught_up_time, now)\n",
            "            pass\n",
            "unit/test_isr.py::test_a_follower_at_the_log_end_is_caught_up_now",
        ),
        opposite(
            "At where the leader's log ended",
            _IN_SYNC,
            "max(self.last_caught_up_time, self.last_fetch_time)",
            "max(self.last_caught_up_time, now)",
            "unit/test_isr.py::test_a_follower_one_fetch_behind_was_caught_up_at_its_previous_fetch",
        ),
        opposite(
            "Behind that: not caught up",
            _IN_SYNC,
            "        elif fetch_offset >= self.last_fetch_leader_log_end_offset:\n",
            "        else:\n",
            "unit/test_isr.py::test_a_follower_that_falls_further_behind_is_not_caught_up_again",
        ),
        opposite(
            "In sync: it has everything",
            _IN_SYNC,
            "            self.log_end_offset == leader_log_end_offset\n            or ",
            "            ",
            "unit/test_isr.py::test_a_silent_follower_that_has_everything_stays_caught_up",
        ),
    ),
)

SECTIONS = (LEADERS_SIDE_OF_A_FETCH, HIGH_WATERMARK, CAUGHT_UP)
