"""Opposites of the rules of the controller: elections of leaders, and the replicas' states."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-controller.md"
_OFFLINE = "election/offline.py"
_ELIGIBLE = "eligibility/elections.py"
_PARTITIONS = "partitions/partition_state_machine.py"
_REPLICAS = "partitions/replica_state_machine.py"

PARTITIONS = Section(
    _TABLE,
    "3. Partitions and elections",
    (
        opposite(
            "Legal changes of state",
            "state/states.py",
            "    _P.NON_EXISTENT: {_P.OFFLINE},\n",
            "    _P.NON_EXISTENT: {_P.OFFLINE, _P.ONLINE},\n",
            "unit/test_controller_states.py::test_a_partition_changes_its_state_as_in_kafka",
        ),
        opposite(
            "An illegal change is logged and skipped",
            "state/states.py",
            "        if present in previous[target]:\n",
            "        if True:\n",
            "simulation/test_controller_rules.py::test_a_state_that_must_not_follow_is_left_out_and_the_others_go_on",
        ),
        opposite(
            "New to Online: the first online replica leads",
            _OFFLINE,
            "    return LeaderAndIsr(live[0], 0, live, controller_epoch)\n",
            "    return LeaderAndIsr(live[0], 0, live[:1], controller_epoch)\n",
            "unit/test_election.py::test_the_first_leader_of_a_partition_has_every_live_replica_in_its_isr",
        ),
        opposite(
            "... LeaderAndIsr with `is_new` to the ISR only",
            _PARTITIONS,
            "            batch.leader_and_isr(result.isr, partition, result, True, NEW_PARTITION)\n",
            "            batch.leader_and_isr(result.isr, partition, result, False, NEW_PARTITION)\n",
            "simulation/test_controller_topics.py::test_a_topic_written_by_hand_comes_alive_and_gets_an_id",
        ),
        opposite(
            "... LeaderAndIsr with `is_new` to the ISR only",
            _PARTITIONS,
            "            batch.leader_and_isr(result.isr, partition, result, True, NEW_PARTITION)\n",
            "            replicas = context.replicas(partition)\n"
            "            batch.leader_and_isr(replicas, partition, result, True, NEW_PARTITION)\n",
            "simulation/test_controller_events.py::test_a_first_leader_is_announced_to_its_isr_as_new_and_to_no_other_replica",
        ),
        opposite(
            "... none online: it stays New",
            _OFFLINE,
            '    if not live:\n        return Refused(f"NoReplica',
            "    if not live:\n"
            "        return LeaderAndIsr(assignment[0], 0, tuple(assignment), controller_epoch)\n"
            '        return Refused(f"NoReplica',
            "simulation/test_controller_topics.py::test_a_topic_without_any_live_replica_waits_for_one",
        ),
        opposite(
            "To Offline and NonExistent: nothing is written",
            _PARTITIONS,
            "                self._context.partition_states[partition] = target\n",
            "                self._context.partition_states[partition] = target\n"
            "                self._term.update_metadata(self._context.registered_brokers())\n",
            "simulation/test_controller_events.py::test_a_partition_that_goes_offline_or_away_is_written_and_sent_nowhere",
        ),
        opposite(
            "Every election raises the leader epoch by one",
            "store/leader_and_isr.py",
            "leader_epoch=self.leader_epoch + 1)",
            "leader_epoch=self.leader_epoch + 2)",
            "simulation/test_controller_brokers.py::test_a_leaders_death_elects_the_next_in_sync_replica",
        ),
        opposite(
            "A role refused for its leader epoch",
            "eligibility/raised_epoch.py",
            "replace(elected, leader_epoch=newest + 1)",
            "replace(elected, leader_epoch=newest)",
            "unit/test_raised_epoch.py::test_the_leader_of_the_newest_epoch_goes_on_with_its_own_isr",
        ),
        opposite(
            "Read, decide, write at the version read",
            "partitions/leadership.py",
            "        remaining = await adopt_foreign_changes(term, conflicts) if conflicts else []\n",
            "        remaining = []\n",
            "simulation/test_controller_brokers.py::test_a_state_changed_by_hand_is_read_again_before_the_next_election",
        ),
        opposite(
            "No leader is elected from a state with a later",
            "partitions/state_reading.py",
            "    if state.controller_epoch > controller_epoch:\n",
            "    if False:\n",
            "unit/test_state_doubts.py::test_what_no_controller_would_write_is_doubted",
        ),
        opposite(
            "Offline: in assignment order the first",
            _OFFLINE,
            "next((replica for replica in live if replica in state.isr), None)",
            "next((replica for replica in state.isr if replica in live), None)",
            "unit/test_election.py::test_offline_election_takes_the_first_online_in_sync_replica",
        ),
        opposite(
            "Offline: in assignment order the first",
            _OFFLINE,
            "        isr = [replica for replica in state.isr if replica in online]\n",
            "        isr = list(state.isr)\n",
            "unit/test_election.py::test_offline_election_keeps_the_online_members_of_the_isr",
        ),
        opposite(
            "... unclean: only without an online member",
            _OFFLINE,
            "    if live and unclean_allowed:\n",
            "    if live:\n",
            "simulation/test_controller_brokers.py::test_an_unclean_election_happens_only_where_the_topic_allows_it",
        ),
        opposite(
            "... unclean: only without an online member",
            _OFFLINE,
            "recovery_state=RECOVERING)",
            "recovery_state=0)",
            "unit/test_election.py::test_unclean_election_starts_an_isr_of_its_own_and_says_that_data_may_be_lost",
        ),
        opposite(
            "... a member that lost records since",
            _ELIGIBLE,
            "    candidates = [replica for replica in online if replica not in lost]\n",
            "    candidates = list(online)\n",
            "unit/test_eligible.py::test_who_leads_when_something_was_lost",
        ),
        opposite(
            "... a member that lost records since",
            "eligibility/eligible_leader_replicas.py",
            "broker.lost_nothing_since <= proved_at:",
            "True:",
            "unit/test_eligible.py::test_who_lost_something_since_it_proved_what_it_holds",
        ),
        opposite(
            "... a member that lost records since",
            "eligibility/eligible_leader_replicas.py",
            "    if len(state.isr) < minimum.size:\n        eligible",
            "    if True:\n        eligible",
            "unit/test_eligible.py::test_over_the_minimum_no_one_is_eligible",
        ),
        opposite(
            "... if all members lost records one leads alone",
            _ELIGIBLE,
            "state.with_leader(lost[0], lost[:1])",
            "state.with_leader(lost[0], state.isr)",
            "simulation/test_last_replica_standing.py::test_where_all_lost_something_one_leads_and_the_others_prove_themselves_again",
        ),
        opposite(
            "... if all members lost records one leads alone",
            _ELIGIBLE,
            "    if eligibility.awaited and not unclean_allowed:\n",
            "    if False:\n",
            "unit/test_eligible.py::test_who_leads_when_something_was_lost",
        ),
        opposite(
            "... if no member has been registered for `eligible.leader.replicas.wait.ms`",
            _ELIGIBLE,
            "    if set(state.isr) <= set(eligibility.given_up):\n",
            "    if set(state.isr) <= set(eligibility.absent):\n",
            "unit/test_absent_members.py::test_before_the_refusal_names_who_will_lead",
        ),
        opposite(
            "... if no member has been registered for `eligible.leader.replicas.wait.ms`",
            "eligibility/eligible_leader_replicas.py",
            "state.eligible if state.eligible_under in (UNKNOWN, minimum.version) else ()",
            "state.eligible",
            "unit/test_absent_members.py::test_a_changed_minimum_ends_eligibility_even_if_it_is_as_before",
        ),
        opposite(
            "... while a member is only suspected",
            _ELIGIBLE,
            "    if suspected_members and lost == members:\n",
            "    if False:\n",
            "unit/test_election.py::test_a_suspect_of_the_isr_keeps_all_but_its_sound_members_from_leading",
        ),
        opposite(
            "Reassign: the first target replica",
            "election/reassign.py",
            "    isr = tuple(r for r in state.isr if r in target)\n",
            "    isr = state.isr\n",
            "unit/test_election.py::test_a_reassignment_takes_leader_and_isr_from_the_target_and_keeps_a_leader_that_is_in_it",
        ),
        opposite(
            "Reassign: the first target replica",
            "election/reassign.py",
            "for r in (state.leader, *target) if",
            "for r in target if",
            "unit/test_election.py::test_a_reassignment_takes_leader_and_isr_from_the_target_and_keeps_a_leader_that_is_in_it",
        ),
        opposite(
            "Reassign: the first target replica",
            _ELIGIBLE,
            "    preference = _last(target, eligibility.unreachable)\n",
            "    preference = list(target)\n",
            "simulation/test_cut_off.py::test_a_reassignment_hands_over_to_a_broker_that_can_be_told",
        ),
        opposite(
            "Preferred: the first replica",
            "election/preferred.py",
            "    if preferred not in state.isr:\n",
            "    if False:\n",
            "unit/test_election.py::test_preferred_election_wants_the_head_of_the_assignment_online_and_in_sync",
        ),
        opposite(
            "Preferred: the first replica",
            "election/preferred.py",
            "    if preferred not in online:\n",
            "    if False:\n",
            "unit/test_election.py::test_preferred_election_wants_the_head_of_the_assignment_online_and_in_sync",
        ),
        opposite(
            "Controlled shutdown: the first in the ISR",
            "election/controlled_shutdown.py",
            "    isr = tuple(replica for replica in state.isr if replica not in shutting_down)\n",
            "    isr = state.isr\n",
            "unit/test_election.py::test_controlled_shutdown_moves_leadership_to_an_in_sync_replica_that_stays",
        ),
        opposite(
            "... neither elects an unreachable broker",
            "channels/controller_channel_manager.py",
            "        return [broker_id for broker_id in broker_ids if self._has_lost(broker_id)]\n",
            "        return []\n",
            "simulation/test_cut_off.py::test_no_one_hands_over_to_a_broker_that_cannot_be_told",
        ),
        opposite(
            "... neither elects an unreachable broker",
            _ELIGIBLE,
            "    if isinstance(decision, Elected) and preferred in eligibility.unreachable:\n",
            "    if False:\n",
            "simulation/test_cut_off.py::test_a_preferred_leader_that_cannot_be_told_is_not_elected",
        ),
        opposite(
            "... neither elects an unreachable broker",
            _ELIGIBLE,
            "    return replace(decision, recipients=tuple(present))\n",
            "    return replace(decision, recipients=tuple(r for r in present if r not in eligibility.unreachable))\n",
            "simulation/test_cut_off.py::test_who_could_not_be_told_of_a_handover_is_told_when_it_is_back",
        ),
        opposite(
            "Requested elections and their error codes",
            "partitions/leader_elections.py",
            "            return ErrorCode.INVALID_TOPIC_EXCEPTION, ",
            "            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ",
            "simulation/test_controller_elections.py::test_what_is_not_there_or_on_its_way_out_has_no_election",
        ),
        opposite(
            "Requested elections and their error codes",
            "partitions/leader_elections.py",
            "            return leader != self._context.replicas(partition)[0]\n",
            "            return True\n",
            "simulation/test_controller_elections.py::test_the_preferred_replica_leads_when_asked_for_and_in_sync",
        ),
        opposite(
            "Unclean elections enabled by a change",
            "controller.py",
            "        if config.unclean_leader_election_enable and not allowed_before:\n",
            "        if False:\n",
            "simulation/test_all_replicas_down.py::test_an_unclean_election_takes_who_is_there_at_once_and_loses_what_it_lacks",
        ),
    ),
)

REPLICAS = Section(
    _TABLE,
    "4. Replicas",
    (
        opposite(
            "Legal changes of state",
            "state/states.py",
            "    _R.DELETION_STARTED: {_R.OFFLINE},\n",
            "    _R.DELETION_STARTED: {_R.OFFLINE, _R.ONLINE},\n",
            "unit/test_controller_states.py::test_a_replica_changes_its_state_as_in_kafka",
        ),
        opposite(
            "To New: LeaderAndIsr with `is_new`",
            _REPLICAS,
            "batch.leader_and_isr([replica.broker_id], replica.partition, state, True, again)",
            "batch.leader_and_isr([replica.broker_id], replica.partition, state, False, again)",
            "simulation/test_controller_reassignment.py::test_a_partition_moves_to_three_other_brokers",
        ),
        opposite(
            "To Online: from New nothing",
            _REPLICAS,
            "if state is not None and self._context.replica_state(replica) is not ReplicaState.NEW:",
            "if False:",
            "simulation/test_controller_brokers.py::test_a_broker_that_restarts_faster_than_anyone_looks_is_treated_as_dead_and_new",
        ),
        opposite(
            "To Online: from New nothing",
            _REPLICAS,
            "if state is not None and self._context.replica_state(replica) is not ReplicaState.NEW:",
            "if state is not None:",
            "simulation/test_controller_topics.py::test_a_topic_written_by_hand_comes_alive_and_gets_an_id",
        ),
        opposite(
            "To Offline: StopReplica without deletion",
            _REPLICAS,
            "            await self._leave_isrs(broker_id, [r.partition for r in group], batch, cause)\n",
            "            batch.update_metadata(self._context.registered_brokers(), [r.partition for r in group])\n",
            "simulation/test_controller_brokers.py::test_a_followers_death_takes_it_out_of_the_isr_and_raises_the_leader_epoch",
        ),
        opposite(
            "To Offline: StopReplica without deletion",
            _REPLICAS,
            "                batch.stop_replica(replica.broker_id, replica.partition, False, cause)\n",
            "                pass\n",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "To Offline: StopReplica without deletion",
            _REPLICAS,
            "            if isinstance(decision, Elected) and not context.is_being_deleted(partition.topic):\n",
            "            if False:\n",
            "simulation/test_controller_brokers.py::test_a_followers_death_takes_it_out_of_the_isr_and_raises_the_leader_epoch",
        ),
        opposite(
            "... a suspected broker gets no StopReplica",
            _REPLICAS,
            "            if not self._context.is_suspected(replica.broker_id):\n",
            "            if True:\n",
            "simulation/test_suspects.py::test_a_replica_without_others_keeps_its_leader_when_it_is_suspected",
        ),
        opposite(
            "... if it led there is no leader",
            "election/isr_removal.py",
            "    leader = NO_LEADER if replica == state.leader else state.leader\n",
            "    leader = state.leader\n",
            "unit/test_election.py::test_the_last_member_of_the_isr_stays_though_it_no_longer_leads",
        ),
        opposite(
            "... if it led there is no leader",
            "election/isr_removal.py",
            " or state.isr\n",
            "\n",
            "unit/test_election.py::test_an_isr_is_never_emptied",
        ),
        opposite(
            "... outside the ISR nothing is written",
            "election/isr_removal.py",
            '        return Unchanged(f"{replica} is not in the ISR {list(state.isr)}")\n',
            "        others = tuple(r for r in assignment if r != replica)\n"
            "        return Elected(state.with_leader(state.leader, state.isr), others, cause)\n",
            "unit/test_election.py::test_a_replica_out_of_the_isr_changes_nothing",
        ),
        opposite(
            "To DeletionStarted: StopReplica with deletion",
            _REPLICAS,
            "batch.stop_replica(replica.broker_id, replica.partition, True, cause)",
            "batch.stop_replica(replica.broker_id, replica.partition, False, cause)",
            "simulation/test_controller_topics.py::test_a_deleted_topic_leaves_nothing_behind",
        ),
    ),
)

SECTIONS = (PARTITIONS, REPLICAS)
