"""Opposites of the rules of the controller: replicas and leaderships move, brokers stop and start."""

from tests.support.opposites import NoOpposite, Section, opposite

_TABLE = "rules-controller.md"
_REASSIGNMENTS = "reassignment/reassignments.py"
_SHUTDOWN = "brokers/controlled_shutdown.py"

REASSIGNMENT = Section(
    _TABLE,
    "10. Reassignment",
    (
        opposite(
            "Target first, then the removed replicas",
            "reassignment/reassignment_rules.py",
            "ReplicaAssignment((*target, *leaving), adding, leaving)",
            "ReplicaAssignment((*leaving, *target), adding, leaving)",
            "unit/test_reassignment.py::test_the_assignment_on_the_way_holds_both_ends",
        ),
        opposite(
            "What is legal, and the error codes",
            "reassignment/reassignment_rules.py",
            "    if absent:\n",
            "    if False:\n",
            "unit/test_reassignment.py::test_what_may_be_asked",
        ),
        opposite(
            "U: the reassignment is written",
            _REASSIGNMENTS,
            "        removed = removed_replicas(current, wanted)\n",
            "        removed = ()\n",
            "simulation/test_controller_reassignment.py::test_another_target_on_the_way_drops_those_only_the_first_one_had",
        ),
        opposite(
            "A: the epoch grows, all replicas receive",
            _REASSIGNMENTS,
            "                is_new = broker_id not in decision.state.isr\n",
            "                is_new = False\n",
            "simulation/test_controller_reassignment.py::test_a_partition_moves_to_three_other_brokers",
        ),
        opposite(
            "A: the epoch grows, all replicas receive",
            "election/reassign.py",
            "    return Elected(state.with_leader(state.leader, state.isr), tuple(recipients), cause)\n",
            "    return Elected(state, tuple(recipients), cause)\n",
            "simulation/test_controller_reassignment.py::test_a_partition_moves_to_three_other_brokers",
        ),
        opposite(
            "B, once the target is in sync",
            "reassignment/reassignment_rules.py",
            " and any(r in online for r in target)",
            "",
            "unit/test_reassignment.py::test_it_is_done_when_the_whole_target_is_in_sync_and_one_of_it_can_lead",
        ),
        opposite(
            "B, once the target is in sync",
            _REASSIGNMENTS,
            "            final = ReplicaAssignment(target_of(assignment))\n",
            "            final = ReplicaAssignment(target_of(assignment))\n"
            "            await self._term.fenced.write_assignments(\n"
            "                partition.topic, {partition.partition: final}\n"
            "            )\n",
            "simulation/test_reassignment.py::test_the_controller_dies_after_each_of_its_writes",
        ),
        opposite(
            "B, once the target is in sync",
            "reassignment/reassignment_rules.py",
            "set(target) <= set(state.isr)",
            "bool(set(target) & set(state.isr))",
            "unit/test_reassignment.py::test_it_is_done_when_the_whole_target_is_in_sync_and_one_of_it_can_lead",
        ),
        opposite(
            "A cancel restores the original replicas",
            "reassignment/reassignment_rules.py",
            "        return reassigned(current, original_of(current))\n",
            "        return ReplicaAssignment(current.replicas)\n",
            "simulation/test_controller_reassignment.py::test_a_cancel_puts_the_original_back_and_deletes_the_newcomers",
        ),
        opposite(
            "A cancel restores the original replicas",
            _REASSIGNMENTS,
            "        if removed and not await self._remove_replicas(partition, wanted, removed, cause):\n",
            "        if removed and not await self._remove_replicas(partition, wanted, removed, cause) and False:\n",
            "simulation/test_controller_reassignment.py::test_a_cancel_that_would_delete_the_last_in_sync_replica_is_refused",
        ),
        opposite(
            "Resumed after each ISR change",
            _REASSIGNMENTS,
            "            if partition in self._context.reassigning and self._is_complete(partition):\n"
            "                self._term.enqueue(",
            "            if False:\n                self._term.enqueue(",
            "simulation/test_controller_reassignment.py::test_a_partition_moves_to_three_other_brokers",
        ),
        opposite(
            "Resumed after each ISR change",
            _REASSIGNMENTS,
            "            if any(replica in broker_ids for replica in target_of(assignment)):\n",
            "            if False:\n",
            "simulation/test_controller_reassignment.py::test_a_target_that_is_in_sync_and_dead_is_waited_for",
        ),
        opposite(
            "Resumed after each ISR change",
            "reassignment/reassignments.py",
            "        for partition in list(self._context.reassigning):\n            await self.go_on(",
            "        for partition in ():\n            await self.go_on(",
            "simulation/test_controller_reassignment.py::test_a_new_controller_goes_on_where_the_previous_one_was",
        ),
        opposite(
            "The response to the last StopReplica",
            "replica/strays.py",
            "        and broker_id not in states.replicas\n",
            "        and False\n",
            "simulation/test_strays.py::test_a_stray_follower_asks_no_more",
        ),
        opposite(
            "The response to the last StopReplica",
            "replica/strays.py",
            "        return not same_topic(log.topic_id, self._cache.topic_id(key.topic))\n",
            "        return False\n",
            "simulation/test_strays.py::test_a_topic_is_led_although_one_of_its_brokers_has_a_log_of_an_earlier_topic",
        ),
        opposite(
            "The response to the last StopReplica",
            "replica/strays.py",
            "        and leader_epoch <= states.leader_epoch\n",
            "",
            "unit/test_strays.py::test_what_a_stray_is",
        ),
    ),
)

PREFERRED = Section(
    _TABLE,
    "11. Preferred leaders",
    (
        opposite(
            "If others lead more than the allowed share",
            "partitions/preferred_rebalance.py",
            "        if len(drifted) * 100 > percentage * len(partitions):\n",
            "        if drifted:\n",
            "unit/test_controller_request_batch.py::test_leadership_is_handed_back_when_more_than_the_allowed_share_has_drifted",
        ),
        opposite(
            "If others lead more than the allowed share",
            "partitions/preferred_rebalance.py",
            "                if context.is_online(broker_id, p) and broker_id in context.leadership[p].isr\n",
            "",
            "unit/test_controller_request_batch.py::test_only_partitions_whose_preferred_replica_can_lead_are_handed_back",
        ),
        opposite(
            "In each interval, whatever the result",
            "partitions/preferred_rebalance.py",
            "        while True:\n",
            "        for _ in range(1):\n",
            "simulation/test_controller_brokers.py::test_the_preferred_replicas_lead_again_after_a_while",
        ),
        opposite(
            "The configuration keys are dynamic",
            "controller.py",
            "        self._config = config\n        if config",
            "        if config",
            "simulation/test_controller_elections.py::test_the_rebalance_can_be_switched_on_while_a_controller_rules",
        ),
    ),
)

SHUTDOWN = Section(
    _TABLE,
    "12. Controlled shutdown",
    (
        opposite(
            "Not active: NOT_CONTROLLER; earlier broker epoch",
            _SHUTDOWN,
            "        if request.broker_epoch < broker.epoch:\n",
            "        if False:\n",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "Not active: NOT_CONTROLLER; earlier broker epoch",
            _SHUTDOWN,
            "ControlledShutdownResponse(ErrorCode.BROKER_NOT_AVAILABLE)",
            "ControlledShutdownResponse(ErrorCode.STALE_BROKER_EPOCH)",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "Its leaderships move; its followers stop",
            _SHUTDOWN,
            "        await self._partitions.elect_for_shutdown(led, cause)\n",
            "",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "Its leaderships move; its followers stop",
            _SHUTDOWN,
            "        await self._replicas.change(stopped, ReplicaState.OFFLINE, cause)\n",
            "",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "Its leaderships move; its followers stop",
            _SHUTDOWN,
            "if state is None or len(context.replicas(partition)) == 1:",
            "if state is None:",
            "simulation/test_controller_brokers.py::test_a_stopping_broker_hands_over_its_leaderships_first",
        ),
        opposite(
            "The response names the partitions",
            _SHUTDOWN,
            "[PartitionError(p.topic, p.partition) for p in remaining]",
            "[]",
            "simulation/test_controller_brokers.py::test_a_broker_that_is_the_only_in_sync_one_is_told_what_it_still_leads",
        ),
        opposite(
            "It is shutting down until its registration",
            "brokers/broker_changes.py",
            "            self._context.shutting_down.discard(broker_id)\n",
            "",
            "simulation/test_controller_rules.py::test_a_broker_that_asked_to_stop_counts_again_when_it_is_back",
        ),
        opposite(
            "The broker sends up to `controlled.shutdown.max.retries`",
            "server/broker.py",
            "        for attempt in range(1, retries + 1):\n",
            "        for attempt in range(1, 2):\n",
            "simulation/test_controller_rules.py::test_a_broker_that_cannot_hand_all_over_tries_three_times_and_stops_all_the_same",
        ),
        opposite(
            "The broker sends up to `controlled.shutdown.max.retries`",
            "server/broker.py",
            "        opened.push_async_callback(self.membership.leave)\n        cluster_id",
            "        cluster_id",
            "simulation/test_broker_starts.py::test_a_broker_stops_in_the_reverse_order_of_its_start",
            "        await self._open_listeners(cluster_id)\n",
            "        await self._open_listeners(cluster_id)\n"
            "        opened.push_async_callback(self.membership.leave)\n",
        ),
    ),
)

START = Section(
    _TABLE,
    "13. A broker starts",
    (
        opposite(
            "ZooKeeper and the fixed paths, the cluster's id",
            "log/manager/log_directory.py",
            "            if theirs is not None and theirs != ours:\n",
            "            if False:\n",
            "unit/test_log_manager.py::test_the_directory_of_another_is_refused",
        ),
        NoOpposite("An id generated from", "not built"),
        opposite(
            "Dynamic configuration before logs and requests",
            "server/membership.py",
            "        await self._config.on_session(store)\n        return await ensure",
            "        return await ensure",
            "simulation/test_dynamic_configs.py::test_a_broker_that_starts_has_the_dynamic_settings_before_it_serves",
        ),
        opposite(
            "Logs are recovered and sockets bound",
            "server/broker.py",
            "        await self._open_listeners(cluster_id)\n"
            "        self._watch_connections()\n"
            "        opened.push_async_callback(self.config_changes.close)\n"
            "        await self.membership.join(self._registration())\n",
            "        opened.push_async_callback(self.config_changes.close)\n"
            "        await self.membership.join(self._registration())\n"
            "        await self._open_listeners(cluster_id)\n"
            "        self._watch_connections()\n",
            "simulation/test_broker_starts.py::test_a_broker_whose_port_is_taken_never_registers",
            "            listener.name: serving.address\n"
            "            for listener, serving in zip(self.config.listeners, self._listeners, strict=True)\n",
            "            listener.name: listener.address for listener in self.config.listeners\n",
        ),
        opposite(
            "It leads and follows nothing before LeaderAndIsr",
            "replica/replica_manager.py",
            "if not response.error_code and not self._checkpointing:",
            "if not response.error_code and self._checkpointing:",
            "simulation/test_replication_faults.py::test_the_high_watermark_survives_a_clean_stop_and_a_kill_after_its_checkpoint",
        ),
        opposite(
            "It leads and follows nothing before LeaderAndIsr",
            "replica/replica_manager.py",
            "        self._checkpointing = False\n",
            "        self._checkpointing = True\n",
            "simulation/test_replication_faults.py::test_a_broker_without_orders_does_not_overwrite_its_checkpoint",
        ),
    ),
)

SECTIONS = (REASSIGNMENT, PREFERRED, SHUTDOWN, START)
