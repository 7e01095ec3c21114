"""Opposites of the rules of the controller: its requests, and AlterPartition."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-controller.md"
_BATCH = "channels/request_batch.py"
_ANSWERS = "brokers/answered_roles.py"
_ALTER = "partitions/alter_partition.py"

REQUESTS = Section(
    _TABLE,
    "5. Requests, and which ones a broker accepts",
    (
        opposite(
            "A batch is sent as LeaderAndIsr",
            _BATCH,
            "[*self._leader_requests(), *self._metadata_requests(), *self._stop_requests()]",
            "[*self._metadata_requests(), *self._leader_requests(), *self._stop_requests()]",
            "unit/test_controller_request_batch.py::test_leaders_and_followers_are_told_first_then_all_brokers_then_who_must_stop",
        ),
        opposite(
            "Only registered brokers receive requests",
            _BATCH,
            "LeaderAndIsrRequest(*self._sender, broker.epoch, partitions, endpoints)",
            "LeaderAndIsrRequest(*self._sender, -1, partitions, endpoints)",
            "unit/test_controller_request_batch.py::test_each_request_carries_the_receivers_epoch_and_the_leaders_address",
        ),
        opposite(
            "Only registered brokers receive requests",
            _BATCH,
            "        return [brokers[broker_id] for broker_id in sorted(broker_ids) if broker_id in brokers]\n",
            "        return [\n"
            "            brokers.get(broker_id, Broker(broker_id, ())) for broker_id in sorted(broker_ids)\n"
            "        ]\n",
            "unit/test_controller_request_batch.py::test_nothing_is_sent_to_brokers_that_are_not_registered",
        ),
        opposite(
            "`is_new` and `delete` stay set",
            _BATCH,
            "new = is_new or (before is not None and before.is_new)",
            "new = is_new",
            "unit/test_controller_request_batch.py::test_new_and_delete_once_said_stay_said",
        ),
        opposite(
            "`is_new` and `delete` stay set",
            _BATCH,
            "delete or (before is not None and before.delete_partition),",
            "delete,",
            "unit/test_controller_request_batch.py::test_new_and_delete_once_said_stay_said",
        ),
        opposite(
            "A topic being deleted has leader -2",
            _BATCH,
            "LEADER_DURING_DELETE if deleting else state.leader",
            "state.leader",
            "unit/test_controller_request_batch.py::test_a_topic_being_deleted_has_leader_minus_2_and_is_stopped_whatever_its_epoch",
        ),
        opposite(
            "A topic being deleted has leader -2",
            _BATCH,
            "leader_epoch = EPOCH_DURING_DELETE",
            "leader_epoch = NO_EPOCH if state is None else state.leader_epoch",
            "unit/test_controller_request_batch.py::test_a_topic_being_deleted_has_leader_minus_2_and_is_stopped_whatever_its_epoch",
        ),
        opposite(
            "... also in a partition whose state znode",
            _BATCH,
            "if partition in context.leadership or context.is_being_deleted(partition.topic)",
            "if partition in context.leadership",
            "simulation/test_missed_deletions.py::test_a_topic_with_a_malformed_state_is_forgotten_when_it_is_deleted",
        ),
        opposite(
            "A broker that registers and a new controller's brokers",
            _BATCH,
            "        self._names_all_topics = True\n",
            "",
            "simulation/test_missed_deletions.py::test_it_was_deleted_while_the_broker_had_no_session",
        ),
        opposite(
            "... and partitions of an earlier topic",
            "replica/metadata_cache.py",
            "if self._topic_ids.get(state.topic) != state.topic_id:",
            "if False:",
            "simulation/test_missed_deletions.py::test_another_topic_has_its_name_and_fewer_partitions",
        ),
        opposite(
            "UpdateMetadata that names a deleted topic by another id",
            "replica/metadata_cache.py",
            "            and same_topic(self._topic_ids.get(state.topic), state.topic_id)\n",
            "",
            "unit/test_metadata_cache.py::test_a_late_deletion_removes_nothing_of_the_topic_that_has_the_name_now",
        ),
        opposite(
            "LeaderAndIsr answered KAFKA_STORAGE_ERROR",
            _ANSWERS,
            "        if answer.error_code in FAILED and partition not in failed and not is_late:\n",
            "        if False:\n",
            "simulation/test_controller_brokers.py::test_a_failed_disk_moves_the_leadership_of_its_partitions_alone",
        ),
        opposite(
            "... INCONSISTENT_TOPIC_ID",
            _ANSWERS,
            '    ErrorCode.INCONSISTENT_TOPIC_ID: "broker {} has a log of another topic of that name",\n',
            "",
            "simulation/test_strays.py::test_a_topic_is_led_although_one_of_its_brokers_has_a_log_of_an_earlier_topic",
        ),
        opposite(
            "A failure under an earlier leader epoch is ignored",
            _ANSWERS,
            "in FAILED and partition not in failed and not is_late:",
            "in FAILED and partition not in failed:",
            "simulation/test_controller_disks.py::test_a_failure_under_an_earlier_leader_epoch_stops_no_replica",
        ),
        opposite(
            "LeaderAndIsr answered KAFKA_STORAGE_ERROR",
            _ANSWERS,
            "        elif partition in failed and _works(answer.error_code, question):\n",
            "        elif False:\n",
            "simulation/test_controller_disks.py::test_a_replica_that_can_be_opened_again_is_online_again",
        ),
        opposite(
            "LeaderAndIsr answered KAFKA_STORAGE_ERROR",
            _ANSWERS,
            "        if question is None or question.topic_id != topic_id:\n",
            "        if question is None:\n",
            "simulation/test_controller_events.py::test_an_answer_about_an_earlier_topic_or_by_an_earlier_incarnation_is_ignored",
        ),
        opposite(
            "A request for an earlier broker epoch",
            "replica/controller_fence.py",
            "return broker_epoch != ANY_EPOCH and broker_epoch < own",
            "return False",
            "simulation/test_replication_roles.py::test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored",
        ),
        opposite(
            "A request for an earlier broker epoch",
            "replica/controller_fence.py",
            "return broker_epoch != ANY_EPOCH and broker_epoch < own",
            "return broker_epoch != ANY_EPOCH and broker_epoch != own",
            "simulation/test_replication_roles.py::test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored",
        ),
        opposite(
            "A request that comes after a later one",
            "replica/controller_fence.py",
            "return 0 < number < newest",
            "return False",
            "unit/test_controller_fence.py::test_a_request_that_comes_after_a_later_one_is_refused",
        ),
        opposite(
            "A request of an earlier controller",
            "replica/controller_fence.py",
            "return controller_epoch < newest",
            "return False",
            "simulation/test_replication_roles.py::test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored",
        ),
        opposite(
            "A request of an earlier controller",
            "replica/replica_manager.py",
            "        refusal = self._fence.check(request)\n",
            "        refusal = 0\n",
            "simulation/test_replication_roles.py::test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored",
        ),
        opposite(
            "A request of an earlier controller",
            "replica/roles.py",
            "            refusal = self._context.fence.check(request)\n            if refusal:\n                return StopReplicaResponse(",
            "            refusal = 0\n            if refusal:\n                return StopReplicaResponse(",
            "simulation/test_replication_roles.py::test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored",
        ),
        opposite(
            "LeaderAndIsr: another topic id, an epoch",
            "replica/roles.py",
            "if self._context.environment.broker_id not in partition_state.replicas:",
            "if False:",
            "simulation/test_replication_roles.py::test_each_partition_of_an_order_is_checked_by_itself",
        ),
        opposite(
            "StopReplica: epochs -1 and -2 always",
            "replica/roles.py",
            "                and item.leader_epoch < partition.leader_epoch\n",
            "                and False\n",
            "simulation/test_replication_roles.py::test_an_order_to_stop_from_an_older_leader_epoch_is_fenced",
        ),
        opposite(
            "StopReplica: epochs -1 and -2 always",
            "replica/roles.py",
            "        return await self._delete_log(key)\n",
            "        return ErrorCode.NONE\n",
            "simulation/test_replication_roles.py::test_a_stopped_replica_follows_no_more_and_a_deleted_one_leaves_nothing",
        ),
        opposite(
            "StopReplica of another topic id",
            "replica/roles.py",
            "        if self._is_of_another_topic(key, item):\n",
            "        if False:\n",
            "simulation/test_late_stop_replica.py::test_a_late_stop_replica_leaves_the_topic_that_has_the_name_now",
        ),
    ),
)

ALTER_PARTITION = Section(
    _TABLE,
    "6. AlterPartition",
    (
        opposite(
            "Not active: NOT_CONTROLLER; another broker epoch",
            "partitions/isr_changes.py",
            "if broker is None or broker.epoch != request.broker_epoch:",
            "if broker is None:",
            "simulation/test_controller_writes.py::test_an_isr_change_is_refused_to_strangers_and_on_top_of_unknown_states",
        ),
        opposite(
            "No leadership known",
            _ALTER,
            'Reject(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no leader is known for it")',
            'Reject(ErrorCode.INVALID_REQUEST, "no leader is known for it")',
            "unit/test_controller_alter_partition.py::test_a_partition_without_leadership_is_unknown",
        ),
        opposite(
            "Another topic id than that of the topic",
            _ALTER,
            "    if topic_id and item.topic_id and item.topic_id != topic_id:\n",
            "    if False:\n",
            "unit/test_topic_identity.py::test_an_alter_partition_of_another_topic_id_is_refused",
        ),
        opposite(
            "Older leader epoch: FENCED_LEADER_EPOCH",
            _ALTER,
            "    if stale is not None and stale.code is not ErrorCode.INVALID_UPDATE_VERSION:\n",
            "    if stale is not None:\n",
            "unit/test_controller_alter_partition.py::test_a_retry_of_a_change_that_was_made_succeeds_with_the_present_state",
        ),
        opposite(
            "Older leader epoch: FENCED_LEADER_EPOCH",
            _ALTER,
            "    if item.leader_epoch < current.leader_epoch:\n",
            "    if False:\n",
            "unit/test_controller_alter_partition.py::test_the_checks_come_in_kafkas_order",
        ),
        opposite(
            "RECOVERING with others",
            _ALTER,
            "    if item.leader_recovery_state == RECOVERING and len(item.new_isr) > 1:\n",
            "    if False:\n",
            "unit/test_controller_alter_partition.py::test_the_checks_come_in_kafkas_order",
        ),
        opposite(
            "RECOVERING with others",
            _ALTER,
            "    if item.leader_recovery_state == RECOVERING and current.recovery_state == RECOVERED:\n",
            "    if False:\n",
            "unit/test_controller_alter_partition.py::test_the_checks_come_in_kafkas_order",
        ),
        opposite(
            "A member that is not alive",
            _ALTER,
            "    if absent:\n",
            "    if False:\n",
            "unit/test_controller_alter_partition.py::test_the_checks_come_in_kafkas_order",
        ),
        opposite(
            "A member proposed by fetches of an earlier",
            _ALTER,
            "    if restarted:\n",
            "    if False:\n",
            "unit/test_controller_alter_partition.py::test_the_leader_must_go_by_fetches_of_the_present_life",
        ),
        opposite(
            "Written at the known partition epoch",
            "partitions/isr_changes.py",
            "        await self._announce_foreign_changes(behind)\n",
            "",
            "simulation/test_controller_writes.py::test_an_isr_change_is_refused_to_strangers_and_on_top_of_unknown_states",
        ),
        opposite(
            "The leader epoch stays; all brokers",
            "partitions/isr_changes.py",
            "        self._term.update_metadata(self._context.registered_brokers(), partitions)\n",
            "",
            "simulation/test_controller_writes.py::test_an_isr_change_is_made_once_whatever_is_lost",
        ),
        opposite(
            "The leader epoch stays; all brokers",
            _ALTER,
            "    return Write(wanted)\n",
            "    return Write(replace(wanted, leader_epoch=wanted.leader_epoch + 1))\n",
            "simulation/test_controller_writes.py::test_an_isr_change_is_made_once_whatever_is_lost",
        ),
        opposite(
            "Then reassignments whose target is in sync",
            "partitions/isr_changes.py",
            "        self._on_accepted([p for p in partitions if not answers[p].error_code])\n",
            "",
            "simulation/test_controller_reassignment.py::test_a_partition_moves_to_three_other_brokers",
        ),
    ),
)

SECTIONS = (REQUESTS, ALTER_PARTITION)
