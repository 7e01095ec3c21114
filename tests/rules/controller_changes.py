"""Opposites of the rules of the controller: brokers and topics come and go."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-controller.md"
_BROKERS = "brokers/broker_changes.py"
_BATCH = "channels/request_batch.py"
_DELETION = "topics/topic_deletion_manager.py"

BROKERS = Section(
    _TABLE,
    "7. Brokers register and fail",
    (
        opposite(
            "New, bounced (a higher czxid)",
            _BROKERS,
            "bounced = [now for before, now in both if now.epoch > before.epoch]",
            "bounced = [now for before, now in both if False]",
            "simulation/test_controller_brokers.py::test_a_broker_that_restarts_faster_than_anyone_looks_is_treated_as_dead_and_new",
        ),
        opposite(
            "Start-up: the others receive the brokers",
            _BROKERS,
            "        self._term.send_all_metadata(broker_ids)\n",
            "",
            "simulation/test_controller_brokers.py::test_a_new_broker_receives_all_leaders_and_the_others_its_address",
        ),
        opposite(
            "Start-up: the others receive the brokers",
            _BROKERS,
            "        await self._partitions.elect_where_missing(cause)\n        await self._reassignments",
            "        await self._reassignments",
            "simulation/test_controller_brokers.py::test_the_last_in_sync_replica_is_waited_for_and_leads_again",
        ),
        opposite(
            "Start-up: the others receive the brokers",
            _BROKERS,
            "        self._term.update_metadata(others)\n",
            "",
            "simulation/test_controller_brokers.py::test_a_new_broker_receives_all_leaders_and_the_others_its_address",
        ),
        opposite(
            "Start-up: the others receive the brokers",
            _BROKERS,
            "        await self._replicas.change(staying, ReplicaState.ONLINE, cause)\n        await self._partitions",
            "        await self._partitions",
            "simulation/test_controller_brokers.py::test_a_broker_that_restarts_faster_than_anyone_looks_is_treated_as_dead_and_new",
        ),
        opposite(
            "... reassignments and deletions that wait",
            _BROKERS,
            "        await self._reassignments.resume_on(broker_ids, cause)\n",
            "",
            "simulation/test_controller_reassignment.py::test_a_target_that_is_in_sync_and_dead_is_waited_for",
        ),
        opposite(
            "... reassignments and deletions that wait",
            _BROKERS,
            "        await self._deletion.resume_topics(dict.fromkeys(r.partition.topic for r in here))\n",
            "",
            "simulation/test_controller_topics.py::test_a_deletion_waits_for_the_broker_that_is_down",
        ),
        opposite(
            "Failure: first elections of partitions",
            _BROKERS,
            "        await self._partitions.elect_where_missing(cause)\n        staying =",
            "        here = [r for r in replicas if not context.is_being_deleted(r.partition.topic)]\n"
            "        await self._replicas.change(here, ReplicaState.OFFLINE, cause)\n"
            "        await self._partitions.elect_where_missing(cause)\n        staying =",
            "simulation/test_controller_brokers.py::test_a_leaders_death_elects_the_next_in_sync_replica",
        ),
        opposite(
            "... topics being deleted wait",
            _BROKERS,
            "            await self._deletion.fail(gone, cause)\n",
            "            pass\n",
            "simulation/test_controller_topics.py::test_a_broker_that_dies_while_it_deletes_is_waited_for",
        ),
        opposite(
            "... without any replica all brokers receive",
            _BROKERS,
            "        if not staying:  # no UpdateMetadata",
            "        if False:  # no UpdateMetadata",
            "simulation/test_controller_rules.py::test_a_broker_without_replicas_is_told_of_when_it_dies",
        ),
        opposite(
            "Other endpoints: the context and the channel",
            _BROKERS,
            "            await self._term.channels.move(broker)\n",
            "",
            "simulation/test_controller_rules.py::test_a_broker_that_moved_is_told_its_roles_where_it_is_now",
        ),
        opposite(
            "Other endpoints: the context and the channel",
            _BROKERS,
            "        if brokers:\n            self._term.update_metadata(self._context.registered_brokers())\n",
            "",
            "simulation/test_bad_znodes.py::test_a_broker_that_moves_is_told_of_to_all",
        ),
        opposite(
            "... and what the broker has not answered",
            "channels/controller_channel_manager.py",
            "        for request in sender.unanswered() if sender is not None else ():\n",
            "        for request in ():\n",
            "simulation/test_controller_rules.py::test_what_could_not_be_sent_to_a_wrong_address_is_sent_when_it_is_corrected",
        ),
        opposite(
            "A suspicion does the same before the end",
            _BROKERS,
            "        context.suspects[broker_id] = broker.epoch\n",
            "        return\n",
            "simulation/test_suspects.py::test_a_dead_leader_is_replaced_long_before_its_session_ends",
        ),
        opposite(
            "A suspicion does the same before the end",
            "detection/suspicion_rule.py",
            "        else:\n            self._stop_counting()\n",
            "        else:\n            self._count(now)\n",
            "simulation/test_suspects.py::test_a_silent_broker_is_not_suspected",
        ),
        opposite(
            "A suspicion does the same before the end",
            "detection/suspicion_rule.py",
            "        if not self.had_stream:\n            return\n",
            "",
            "unit/test_evidence.py::test_without_a_stream_before_nothing_is_evidence",
        ),
    ),
)

TOPICS = Section(
    _TABLE,
    "8. Topics are created and grow",
    (
        opposite(
            "Invalid names, counts and explicit assignments",
            "topics/admin_zk_client.py",
            "        validate_topic_name(topic)\n        existing",
            "        existing",
            "simulation/test_controller_admin.py::test_an_impossible_topic_is_refused_and_nothing_is_written",
        ),
        opposite(
            "The configuration and the assignment are written in one transaction",
            "topics/admin_zk_client.py",
            "            SetData(config_path, znodes.encode_config(configs)),\n",
            "",
            "simulation/test_controller_admin.py::test_a_created_topic_comes_alive_with_its_configuration",
        ),
        opposite(
            "The configuration and the assignment are written in one transaction",
            "topics/admin_zk_client.py",
            "            SetData(config_path, znodes.encode_config(configs)),\n",
            "",
            "simulation/test_controller_admin.py::test_the_configuration_of_a_topic_is_there_with_its_assignment",
            '        logger.info("topic %s written to ZooKeeper", topic)\n',
            "        await self._store.put(config_path, znodes.encode_config(configs))\n",
        ),
        opposite(
            "The configuration and the assignment are written in one transaction",
            "topics/admin_zk_client.py",
            "            await self._store.ensure(config_path)\n",
            "            await self._store.put(config_path, znodes.encode_config(configs))\n",
            "simulation/test_controller_admin.py::test_of_two_clients_that_create_a_topic_the_settings_of_one_count",
        ),
        opposite(
            "A new child of `/brokers/topics`",
            "topics/topic_changes.py",
            "        await self._replicas.change(replicas, ReplicaState.ONLINE, NEW_PARTITION)\n",
            "",
            "simulation/test_controller_disks.py::test_a_note_of_a_lost_disk_moves_the_leadership_of_what_was_on_it",
        ),
        opposite(
            "A new child of `/brokers/topics`",
            "topics/topic_changes.py",
            "        await self._partitions.elect(partitions, NEW_PARTITION)\n",
            "",
            "simulation/test_controller_topics.py::test_a_topic_written_by_hand_comes_alive_and_gets_an_id",
        ),
        opposite(
            "The client is answered when every partition",
            "api/create_topics.py",
            "        return len(states) == result.partitions and all(s.leader >= 0 for s in states)\n",
            "        return True\n",
            "simulation/test_controller_rules.py::test_the_one_that_creates_a_topic_is_answered_when_it_has_leaders_or_in_time",
        ),
        opposite(
            "Growth: partitions that the context does not have",
            "topics/topic_changes.py",
            "for p in node.partitions if p not in known]",
            "for p in node.partitions]",
            "simulation/test_controller_topics.py::test_partitions_added_to_the_znode_come_alive_and_the_others_stay",
        ),
        opposite(
            "A topic whose znode is removed by hand",
            "topics/topic_changes.py",
            "            self._term.send_all_metadata(self._context.registered_brokers())\n",
            "            pass\n",
            "simulation/test_missed_deletions.py::test_its_znodes_were_removed_by_hand",
        ),
        opposite(
            "A topic being deleted does not grow",
            "topics/topic_changes.py",
            "        if self._context.is_to_be_deleted(topic):\n",
            "        if False:\n",
            "simulation/test_controller_rules.py::test_a_topic_being_deleted_does_not_grow",
        ),
        opposite(
            "Replicas are assigned by Kafka's rule",
            "topics/assignment.py",
            "    start, shift = randomness.randrange(len(brokers)), randomness.randrange(len(brokers))\n",
            "    start, shift = 0, randomness.randrange(len(brokers))\n",
            "unit/test_assignment.py::test_start_and_shift_are_drawn_for_each_topic",
        ),
        opposite(
            "Replicas are assigned by Kafka's rule",
            "topics/assignment.py",
            "    start, shift = randomness.randrange(len(brokers)), randomness.randrange(len(brokers))\n",
            "    start, shift = randomness.randrange(len(brokers)), 0\n",
            "unit/test_assignment.py::test_start_and_shift_are_drawn_for_each_topic",
        ),
        opposite(
            "Replicas are assigned by Kafka's rule",
            "topics/assignment.py",
            "            shift += shift_step\n",
            "            pass\n",
            "unit/test_assignment.py::test_kafkas_own_example_with_start_and_shift_0",
        ),
        opposite(
            "Replicas are assigned by Kafka's rule",
            "topics/assignment.py",
            "        rack_is_free = racks[broker] not in racks_used or len(racks_used) == rack_count\n",
            "        rack_is_free = True\n",
            "unit/test_assignment.py::test_no_rack_gets_a_second_replica_before_every_rack_has_one",
        ),
    ),
)

DELETION = Section(
    _TABLE,
    "9. Topics are deleted",
    (
        opposite(
            "A deletion request is `/admin/delete_topics/T`",
            _DELETION,
            "            await self._term.fenced.delete_topic_deletions(unknown)\n",
            "            pass\n",
            "simulation/test_controller_topics.py::test_the_wish_to_delete_an_unknown_topic_is_removed",
        ),
        opposite(
            "A deletion request is `/admin/delete_topics/T`",
            _DELETION,
            "            await self._refuse(requested)\n            return\n",
            "            pass\n",
            "simulation/test_controller_topics.py::test_with_deletion_disabled_the_wish_is_removed_and_the_topic_stays",
        ),
        opposite(
            "A topic under reassignment waits",
            _DELETION,
            "                if self._context.is_being_reassigned(topic):\n",
            "                if False:\n",
            "simulation/test_controller_reassignment.py::test_a_topic_being_deleted_waits_for_its_reassignment_and_takes_no_other",
        ),
        opposite(
            "Leader -2 to all, StopReplica with deletion",
            _BATCH,
            "        deleting = self._context.is_being_deleted(partition.topic)\n",
            "        deleting = False\n",
            "simulation/test_controller_topics.py::test_a_deleted_topic_leaves_nothing_behind",
        ),
        opposite(
            "Leader -2 to all, StopReplica with deletion",
            _DELETION,
            "        await self._replicas.change(offline, ReplicaState.DELETION_INELIGIBLE, CAUSE)\n",
            "        await self._replicas.change(offline, ReplicaState.DELETION_STARTED, CAUSE)\n"
            "        await self._replicas.change(offline, ReplicaState.DELETION_SUCCESSFUL, CAUSE)\n",
            "simulation/test_controller_topics.py::test_a_deletion_waits_for_the_broker_that_is_down",
        ),
        opposite(
            "Leader -2 to all, StopReplica with deletion",
            _DELETION,
            "        alive = [r for r in remaining if self._context.is_alive(r.broker_id)]\n",
            "        alive = [\n"
            "            r for r in remaining if self._context.is_online(r.broker_id, r.partition)\n"
            "        ]\n",
            "simulation/test_lost_folders.py::test_a_topic_is_deleted_although_the_only_member_of_the_isr_lost_its_folder",
        ),
        opposite(
            "An error makes the topic wait too",
            _DELETION,
            "            is_gone = error in (ErrorCode.NONE, ErrorCode.INCONSISTENT_TOPIC_ID)\n",
            "            is_gone = True\n",
            "simulation/test_controller_rules.py::test_a_deletion_waits_for_a_broker_that_cannot_and_goes_on_when_it_can",
        ),
        opposite(
            "After all replicas have reported their deletion",
            _DELETION,
            "            if states <= {ReplicaState.DELETION_SUCCESSFUL}:\n",
            "            if ReplicaState.DELETION_SUCCESSFUL in states:\n",
            "simulation/test_controller_topics.py::test_a_deletion_waits_for_the_broker_that_is_down",
        ),
        opposite(
            "After all replicas have reported their deletion",
            "store/fenced_store.py",
            "        await self.delete_tree(znodes.topic_config_path(topic))\n",
            "",
            "simulation/test_controller_topics.py::test_a_deleted_topic_leaves_nothing_behind",
        ),
        opposite(
            "After all replicas have reported their deletion",
            "store/fenced_store.py",
            "        await self.delete_tree(znodes.topic_path(topic), Delete(znodes.delete_topic_path(topic)))\n",
            "        await self.delete_topic_deletions([topic])\n        await self.delete_tree(znodes.topic_path(topic))\n",
            "simulation/test_controller_topics.py::test_the_wish_to_delete_goes_last",
        ),
        opposite(
            "After all replicas have reported their deletion",
            "store/fenced_store.py",
            "        await self.delete_tree(znodes.topic_path(topic), Delete(znodes.delete_topic_path(topic)))\n",
            "        await self.delete_tree(znodes.topic_path(topic))\n",
            "simulation/test_topic_deletion_races.py::test_a_controller_that_dies_as_soon_as_the_name_is_free_leaves_no_request_behind",
        ),
        opposite(
            "On disk: renamed to `*-delete` immediately",
            "log/manager/log_manager.py",
            "self._background.remove_folder_later(renamed, log.config.file_delete_delay_ms)",
            "self._background.remove_folder_later(renamed, 0)",
            "unit/test_log_manager.py::test_the_files_of_a_deleted_log_stay_for_their_delay",
        ),
    ),
)

SECTIONS = (BROKERS, TOPICS, DELETION)
