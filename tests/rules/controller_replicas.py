"""Opposites of the rules of the controller: the replicas' states."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-controller.md"
_REPLICAS = "partitions/replica_state_machine.py"

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

SECTIONS = (REPLICAS,)
