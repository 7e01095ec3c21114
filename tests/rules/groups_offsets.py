"""Opposites of the rules of groups: commits, and what removes them."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-groups.md"
_SYNC = "coordinator/group/membership/sync.py"
_OFFSETS = "coordinator/group/offsets.py"
_COMMITTED = "coordinator/group/committed/committed.py"
_EXPIRY = "coordinator/group/committed/expiry.py"
_COORDINATOR = "coordinator/group/coordinator.py"
_GROUPS = "coordinator/group/groups.py"
_PARTITION_LOG = "coordinator/partition_log.py"

COMMITS_AND_FETCHES = Section(
    _TABLE,
    "7. Commits and fetches",
    (
        opposite(
            "A member commits in its generation only",
            _SYNC,
            "if not error and generation_id != group.generation_id:",
            "if False:",
            "simulation/test_groups_bad_input.py::test_commits_that_are_refused",
        ),
        opposite(
            "Without a generation a commit is for a group without members",
            _OFFSETS,
            "        if group.state is GroupState.EMPTY:\n            return ErrorCode.NONE\n        if not",
            "        if True:\n            return ErrorCode.NONE\n        if not",
            "simulation/test_group_rules.py::test_anyone_commits_for_a_group_without_members",
        ),
        opposite(
            "Without a generation a commit is for a group without members",
            _OFFSETS,
            "        if group.state is GroupState.EMPTY:\n            return ErrorCode.NONE\n        if not",
            "        if False:\n            return ErrorCode.NONE\n        if not",
            "simulation/test_group_rules.py::test_anyone_commits_for_a_group_without_members",
        ),
        opposite(
            "Between the rebalance and the assignment it is refused: REBALANCE_IN_PROGRESS",
            _OFFSETS,
            "if not error and group.state is GroupState.COMPLETING_REBALANCE:",
            "if False:",
            "simulation/test_group_rules.py::test_a_commit_before_the_assignment_is_refused",
        ),
        opposite(
            "A partition that does not exist",
            _OFFSETS,
            "[i for i, item in enumerate(request.partitions) if self._exists(_key(item))]",
            "list(range(len(request.partitions)))",
            "simulation/test_groups_bad_input.py::test_one_partition_of_a_commit_fails_alone",
        ),
        opposite(
            "A partition that does not exist",
            _OFFSETS,
            "if len(metadata) > self._max_metadata_size or not fits(metadata):",
            "if False:",
            "simulation/test_groups_bad_input.py::test_one_partition_of_a_commit_fails_alone",
        ),
        opposite(
            "A commit is answered when all in-sync replicas have it, and fetched from then on",
            _PARTITION_LOG,
            "ProduceRequest(ACKS_ALL, self._timeout_ms, [item])\n",
            "ProduceRequest(1, self._timeout_ms, [item])\n",
            "simulation/test_group_coordinator_moves.py::test_too_few_replicas_refuse_commits_and_harm_nothing",
        ),
        opposite(
            "A commit is answered when all in-sync replicas have it, and fetched from then on",
            _OFFSETS,
            "            written = await self._log.commit(group, offsets)\n",
            "            for key, value in offsets.items():\n                committed.put(key, value, 1 << 60)\n            written = await self._log.commit(group, offsets)\n",
            "simulation/test_group_rules.py::test_a_fetch_may_wait_for_the_commits_that_are_being_written",
        ),
        opposite(
            "Of two commits the one that is later in the log counts",
            _COMMITTED,
            "if latest < at:",
            "if True:",
            "unit/test_group_offsets.py::test_of_two_commits_the_one_that_is_later_in_the_log_counts",
        ),
        opposite(
            "What was never committed is -1",
            _OFFSETS,
            "partitions=[CommittedOffset(*key) for key in keys]",
            "partitions=[CommittedOffset(*key, 0) for key in keys]",
            "simulation/test_groups_bad_input.py::test_an_offset_that_was_never_committed_is_minus_one",
        ),
        opposite(
            "What was never committed is -1",
            _OFFSETS,
            "        return CommittedOffset(*key)\n    value",
            "        return CommittedOffset(*key, 0)\n    value",
            "simulation/test_groups_bad_input.py::test_offsets_of_a_whole_group_are_fetched_with_those_of_others",
        ),
        opposite(
            "While a commit is being written",
            _OFFSETS,
            "if require_stable and group.committed.is_pending(key):",
            "if False:",
            "simulation/test_group_rules.py::test_a_fetch_may_wait_for_the_commits_that_are_being_written",
        ),
        opposite(
            "While a commit is being written",
            _OFFSETS,
            "if require_stable and group.committed.is_pending(key):",
            "if group.committed.is_pending(key):",
            "simulation/test_group_rules.py::test_a_fetch_may_wait_for_the_commits_that_are_being_written",
        ),
        opposite(
            "Commits that come together share a batch, and keep their order",
            _PARTITION_LOG,
            "_SHARED_BATCH_BYTES = 16_384",
            "_SHARED_BATCH_BYTES = 1",
            "simulation/test_coordinator_partition_log.py::test_appends_at_the_same_time_share_batches_and_keep_their_order",
        ),
        opposite(
            "No client writes to",
            "replica/serve/produce_refusals.py",
            "if item.topic in INTERNAL_TOPICS:",
            "if False:",
            "simulation/test_groups_bad_input.py::test_no_client_writes_to_an_internal_topic_creates_it_or_lets_it_grow",
        ),
    ),
)

REMOVAL_AND_RETENTION = Section(
    _TABLE,
    "9. Removal and retention",
    (
        opposite(
            "`offsets.retention.minutes` count",
            _EXPIRY,
            "return old(lambda _: state_timestamp_ms, ())",
            "return old(_commit_time, ())",
            "unit/test_group_offsets.py::test_an_empty_group_counts_from_when_it_became_empty",
        ),
        opposite(
            "... for a group that never had members, from each commit",
            _EXPIRY,
            "    if protocol_type is None:\n        return old(_commit_time, ())\n",
            "    if protocol_type is None:\n        return []\n",
            "unit/test_group_offsets.py::test_a_consumer_that_was_never_in_a_group_counts_from_each_commit",
        ),
        opposite(
            "... for a stable group, from each commit in topics that no member subscribes to",
            _EXPIRY,
            "return old(_commit_time, subscribed_topics)",
            "return old(_commit_time, ())",
            "unit/test_group_offsets.py::test_a_stable_group_keeps_what_its_members_subscribe_to",
        ),
        opposite(
            "An offset whose commit is being written is kept",
            _EXPIRY,
            "            and not committed.is_pending(partition)\n",
            "",
            "unit/test_group_offsets.py::test_a_pending_commit_keeps_its_offset",
        ),
        opposite(
            "An expiry of its own, from an old client, counts alone",
            _EXPIRY,
            "return now_ms >= value.expire_timestamp_ms",
            "return True",
            "unit/test_group_offsets.py::test_an_expiry_of_its_own_counts_alone",
        ),
        opposite(
            "A group with no members and no offsets is removed, from the log too",
            _OFFSETS,
            "return empty and self._groups.is_here(group)",
            "return False",
            "simulation/test_group_removals.py::test_offsets_expire_after_the_group_is_empty_and_not_before",
        ),
        opposite(
            "The offsets of a deleted topic go with it",
            _COORDINATOR,
            "        if deleted:\n            groups = self",
            "        if False:\n            groups = self",
            "simulation/test_group_removals.py::test_the_offsets_of_a_deleted_topic_go_with_it",
        ),
        opposite(
            "... also when it was deleted while the coordinator was loading",
            _GROUPS,
            "        for partition in self._loading:\n",
            "        for partition in ():\n",
            "unit/test_groups_being_loaded.py::test_a_deletion_counts_for_the_loads_that_it_came_in_and_for_no_later_one",
        ),
        opposite(
            "... and if the tombstones cannot be written at once. Different",
            _OFFSETS,
            "is_here(g) and g.committed.awaiting_tombstone(deleted)\n",
            "is_here(g) and False\n",
            "simulation/test_offsets_of_deleted_topics.py::test_tombstones_that_are_refused_for_lack_of_replicas_are_written_later",
        ),
        opposite(
            "... or the coordinator dies before they are. Different",
            _COORDINATOR,
            "        if unknown:\n",
            "        if False:\n",
            "simulation/test_offsets_of_deleted_topics.py::test_a_coordinator_that_dies_before_the_tombstones_are_written_leaves_them_to_the_next",
        ),
        opposite(
            "DeleteGroups removes only groups without members",
            "coordinator/group/admin.py",
            "            if group.state is GroupState.EMPTY:\n",
            "            if True:\n",
            "simulation/test_groups_bad_input.py::test_what_administrators_ask_for_in_vain",
        ),
        opposite(
            "OffsetDelete removes no offset of a topic that a member subscribes to (KIP-496)",
            _OFFSETS,
            "elif subscribed is None or key.topic in subscribed:",
            "elif False:",
            "simulation/test_groups_bad_input.py::test_what_administrators_ask_for_in_vain",
        ),
        opposite(
            "What is removed does not return with the next coordinator",
            "coordinator/group/group_log.py",
            "        keys = [encode_offset_key(OffsetKey(group_id, *key)) for key in offsets]\n",
            "        keys: list[bytes] = []\n",
            "simulation/test_group_removals.py::test_deleted_offsets_are_gone_and_others_stay",
        ),
        opposite(
            "What is removed does not return with the next coordinator",
            "coordinator/group/group_log.py",
            "keys.append(encode_group_key(group_id))",
            "pass",
            "simulation/test_group_removals.py::test_a_deleted_group_is_gone_with_its_offsets",
        ),
    ),
)

SECTIONS = (COMMITS_AND_FETCHES, REMOVAL_AND_RETENTION)
