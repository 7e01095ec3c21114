"""Opposites of the rules of groups: coordinators that come and go."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-groups.md"
_GROUP = "coordinator/group/group.py"
_OWNED = "coordinator/owned_partitions.py"
_COORDINATOR = "coordinator/group/coordinator.py"
_LOADING = "coordinator/group/loading.py"
_PARTITION_LOG = "coordinator/partition_log.py"

COORDINATOR = Section(
    _TABLE,
    "8. The coordinator and its log",
    (
        opposite(
            "A group belongs to the partition of its name: Java's hash code, modulo the number of partitions",
            "coordinator/key_partition.py",
            "code = (31 * code",
            "code = (33 * code",
            "unit/test_group_records.py::test_the_hash_code_is_javas",
        ),
        opposite(
            "`__consumer_offsets` is created",
            "api/coordinator/internal_topics.py",
            "factor = config[keys.OFFSETS_TOPIC_REPLICATION_FACTOR]",
            "factor = min(config[keys.OFFSETS_TOPIC_REPLICATION_FACTOR], 1)",
            "simulation/test_groups_bad_input.py::test_with_fewer_brokers_than_replicas_the_offsets_topic_is_refused",
        ),
        opposite(
            "While the log is read, requests are answered COORDINATOR_LOAD_IN_PROGRESS",
            _OWNED,
            "return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS",
            "return ErrorCode.NONE",
            "simulation/test_group_coordinator_moves.py::test_while_a_coordinator_loads_members_are_kept_and_others_wait",
        ),
        opposite(
            "... Heartbeat NONE",
            _COORDINATOR,
            "            return HeartbeatResponse()\n",
            "            return HeartbeatResponse(error)\n",
            "simulation/test_group_coordinator_moves.py::test_while_a_coordinator_loads_members_are_kept_and_others_wait",
        ),
        opposite(
            "... Heartbeat NONE",
            _COORDINATOR,
            "return SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)",
            "return SyncGroupResponse(error)",
            "simulation/test_group_coordinator_moves.py::test_while_a_coordinator_loads_members_are_kept_and_others_wait",
        ),
        opposite(
            "Offsets of a transaction wait for its marker",
            _PARTITION_LOG,
            "        while (offset := end) < (end := self._reads.log_range(key, leader_epoch).end):\n",
            "        while False:\n",
            "simulation/test_transactional_commits.py::test_a_marker_that_comes_while_the_groups_are_read_counts_too",
        ),
        opposite(
            "The latest record of each key counts",
            _LOADING,
            "offsets[partition] = Commit(decode_offset_value(record.value), record.offset)",
            "offsets.setdefault(partition, Commit(decode_offset_value(record.value), record.offset))",
            "unit/test_group_records.py::test_the_latest_record_of_each_key_counts",
        ),
        opposite(
            "The latest record of each key counts",
            _LOADING,
            "offsets.pop(partition, None)",
            "pass",
            "unit/test_group_records.py::test_tombstones_remove_offsets_and_groups",
        ),
        opposite(
            "Members, generation and commits are those that were written",
            _GROUP,
            "group.generation_id = value.generation_id",
            "group.generation_id = value.generation_id + 1",
            "simulation/test_groups.py::test_commits_and_membership_outlive_the_coordinator",
        ),
        opposite(
            "Members, generation and commits are those that were written",
            _LOADING,
            "            group.committed.offsets.update(self._offsets.get(group.group_id, {}))\n",
            "            pass\n",
            "simulation/test_groups.py::test_commits_and_membership_outlive_the_coordinator",
        ),
        opposite(
            "Sessions begin again at the new coordinator",
            _COORDINATOR,
            "            self._rebalances.sessions.extend(group, member)\n",
            "            pass\n",
            "simulation/test_group_rules.py::test_members_that_died_with_their_coordinator_expire_at_the_next",
        ),
        opposite(
            "Groups are served when what was read is committed, or cannot be. Different",
            _PARTITION_LOG,
            "await self._reads.until_committed(key, leader_epoch, end, only_committed)",
            "pass",
            "simulation/test_group_coordinator_moves.py::test_a_coordinator_waits_until_what_it_has_read_is_committed",
        ),
        opposite(
            "... in the second case no assignment is answered yet",
            "coordinator/group/membership/sync.py",
            "if group.state is GroupState.STABLE and not self._context.is_committed(group):",
            "if False:",
            "simulation/test_group_coordinator_moves.py::test_no_assignment_is_answered_from_a_generation_that_may_still_be_lost",
        ),
        opposite(
            "A load that a later role has overtaken is dropped",
            _OWNED,
            "if self._loading.get(key.partition) != leader_epoch:",
            "if False:",
            "simulation/test_group_coordinator_moves.py::test_a_load_that_a_newer_epoch_has_overtaken_is_dropped",
        ),
        opposite(
            "A broker that leads on",
            _OWNED,
            "in (leader_epoch, leader_epoch - 1)\n",
            "in (leader_epoch,)\n",
            "simulation/test_group_coordinator_moves.py::test_a_broker_that_leads_without_interruption_keeps_its_groups",
        ),
        opposite(
            "A broker that leads on",
            _OWNED,
            "self._owned.get(partition) in (leader_epoch, leader_epoch - 1)\n",
            "partition in self._owned\n",
            "simulation/test_group_coordinator_moves.py::test_a_broker_that_leads_without_interruption_keeps_its_groups",
        ),
        opposite(
            "Nothing is written under another epoch than that of the decision",
            _PARTITION_LOG,
            "self._reads.log_range(key, append.leader_epoch)",
            "pass",
            "simulation/test_coordinator_partition_log.py::test_what_was_decided_under_another_epoch_is_not_written",
        ),
        opposite(
            "When the group goes to another broker, requests that wait are answered NOT_COORDINATOR",
            _COORDINATOR,
            "self._rebalances.forget(group, ErrorCode.NOT_COORDINATOR)",
            "pass",
            "simulation/test_group_coordinator_moves.py::test_requests_that_wait_are_answered_when_the_coordinator_stops",
        ),
        opposite(
            "A group that is loaded over",
            _COORDINATOR,
            "        if size > limit:\n",
            "        if False:\n",
            "simulation/test_group_coordinator_moves.py::test_a_group_that_is_loaded_over_its_size_limit_rebalances",
        ),
        opposite(
            "A record that cannot be read is left out, and named in an event",
            _LOADING,
            "            self.unreadable.append((record.offset, str(error)))\n",
            "            pass\n",
            "unit/test_group_records.py::test_a_record_that_cannot_be_understood_is_left_out_and_named",
        ),
        opposite(
            "With too few replicas in sync, commits are refused and nothing else suffers",
            "coordinator/group/write_errors.py",
            "    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,\n",
            "",
            "simulation/test_group_coordinator_moves.py::test_too_few_replicas_refuse_commits_and_harm_nothing",
        ),
        opposite(
            "... and members leave a coordinator whose writes time out",
            "coordinator/group/write_errors.py",
            "        return ErrorCode.COORDINATOR_NOT_AVAILABLE\n",
            "        return ErrorCode.REBALANCE_IN_PROGRESS\n",
            "unit/test_group_offsets.py::test_what_is_told_of_an_append_that_failed",
        ),
    ),
)

SECTIONS = (COORDINATOR,)
