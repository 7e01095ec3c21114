"""Opposites of the rules of groups: joining and leaving."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-groups.md"
_JOIN = "coordinator/group/membership/join.py"
_REBALANCE = "coordinator/group/membership/rebalance.py"
_SYNC = "coordinator/group/membership/sync.py"
_SESSIONS = "coordinator/group/membership/sessions.py"
_GROUP = "coordinator/group/group.py"
_GROUPS = "coordinator/group/groups.py"
_OWNED = "coordinator/owned_partitions.py"
_COORDINATOR = "coordinator/group/coordinator.py"

JOINING = Section(
    _TABLE,
    "1. Joining",
    (
        opposite(
            "A new dynamic member is given an id, and joins with it (KIP-394)",
            _JOIN,
            "        elif instance_id:\n",
            "        elif True:\n",
            "unit/test_group_membership.py::test_a_new_member_is_given_an_id_and_joins_with_it",
        ),
        opposite(
            "An id that is not used within the session timeout is forgotten",
            _SESSIONS,
            "call_later(seconds, look)",
            "call_later(seconds * 100, look)",
            "unit/test_group_membership.py::test_an_id_that_is_not_used_within_the_session_timeout_is_forgotten",
        ),
        opposite(
            "The session timeout is between",
            _JOIN,
            "limits.min_session_timeout_ms <= session_timeout_ms <= limits.max_session_timeout_ms",
            "session_timeout_ms <= limits.max_session_timeout_ms",
            "simulation/test_groups_bad_input.py::test_a_session_timeout_outside_the_brokers_limits_is_invalid",
        ),
        opposite(
            "The session timeout is between",
            _JOIN,
            "limits.min_session_timeout_ms <= session_timeout_ms <= limits.max_session_timeout_ms",
            "limits.min_session_timeout_ms <= session_timeout_ms",
            "simulation/test_groups_bad_input.py::test_a_session_timeout_outside_the_brokers_limits_is_invalid",
        ),
        opposite(
            "A member has the group's protocol type, and a protocol that all others have",
            _GROUP,
            "        if self.protocol_type != protocol_type:\n",
            "        if False:\n",
            "unit/test_group_membership.py::test_members_without_a_common_protocol_are_refused",
        ),
        opposite(
            "A member has the group's protocol type, and a protocol that all others have",
            _GROUP,
            "return bool(self._supported_by_all({name for name, _ in protocols}))",
            "return bool(protocols)",
            "unit/test_group_membership.py::test_members_without_a_common_protocol_are_refused",
        ),
        opposite(
            "The first member names a protocol type and a protocol",
            _GROUP,
            "return bool(protocol_type and protocols)",
            "return True",
            "unit/test_group_membership.py::test_an_empty_group_wants_a_type_and_a_protocol",
        ),
        opposite(
            "The group uses the protocol that most members prefer of those that all support",
            _GROUP,
            "return votes.most_common(1)[0][0]",
            "return min(votes)",
            "unit/test_group_membership.py::test_the_protocol_is_the_one_that_most_prefer_of_those_all_support",
        ),
        opposite(
            "The group uses the protocol that most members prefer of those that all support",
            _GROUP,
            "candidates = self._supported_by_all({name for name, _ in members[0].protocols})",
            "candidates = {name for name, _ in members[0].protocols}",
            "unit/test_group_rules.py::test_a_protocol_that_one_member_lacks_is_not_selected",
        ),
        opposite(
            "A group of `group.max.size`",
            _JOIN,
            "return member is not None or len(group.members) < limit",
            "return True",
            "unit/test_group_membership.py::test_a_full_group_refuses_new_members_and_keeps_its_own",
        ),
        opposite(
            "A group of `group.max.size`",
            _JOIN,
            "return member is not None or len(group.members) < limit",
            "return len(group.members) < limit",
            "unit/test_group_membership.py::test_a_full_group_refuses_new_members_and_keeps_its_own",
        ),
        opposite(
            "The leader that joins again starts a rebalance; another member that repeats its join does not",
            _JOIN,
            "GroupState.STABLE and same and not group.is_leader(member_id):",
            "GroupState.STABLE and same:",
            "unit/test_group_membership.py::test_the_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not",
        ),
        opposite(
            "The leader that joins again starts a rebalance; another member that repeats its join does not",
            _JOIN,
            "GroupState.STABLE and same and not group.is_leader(member_id):",
            "GroupState.STABLE and False:",
            "unit/test_group_membership.py::test_the_leader_that_joins_again_starts_a_rebalance_and_a_follower_does_not",
        ),
        opposite(
            "A member that changes what it supports starts a rebalance",
            _JOIN,
            "same = member.protocols == joining.protocols",
            "same = True",
            "unit/test_group_membership.py::test_a_follower_with_other_metadata_starts_a_rebalance",
        ),
        opposite(
            "An answer that was lost is given again while the group waits for its assignment",
            _JOIN,
            "elif group.state is GroupState.COMPLETING_REBALANCE and same:",
            "elif False:",
            "unit/test_group_membership.py::test_a_lost_answer_is_given_again_while_the_group_waits_for_its_leader",
        ),
        opposite(
            "Of two requests of one member that wait, the earlier is answered REBALANCE_IN_PROGRESS",
            _JOIN,
            "JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)",
            "JoinGroupResponse(member_id=member.member_id)",
            "unit/test_group_rules.py::test_of_two_joins_of_one_member_the_earlier_gets_no_other_answer",
        ),
        opposite(
            "Of two requests of one member that wait, the earlier is answered REBALANCE_IN_PROGRESS",
            _SYNC,
            "member.synced(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))",
            "member.synced(SyncGroupResponse())",
            "unit/test_group_rules.py::test_of_two_syncs_of_one_member_the_earlier_gets_no_other_answer",
        ),
        opposite(
            "A broker that does not coordinate the group answers NOT_COORDINATOR",
            _OWNED,
            "return ErrorCode.NONE if partition in self._owned else ErrorCode.NOT_COORDINATOR",
            "return ErrorCode.NONE",
            "simulation/test_groups_bad_input.py::test_a_broker_that_does_not_coordinate_says_so",
        ),
        opposite(
            "An empty group id is INVALID_GROUP_ID",
            _GROUPS,
            "if not (group_id or empty_id_allowed) or not fits(group_id):",
            "if not fits(group_id):",
            "simulation/test_groups_bad_input.py::test_an_empty_group_id_is_invalid_but_where_old_clients_used_it",
        ),
        opposite(
            "An empty group id is INVALID_GROUP_ID",
            _GROUPS,
            "if not (group_id or empty_id_allowed) or not fits(group_id):",
            "if not group_id or not fits(group_id):",
            "simulation/test_groups_bad_input.py::test_an_empty_group_id_is_invalid_but_where_old_clients_used_it",
        ),
        opposite(
            "A name that no record can hold is refused before anything changes",
            _COORDINATOR,
            '        f"{request.client_id}-{_ANY_UUID}",\n',
            "",
            "simulation/test_groups_bad_input.py::test_names_that_no_record_can_hold_are_refused_before_anything_changes",
        ),
    ),
)

LEAVING = Section(
    _TABLE,
    "5. Leaving",
    (
        opposite(
            "A member that leaves is removed at once, and the others rebalance",
            _REBALANCE,
            '            self.begin_if_possible(group, f"{member.member_id} is gone: {cause}")\n',
            "            pass\n",
            "unit/test_group_rules.py::test_a_member_that_leaves_makes_the_others_rebalance",
        ),
        opposite(
            "An id that was given out and not used can leave",
            _SYNC,
            "        if member_id in group.pending_members:\n",
            "        if False:\n",
            "unit/test_group_membership.py::test_a_rebalance_waits_for_ids_that_were_given_out",
        ),
        opposite(
            "A static member can be removed by its instance id alone",
            _SYNC,
            "        if not member_id:\n",
            "        if False:\n",
            "unit/test_group_membership.py::test_a_static_member_can_be_removed_by_its_instance_id_alone",
        ),
        opposite(
            "One request removes several members, each with its own outcome",
            _COORDINATOR,
            "members=[self._syncs.leave(group, m) for m in request.members]",
            "members=[self._syncs.leave(group, m) for m in request.members[:1]]",
            "simulation/test_group_rules.py::test_several_members_leave_in_one_request",
        ),
    ),
)

STATIC_MEMBERS = Section(
    _TABLE,
    "6. Static members (KIP-345)",
    (
        opposite(
            "It returns under its instance id without a rebalance, with its assignment, and its new id is written",
            _JOIN,
            "if group.select_protocol() != group.protocol_name:",
            "if True:",
            "unit/test_group_membership.py::test_a_static_member_needs_no_id_first_and_returns_without_a_rebalance",
        ),
        opposite(
            "... unless the group would use another protocol with it",
            _JOIN,
            "if group.select_protocol() != group.protocol_name:",
            "if False:",
            "unit/test_group_membership.py::test_a_static_member_that_returns_with_another_preference_rebalances",
        ),
        opposite(
            "If its new id cannot be written the old one counts",
            _JOIN,
            "                if error:\n                    self._undo",
            "                if False:\n                    self._undo",
            "unit/test_group_membership.py::test_a_static_member_whose_new_id_cannot_be_written_keeps_the_old_one",
        ),
        opposite(
            "The process with the old id is fenced: FENCED_INSTANCE_ID",
            _GROUP,
            "return ErrorCode.NONE if current == member_id else ErrorCode.FENCED_INSTANCE_ID",
            "return ErrorCode.NONE",
            "unit/test_group_membership.py::test_a_parked_request_of_a_replaced_member_is_fenced",
        ),
        opposite(
            "The process with the old id is fenced: FENCED_INSTANCE_ID",
            _GROUP,
            "member.joined(JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))",
            "member.joined(JoinGroupResponse(member_id=old_id))",
            "unit/test_group_membership.py::test_a_parked_request_of_a_replaced_member_is_fenced",
        ),
        opposite(
            "It stays in a rebalance that it misses, until its session ends",
            _REBALANCE,
            "            if not member.is_static:\n",
            "            if True:\n",
            "unit/test_group_membership.py::test_a_static_member_stays_in_a_rebalance_it_misses_until_its_session_ends",
        ),
        opposite(
            "Its client sends no LeaveGroup",
            "group/member.py",
            "or not left.member_id or self.config.group_instance_id:",
            "or not left.member_id:",
            "simulation/test_group_members.py::test_a_static_member_comes_back_as_itself",
        ),
    ),
)

SECTIONS = (JOINING, LEAVING, STATIC_MEMBERS)
