"""Opposites of the rules of the controller: what is in ZooKeeper, and how it is written."""

from tests.support.opposites import NoOpposite, Section, opposite

_TABLE = "rules-controller.md"
_REGISTRATION = "brokers/registration.py"
_FENCED = "store/fenced_store.py"
_CONFIGS = "store/config_store.py"

REGISTRATION = Section(
    _TABLE,
    "ZooKeeper: registration",
    (
        opposite(
            "One multi, create and set; the czxid",
            _REGISTRATION,
            "            return written.czxid\n        if not isinstance(created, NodeExists):",
            "            return written.mzxid + 1\n        if not isinstance(created, NodeExists):",
            "simulation/test_controller_writes.py::test_a_registration_is_made_once_whatever_is_lost",
        ),
        opposite(
            "NODEEXISTS, of this session",
            _REGISTRATION,
            "        if owner == store.session.session_id:\n",
            "        if False:\n",
            "simulation/test_controller_writes.py::test_a_registration_is_made_once_whatever_is_lost",
        ),
        opposite(
            "NODEEXISTS, of this broker's last session",
            _REGISTRATION,
            "        if owner != previous_session_id or owner == 0:\n",
            "        if True:\n",
            "simulation/test_controller_writes.py::test_the_znode_of_ones_own_earlier_session_is_replaced",
        ),
        opposite(
            "NODEEXISTS, of another session",
            _REGISTRATION,
            "        if owner != previous_session_id or owner == 0:\n",
            "        if False:\n",
            "simulation/test_controller_writes.py::test_an_id_of_another_living_session_is_refused_or_waited_for",
        ),
        opposite(
            "Deleted in the meantime: tried again",
            _REGISTRATION,
            "            continue  # deleted in the meantime\n",
            "            return None\n",
            "simulation/test_controller_rules.py::test_a_registration_that_vanishes_while_it_is_looked_at_is_replaced",
        ),
        opposite(
            "An address that another broker advertises",
            _REGISTRATION,
            "            if endpoint.address in taken:\n",
            "            if False:\n",
            "simulation/test_controller_writes.py::test_an_address_another_broker_advertises_is_refused",
        ),
        opposite(
            "Other data in the same registration",
            "brokers/broker_changes.py",
            "now.epoch == before.epoch and now != before",
            "False",
            "simulation/test_bad_znodes.py::test_a_broker_that_moves_is_told_of_to_all",
        ),
        opposite(
            "The previous process's session is closed",
            "server/membership.py",
            "            await self._close_predecessor(predecessor)\n",
            "            pass\n",
            "simulation/test_broker_starts.py::test_a_killed_broker_serves_again_long_before_its_session_ends",
        ),
    ),
)

ZNODES = Section(
    _TABLE,
    "ZooKeeper: what is written where",
    (
        opposite(
            "Every broker creates the fixed paths",
            "store/store.py",
            "            await self.ensure(path, None)\n",
            '            await self.ensure(path, b"") if path.startswith("/latest") else None\n',
            "simulation/test_broker_starts.py::test_the_fixed_znodes_are_there_when_the_first_broker_serves",
        ),
        opposite(
            "The JSON of brokers, topics, states",
            "store/znodes.py",
            '        "version": 5,\n',
            '        "version": 4,\n',
            "unit/test_znodes.py::test_a_broker_is_written_as_kafka_writes_it",
        ),
        opposite(
            "The JSON of brokers, topics, states",
            "store/znodes.py",
            '        "leader_epoch": state.leader_epoch,\n',
            '        "epoch": state.leader_epoch,\n',
            "unit/test_znodes.py::test_a_state_is_written_as_kafka_writes_it",
        ),
        opposite(
            "Settings have the zxid since which their minimum ISR is the same",
            _CONFIGS,
            "        data = encode_config(edited, minimum_since if is_same_minimum else None)\n",
            "        data = encode_config(edited)\n",
            "simulation/test_former_eligible_replicas.py::test_other_settings_do_not_end_eligibility",
        ),
        opposite(
            "Settings have the zxid since which their minimum ISR is the same",
            _CONFIGS,
            "        data = encode_config(edited, minimum_since if is_same_minimum else None)\n",
            "        data = encode_config(edited, minimum_since)\n",
            "simulation/test_former_eligible_replicas.py::test_a_changed_minimum_ends_it_for_good",
        ),
        opposite(
            "States have fields that are not Kafka's",
            "store/znodes.py",
            "    if state.eligible:\n",
            "    if False:\n",
            "unit/test_znodes.py::test_the_account_of_who_has_everything_survives_the_znode",
        ),
        opposite(
            "A topic without an id gets one",
            "topics/topic_changes.py",
            "        if node.topic_id is not None:\n            return node\n",
            "        return node\n",
            "simulation/test_controller_topics.py::test_a_topic_written_by_hand_comes_alive_and_gets_an_id",
        ),
        opposite(
            "Writing a topic. Different",
            _FENCED,
            "SetData(path, znodes.encode_topic(node), stat.version)",
            "SetData(path, znodes.encode_topic(node))",
            "simulation/test_topic_growth.py::test_partitions_added_between_reading_and_writing_are_not_overwritten",
        ),
        opposite(
            "The partition epoch is the version",
            _FENCED,
            "        if isinstance(result, BadVersion) and await self._holds(partition, written):\n",
            "        if False:\n",
            "simulation/test_controller_writes.py::test_a_state_update_is_made_once_whatever_is_lost",
        ),
        opposite(
            "The partition epoch is the version",
            _FENCED,
            "SetData(znodes.state_path(partition), data, state.partition_epoch)",
            "SetData(znodes.state_path(partition), data)",
            "simulation/test_controller_writes.py::test_a_change_by_another_is_not_taken_for_ones_own",
        ),
        opposite(
            "A state znode that was deleted",
            "partitions/state_writing.py",
            "    return results | await term.fenced.create_states({p: states[p] for p in again})\n",
            "    return results\n",
            "simulation/test_states_deleted.py::test_the_next_leader_serves",
        ),
        opposite(
            "`/admin/reassign_partitions` loses completed",
            "reassignment/reassignment_znode.py",
            "        await store.delete_tree(REASSIGN_PARTITIONS)\n",
            "        pass\n",
            "simulation/test_reassignment_znode.py::test_the_old_znode_asks_too_and_goes_when_all_of_it_is_done",
        ),
        opposite(
            "`/admin/reassign_partitions` loses completed",
            "reassignment/reassignment_requests.py",
            "            await self._term.fenced.delete_tree(REASSIGN_PARTITIONS)\n",
            "",
            "simulation/test_reassignment_znode.py::test_nonsense_in_the_old_znode_is_thrown_away_loudly",
        ),
        opposite(
            "`/admin/preferred_replica_election` is deleted",
            "partitions/leader_elections.py",
            "        await self._term.fenced.delete_tree(PREFERRED_REPLICA_ELECTION)\n",
            "",
            "simulation/test_controller_elections.py::test_the_legacy_znode_is_acted_on_and_taken_away",
        ),
        opposite(
            "`/isr_change_notification`: written by leaders",
            "partitions/isr_notifications.py",
            "        if known:\n",
            "        if False:\n",
            "simulation/test_leader_without_controller.py::test_writes_go_on_when_the_controller_follows_and_is_cut_off",
        ),
        opposite(
            "`/isr_change_notification`: written by leaders",
            "notifications.py",
            "            await self._term.fenced.delete_tree(path)\n",
            "            pass\n",
            "simulation/test_controller_elections.py::test_nonsense_among_the_isr_notes_is_reported_and_taken_away",
        ),
        opposite(
            "`/log_dir_event_notification`: LeaderAndIsr is sent",
            "brokers/log_dir_event_notifications.py",
            "            await replicas.change(hosted, ReplicaState.ONLINE, cause)\n",
            "            pass\n",
            "simulation/test_controller_disks.py::test_a_note_of_a_lost_disk_moves_the_leadership_of_what_was_on_it",
        ),
        opposite(
            "The first broker generates the cluster's id",
            _REGISTRATION,
            "            return znodes.decode_cluster_id(found[0])\n",
            "            return new_uuid(randomness)\n",
            "simulation/test_controller_writes.py::test_the_cluster_id_is_drawn_once",
        ),
        opposite(
            "Malformed znodes are reported and left out",
            "partitions/state_reading.py",
            "    if why is not None:\n",
            "    if False:\n",
            "simulation/test_bad_partition_states.py::test_by_a_state_that_cannot_be_true_no_one_is_elected",
        ),
        opposite(
            "A block of 1000 producer ids",
            "store/producer_ids.py",
            "encode_block(block), stat.version)",
            "encode_block(block), -1)",
            "contract/test_producer_ids.py::test_many_brokers_take_different_ids",
        ),
        NoOpposite("`/feature`", "not built"),
    ),
)

SETTINGS = Section(
    _TABLE,
    "ZooKeeper: settings and their notifications",
    (
        opposite(
            "`/config/<type>/<name>`, all values are strings",
            "store/znodes.py",
            "    if not data:\n        return {}\n    content = JsonReader(path, data)\n    return {",
            "    content = JsonReader(path, data)\n    return {",
            "unit/test_znodes.py::test_a_configuration_round_trips_and_no_data_means_none",
        ),
        opposite(
            "Types: topics, brokers",
            _CONFIGS,
            '    return f"brokers/{broker_id}"\n',
            "    return BROKER_DEFAULT\n",
            "simulation/test_dynamic_configs.py::test_the_order_is_topic_then_broker_then_cluster_default_then_file_then_default",
        ),
        NoOpposite("Clients, users, addresses", "not built"),
        opposite(
            "The last writer wins. Different",
            _CONFIGS,
            "SetData(path, data, stat.version)",
            "SetData(path, data)",
            "simulation/test_alter_configs.py::test_two_changes_at_once_both_stay",
        ),
        opposite(
            "With it a sequential notification",
            _CONFIGS,
            "operations: list[Operation] = [write, notification(entity)]",
            "operations: list[Operation] = [write]",
            "simulation/test_alter_configs.py::test_min_insync_replicas_applies_to_the_next_batch",
        ),
        opposite(
            "Read at each child event, at start",
            "server/config_changes.py",
            "        await in_chunks(lambda topic: self._read_topic_again(following, topic), topics)\n",
            "",
            "simulation/test_dynamic_configs.py::test_a_change_missed_for_want_of_a_session_is_read_with_the_next_one",
        ),
        opposite(
            "Read at each child event, at start",
            "server/config_changes.py",
            "        await following.news()  # arms the watch; everything is read below\n"
            "        for entity in self._brokers:\n"
            "            await self._read_broker(following, entity)\n",
            "        for entity in self._brokers:\n"
            "            await self._read_broker(following, entity)\n"
            "        await following.news()\n",
            "simulation/test_watches.py::test_a_broker_arms_its_watch_on_settings_before_it_reads_any",
        ),
        opposite(
            "Read at each child event, at start",
            _CONFIGS,
            "                self._last = number_of(name)\n",
            "                pass\n",
            "simulation/test_dynamic_configs.py::test_each_notification_is_read_once_and_in_order",
        ),
        opposite(
            "Notifications older than 15 minutes",
            _CONFIGS,
            "                await self._store.remove(path)\n",
            "                return\n",
            "simulation/test_dynamic_configs.py::test_notifications_are_taken_away_after_fifteen_minutes",
        ),
    ),
)

FENCING = Section(
    _TABLE,
    "ZooKeeper: fencing, sessions, watches",
    (
        opposite(
            "Each write of a controller is a multi",
            _FENCED,
            "        if isinstance(fence, BadVersion | NoNode):\n",
            "        if False:\n",
            "simulation/test_controller_failover.py::test_the_writes_of_an_old_controller_are_refused",
        ),
        opposite(
            "Each write of a controller is a multi",
            _FENCED,
            "    return Check(znodes.CONTROLLER_EPOCH, epoch.znode_version)\n",
            "    return Check(znodes.CONTROLLER_EPOCH, -1)\n",
            "simulation/test_controller_failover.py::test_the_writes_of_an_old_controller_are_refused",
        ),
        opposite(
            "The result of the check counts first",
            _FENCED,
            "        if isinstance(fence, BadVersion | NoNode):\n",
            "        if isinstance(result, BadVersion | NoNode):\n",
            "simulation/test_controller_writes.py::test_a_change_by_another_is_not_taken_for_ones_own",
        ),
        opposite(
            "Trees are deleted znode by znode",
            _FENCED,
            "            except NoNode:\n                return\n            await in_chunks",
            "            except KeyError:\n                return\n            await in_chunks",
            "simulation/test_controller_writes.py::test_what_is_gone_already_counts_as_deleted",
        ),
        opposite(
            "Trees are deleted znode by znode",
            _FENCED,
            "            result = await self._apply(Delete(path), *others)\n",
            "            result = None\n            await self.store.remove(path)\n",
            "simulation/test_controller_failover.py::test_the_writes_of_an_old_controller_are_refused",
        ),
        opposite(
            "After a connection loss the request is sent again",
            "zookeeper/requests.py",
            "            attempts += 1\n",
            "            attempts += 1\n            if attempts > 0:\n                raise\n",
            "simulation/test_controller_writes.py::test_a_state_update_is_made_once_whatever_is_lost",
        ),
        opposite(
            "After a connection loss the request is sent again",
            _FENCED,
            "        if isinstance(result, NodeExists) and await self._holds(partition, state):\n",
            "        if False:\n",
            "simulation/test_controller_writes.py::test_a_state_is_created_once_whatever_is_lost",
        ),
        opposite(
            "Watches fire once; the next read arms each again",
            "notifications.py",
            "        names = await store.children(self._directory, self._watch)\n",
            "        names = await store.children(self._directory)\n",
            "simulation/test_watches.py::test_each_is_armed_again_by_the_first_reading_after_it_fired",
        ),
        opposite(
            "A watch fires before newer data",
            "zookeeper/kazoo_session.py",
            "            self._restore_watches()\n",
            "",
            "contract/test_zookeeper_expiry.py::test_a_change_missed_while_disconnected_fires_first",
        ),
        opposite(
            "Expiry: the controller stops first",
            "server/membership.py",
            "                await self._config.on_session(await self._open_session_patiently())\n",
            "                await self._open_session_patiently()\n",
            "simulation/test_dynamic_configs.py::test_a_change_missed_for_want_of_a_session_is_read_with_the_next_one",
        ),
        opposite(
            "Expiry: the controller stops first",
            "server/membership.py",
            "                await self._register(previous)\n",
            "                pass\n",
            "simulation/test_cluster_faults.py::test_a_paused_broker_goes_on_with_its_session_or_takes_a_new_one",
        ),
    ),
)

SECTIONS = (REGISTRATION, ZNODES, SETTINGS, FENCING)
