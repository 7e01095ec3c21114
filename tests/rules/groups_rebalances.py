"""Opposites of the rules of groups: rebalances, assignments, heartbeats, and the members themselves."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-groups.md"
_JOIN = "coordinator/group/membership/join.py"
_REBALANCE = "coordinator/group/membership/rebalance.py"
_SYNC = "coordinator/group/membership/sync.py"
_SESSIONS = "coordinator/group/membership/sessions.py"
_GROUP = "coordinator/group/group.py"
_OFFSETS = "coordinator/group/offsets.py"
_COORDINATOR = "coordinator/group/coordinator.py"

REBALANCES = Section(
    _TABLE,
    "2. Rebalances",
    (
        opposite(
            "The legal changes of state",
            "coordinator/group/states.py",
            "GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),",
            "GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),",
            "unit/test_group_rules.py::test_the_changes_of_state_are_kafkas",
        ),
        opposite(
            "The legal changes of state",
            _GROUP,
            "        if not may_follow(state, self.state):\n",
            "        if False:\n",
            "unit/test_group_offsets.py::test_only_the_changes_in_the_table_are_made",
        ),
        opposite(
            "The first rebalance of an empty group",
            _REBALANCE,
            "if waits and not self.is_initial(group) and group.has_all_members_joined:",
            "if waits and group.has_all_members_joined:",
            "unit/test_group_membership.py::test_the_first_member_waits_for_the_initial_delay",
        ),
        opposite(
            "... and again as long",
            _REBALANCE,
            "if group.new_member_added and remaining_ms:",
            "if False:",
            "unit/test_group_membership.py::test_members_that_arrive_extend_the_initial_delay_up_to_the_rebalance_timeout",
        ),
        opposite(
            "... and again as long",
            _REBALANCE,
            "max(remaining_ms - delay_ms, 0)",
            "remaining_ms",
            "unit/test_group_membership.py::test_members_that_arrive_extend_the_initial_delay_up_to_the_rebalance_timeout",
        ),
        opposite(
            "Others are complete when all members have joined again, and all that were given an id",
            _GROUP,
            "return not self.pending_members and not self.not_yet_rejoined",
            "return not self.not_yet_rejoined",
            "unit/test_group_membership.py::test_a_rebalance_waits_for_ids_that_were_given_out",
        ),
        opposite(
            "Others are complete when all members have joined again, and all that were given an id",
            _GROUP,
            "return not self.pending_members and not self.not_yet_rejoined",
            "return not self.pending_members",
            "unit/test_group_membership.py::test_parked_members_do_not_expire",
        ),
        opposite(
            "... or when the longest rebalance timeout of a member is over",
            _GROUP,
            "return max((m.rebalance_timeout_ms for m in",
            "return min((m.rebalance_timeout_ms for m in",
            "unit/test_group_rules.py::test_a_rebalance_waits_as_long_as_its_slowest_member_may_need",
        ),
        opposite(
            "... the dynamic members that did not come are removed then",
            _REBALANCE,
            "            if not member.is_static:\n",
            "            if False:\n",
            "unit/test_group_membership.py::test_parked_members_do_not_expire",
        ),
        opposite(
            "The first member leads, and another one that has joined when it is missing",
            _GROUP,
            "self.leader_id = self.leader_id or member.member_id",
            "self.leader_id = member.member_id",
            "unit/test_group_membership.py::test_only_the_leader_learns_who_is_there_and_what_they_support",
        ),
        opposite(
            "The first member leads, and another one that has joined when it is missing",
            _GROUP,
            "if leader is not None and leader.answer_join is not None:",
            "if leader is not None:",
            "unit/test_group_membership.py::test_a_static_member_stays_in_a_rebalance_it_misses_until_its_session_ends",
        ),
        opposite(
            "Only the leader learns who is there and what they support",
            _REBALANCE,
            "members=is_leader))",
            "members=True))",
            "unit/test_group_membership.py::test_only_the_leader_learns_who_is_there_and_what_they_support",
        ),
        opposite(
            "Each rebalance has the next generation",
            _GROUP,
            "self.generation_id += 1",
            "self.generation_id = 1",
            "unit/test_group_membership.py::test_another_member_leads_when_the_leader_leaves",
        ),
        opposite(
            "A rebalance that begins while assignments are awaited makes those that wait join again",
            _REBALANCE,
            "self.drop_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)",
            "pass",
            "unit/test_group_membership.py::test_a_write_that_a_later_generation_has_overtaken_changes_nothing",
        ),
        opposite(
            "Without members the group is Empty, and that is written",
            _REBALANCE,
            "self._context.store(group, {}, lambda _: None)",
            "pass",
            "unit/test_group_membership.py::test_the_last_member_that_leaves_empties_the_group_and_that_is_written",
        ),
        opposite(
            "A rebalance names the members that it waits for, and for how long. Beyond Kafka",
            "coordinator/group/membership/awaited.py",
            "for member in group.not_yet_rejoined]",
            "for member in group.members.values()]",
            "unit/test_group_awaited.py::test_a_rebalance_waits_for_the_members_that_have_not_joined_again",
        ),
        opposite(
            "A rebalance names the members that it waits for, and for how long. Beyond Kafka",
            "coordinator/group/membership/awaited.py",
            "if m.member_id in group.pending_sync_members]",
            "]",
            "unit/test_group_awaited.py::test_an_assignment_waits_for_the_members_that_have_not_asked_for_it",
        ),
    ),
)

ASSIGNMENTS = Section(
    _TABLE,
    "3. Assignments",
    (
        opposite(
            "An assignment is given out once it is written",
            _SYNC,
            "        self._context.store(group, assignments, stored)\n",
            "        stored(ErrorCode.NONE)\n",
            "unit/test_group_membership.py::test_an_assignment_is_given_out_once_it_is_written",
        ),
        opposite(
            "A member that the leader leaves out gets an empty one",
            _SYNC,
            'assigned.get(member_id, b"") for',
            'assigned.get(member_id, b"?") for',
            "unit/test_group_membership.py::test_an_assignment_is_given_out_once_it_is_written",
        ),
        opposite(
            "One that cannot be written starts a rebalance",
            _SYNC,
            "            if error:\n                self._rebalances.drop",
            "            if False:\n                self._rebalances.drop",
            "unit/test_group_membership.py::test_an_assignment_that_cannot_be_written_starts_a_rebalance",
        ),
        opposite(
            "A write that a later generation has overtaken changes nothing",
            _SYNC,
            "if not current or group.state is not GroupState.COMPLETING_REBALANCE:",
            "if False:",
            "unit/test_group_membership.py::test_a_write_that_a_later_generation_has_overtaken_changes_nothing",
        ),
        opposite(
            "A member that does not ask for its assignment within the rebalance timeout is removed",
            _REBALANCE,
            'self._drop(group, member, "it did not ask for its assignment in time")',
            "pass",
            "unit/test_group_membership.py::test_members_that_do_not_ask_for_their_assignment_are_removed",
        ),
        opposite(
            "SyncGroup fits the member, its instance, the generation, the protocol and its type",
            _SYNC,
            "if not error and generation_id != group.generation_id:",
            "if False:",
            "unit/test_group_membership.py::test_a_sync_that_does_not_fit_is_refused",
        ),
        opposite(
            "SyncGroup fits the member, its instance, the generation, the protocol and its type",
            _SYNC,
            "if request.protocol_name and request.protocol_name != group.protocol_name:",
            "if False:",
            "unit/test_group_membership.py::test_a_sync_that_does_not_fit_is_refused",
        ),
        opposite(
            "SyncGroup fits the member, its instance, the generation, the protocol and its type",
            _SYNC,
            "if request.protocol_type and request.protocol_type != group.protocol_type:",
            "if False:",
            "unit/test_group_membership.py::test_a_sync_that_does_not_fit_is_refused",
        ),
        opposite(
            "During a rebalance it is answered REBALANCE_IN_PROGRESS",
            _SYNC,
            "INCONSISTENT_GROUP_PROTOCOL\n    if group.state is GroupState.PREPARING_REBALANCE:",
            "INCONSISTENT_GROUP_PROTOCOL\n    if False:",
            "unit/test_group_rules.py::test_an_assignment_is_not_asked_for_during_a_rebalance",
        ),
    ),
)

HEARTBEATS_AND_SESSIONS = Section(
    _TABLE,
    "4. Heartbeats and sessions",
    (
        opposite(
            "A member that sends nothing for its session timeout is removed, and the others rebalance",
            _SESSIONS,
            "            self._expire(group, member)\n",
            "            pass\n",
            "unit/test_group_membership.py::test_a_member_that_does_not_heartbeat_expires_and_the_others_rebalance",
        ),
        opposite(
            "A heartbeat begins its session again",
            _SYNC,
            "        self._sessions.extend(group, group.members[request.member_id])\n",
            "",
            "unit/test_group_membership.py::test_a_member_that_does_not_heartbeat_expires_and_the_others_rebalance",
        ),
        opposite(
            "So does a commit",
            _OFFSETS,
            "            self._sessions.extend(group, member)\n",
            "            pass\n",
            "simulation/test_group_rules.py::test_a_commit_is_a_sign_of_life",
        ),
        opposite(
            "A member that waits for its coordinator's answer does not expire",
            _SESSIONS,
            "elif member.waits and not member.is_new:",
            "elif False:",
            "unit/test_group_membership.py::test_parked_members_do_not_expire",
        ),
        opposite(
            "... but a new one does after five minutes, for it may never learn its id",
            _REBALANCE,
            "NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000",
            "NEW_MEMBER_JOIN_TIMEOUT_MS = 3_000_000",
            "unit/test_group_membership.py::test_a_new_member_that_waits_too_long_is_given_up",
        ),
        opposite(
            "A heartbeat is told of a rebalance: REBALANCE_IN_PROGRESS",
            _SYNC,
            "            return ErrorCode.REBALANCE_IN_PROGRESS\n        return ErrorCode.NONE",
            "            return ErrorCode.NONE\n        return ErrorCode.NONE",
            "unit/test_group_membership.py::test_a_member_that_does_not_heartbeat_expires_and_the_others_rebalance",
        ),
        opposite(
            "... but not while the leader assigns",
            _SYNC,
            "        if group.state is GroupState.PREPARING_REBALANCE:\n            return ErrorCode",
            "        if group.state is not GroupState.STABLE:\n            return ErrorCode",
            "unit/test_group_rules.py::test_heartbeats_are_in_order_while_the_leader_assigns",
        ),
        opposite(
            "A member that is not known",
            _SYNC,
            "if not error and generation_id != group.generation_id:",
            "if not error and generation_id > group.generation_id:",
            "unit/test_group_membership.py::test_heartbeats_name_what_is_wrong",
        ),
        opposite(
            "A member that is not known",
            _GROUP,
            "return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID",
            "return ErrorCode.NONE if member_id in self.members else ErrorCode.ILLEGAL_GENERATION",
            "unit/test_group_membership.py::test_heartbeats_name_what_is_wrong",
        ),
        opposite(
            "A group that does not exist: UNKNOWN_MEMBER_ID",
            _COORDINATOR,
            "HeartbeatResponse(error or ErrorCode.UNKNOWN_MEMBER_ID)",
            "HeartbeatResponse(error)",
            "simulation/test_group_coordinator_moves.py::test_requests_of_members_that_the_new_coordinator_does_not_know",
        ),
        opposite(
            "A group that does not exist: UNKNOWN_MEMBER_ID",
            _COORDINATOR,
            "SyncGroupResponse(error or ErrorCode.UNKNOWN_MEMBER_ID)",
            "SyncGroupResponse(error)",
            "simulation/test_group_coordinator_moves.py::test_requests_of_members_that_the_new_coordinator_does_not_know",
        ),
    ),
)

MEMBERS = Section(
    _TABLE,
    "10. Members",
    (
        opposite(
            "An eager member gives up everything before it joins, a cooperative one keeps what it reads (KIP-429)",
            "consumer/membership.py",
            "if lost or not self.config.cooperative:",
            "if lost:",
            "simulation/test_group_members.py::test_the_listener_is_told_what_changes",
        ),
        opposite(
            "An eager member gives up everything before it joins, a cooperative one keeps what it reads (KIP-429)",
            "consumer/membership.py",
            "if lost or not self.config.cooperative:",
            "if True:",
            "simulation/test_group_members.py::test_a_cooperative_join_stops_no_partition_that_stays",
        ),
        opposite(
            "A member that does not poll",
            "group/heartbeats.py",
            "elif self.seconds_late >= 0:",
            "elif False:",
            "simulation/test_group_members.py::test_a_member_that_polls_too_late_leaves_and_loses_its_partitions",
        ),
        opposite(
            "... while it works",
            "group/states.py",
            "(_S.REVOKING, _S.COMPLETING_REBALANCE, _S.ASSIGNING, _S.STABLE)",
            "(_S.REVOKING, _S.COMPLETING_REBALANCE, _S.ASSIGNING)",
            "simulation/test_group_members.py::test_heartbeats_go_on_while_the_application_works",
        ),
        opposite(
            "A coordinator that has moved is looked for, whatever was asked",
            "group/states.py",
            "_E.NOT_COORDINATOR: _R.FIND_COORDINATOR,",
            "_E.NOT_COORDINATOR: _R.TRY_AGAIN,",
            "unit/test_group_states.py::test_a_moved_coordinator_is_looked_for_whatever_was_asked",
        ),
        opposite(
            "A leader starts a rebalance when partitions of the group's topics come or go",
            "group/member.py",
            "        if what:\n            self.join(what)\n",
            "",
            "simulation/test_group_members.py::test_new_partitions_make_the_leader_rebalance",
        ),
        opposite(
            "A commit is sent in the generation it was made in, or not at all",
            "consumer/commits.py",
            "        if member.generation != sent:\n",
            "        if False:\n",
            "simulation/test_group_commits.py::test_a_commit_that_waited_for_another_is_not_sent_in_a_later_generation",
        ),
    ),
)

SECTIONS = (REBALANCES, ASSIGNMENTS, HEARTBEATS_AND_SESSIONS, MEMBERS)
