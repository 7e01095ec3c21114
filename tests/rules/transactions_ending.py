"""Opposites of the rules of transactions: decisions, markers, and transactions that hang."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-transactions.md"

THE_DECISION = Section(
    _TABLE,
    "3. The decision",
    (
        opposite(
            "Only the current producer ends its transaction",
            "coordinator/transaction/ending.py",
            "    if metadata.producer_epoch != producer.epoch:\n        return ErrorCode.PRODUCER_FENCED\n",
            "",
            "unit/test_transaction_decisions.py::test_who_may_end_a_transaction",
        ),
        opposite(
            "A client of Kafka 3.9 is answered by the state: the outcome that was decided is a retry",
            "coordinator/transaction/ending.py",
            "    if metadata.state is _COMPLETE[commit]:\n        return ErrorCode.NONE\n    return _still",
            "    return _still",
            "unit/test_transaction_decisions.py::test_a_client_of_kafka_3_9_is_answered_by_the_state",
        ),
        opposite(
            "... and keeps its epoch",
            "coordinator/transaction/metadata.py",
            "    if bump_supported(client_version):\n        # The highest",
            "    if True:\n        # The highest",
            "unit/test_transaction_states.py::test_a_client_of_kafka_3_9_keeps_its_epoch",
        ),
        opposite(
            "Under version 2 each decision raises the epoch, so that a late EndTxn cannot touch the next transaction (KIP-890)",
            "coordinator/transaction/metadata.py",
            "epochs = (min(metadata.producer_epoch + 1, MAX_EPOCH), metadata.producer_epoch)",
            "epochs = (metadata.producer_epoch, metadata.producer_epoch)",
            "unit/test_transaction_states.py::test_a_decision_raises_the_epoch",
        ),
        opposite(
            "The answer to EndTxn has the id and the epoch to use next",
            "coordinator/transaction/coordinator.py",
            "        return EndTxnResponse(0, completion.producer_id, completion.producer_epoch)",
            "        return EndTxnResponse()",
            "simulation/test_transactions.py::test_under_version_2_every_transaction_has_an_epoch",
        ),
        opposite(
            "A commit where nothing is open is INVALID_TXN_STATE",
            "coordinator/transaction/ending.py",
            "    if commit and metadata.state is not TransactionState.ONGOING:\n",
            "    if False:\n",
            "unit/test_transaction_decisions.py::test_under_version_2_the_epoch_tells_a_retry_from_the_next_transaction",
        ),
        opposite(
            "A fenced producer is never taken for one that retries",
            "coordinator/transaction/ending.py",
            "    return producer.epoch + 1 == metadata.producer_epoch and not fenced",
            "    return producer.epoch + 1 == metadata.producer_epoch",
            "unit/test_transaction_decisions.py::test_a_fenced_producer_is_never_taken_for_a_retry",
        ),
        opposite(
            "A decision under the last epoch comes with another producer id",
            "coordinator/transaction/ending.py",
            "    next_id = new_id if metadata.is_epoch_exhausted else NO_PRODUCER_ID",
            "    next_id = NO_PRODUCER_ID",
            "unit/test_transaction_decisions.py::test_the_last_epoch_ends_with_another_producer_id",
        ),
        opposite(
            "A transaction that is open for longer than its timeout is aborted",
            "coordinator/transaction/metadata.py",
            "return ongoing and metadata.start_ms + metadata.timeout_ms < now_ms",
            "return False",
            "unit/test_transaction_states.py::test_only_an_open_transaction_times_out",
        ),
        opposite(
            "A prepared transaction is not aborted by the timer (KIP-939)",
            "coordinator/transaction/metadata.py",
            "is TransactionState.ONGOING and not metadata.is_two_phase",
            "is TransactionState.ONGOING",
            "unit/test_transaction_states.py::test_a_transaction_that_may_be_prepared_never_times_out",
        ),
        opposite(
            "... but by the next producer of its transactional id, unless that one asks to keep it",
            "coordinator/transaction/admission.py",
            "        if keep_prepared and metadata.is_two_phase:",
            "        if metadata.is_two_phase:",
            "unit/test_transaction_decisions.py::test_what_may_be_prepared_is_kept_if_asked_for",
        ),
        opposite(
            "The legal changes of state",
            "coordinator/transaction/states.py",
            "    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),",
            "    TransactionState.PREPARE_COMMIT: _NOTHING_OPEN | {TransactionState.ONGOING},",
            "unit/test_transaction_states.py::test_only_kafkas_changes_are_possible",
        ),
        opposite(
            "One change is written at a time",
            "coordinator/transaction/metadata.py",
            "        if self.pending is not None:\n            raise ValueError(",
            "        if False:\n            raise ValueError(",
            "unit/test_transaction_states.py::test_one_change_at_a_time",
        ),
    ),
)

MARKERS = Section(
    _TABLE,
    "4. Markers",
    (
        opposite(
            "A partition without a leader waits for one",
            "coordinator/transaction/markers.py",
            "            if leader < 0:\n                waiting = True\n",
            "            if leader < 0:\n                pass\n",
            "unit/test_transaction_markers.py::test_a_partition_without_a_leader_waits",
        ),
        opposite(
            "A partition that is not in the metadata is taken for deleted after 10 s, not at once, and only if ZooKeeper says so. Beyond Kafka",
            "coordinator/transaction/markers.py",
            "                if now - since >= _DOUBTFUL_AFTER_SECONDS:",
            "                if True:",
            "unit/test_transaction_markers.py::test_a_partition_is_taken_for_deleted_only_after_a_while",
        ),
        opposite(
            "A partition that is not in the metadata is taken for deleted after 10 s, not at once, and only if ZooKeeper says so. Beyond Kafka",
            "server/internal_topics.py",
            "    return node is None or partition.partition in node.partitions\n",
            "    return False\n",
            "simulation/test_missing_partitions.py::test_a_partition_whose_state_no_controller_can_believe_is_not_taken_for_deleted",
        ),
        opposite(
            "A marker carries the coordinator's epoch",
            "coordinator/transaction/markers.py",
            "                errand.pending.coordinator_epoch(),",
            "                0,",
            "unit/test_transaction_markers.py::test_a_request_carries_producer_outcome_and_coordinator_epoch",
        ),
        opposite(
            "A marker that is not written is sent again",
            "coordinator/transaction/markers.py",
            "    return Outcome.FENCED if error in _FENCED else Outcome.AGAIN",
            "    return Outcome.FENCED if error in _FENCED else Outcome.WRITTEN",
            "unit/test_transaction_markers.py::test_what_an_outcome_means",
        ),
        opposite(
            "A marker that is not written is sent again",
            "coordinator/transaction/markers.py",
            "found.get(key, Outcome.AGAIN)",
            "found.get(key, Outcome.WRITTEN)",
            "unit/test_transaction_markers.py::test_a_partition_that_the_answer_leaves_out_is_sent_again",
        ),
        opposite(
            "A transaction whose markers a newer producer or coordinator overtook is given up",
            "coordinator/transaction/markers.py",
            "            fenced.append(errand.pending)",
            "            pass",
            "unit/test_transaction_markers.py::test_a_fenced_transaction_is_given_up",
        ),
        opposite(
            "... and its transactional id is answered NOT_COORDINATOR. Beyond Kafka",
            "coordinator/transaction/transactions.py",
            "if not error and transaction is not None and transaction.is_taken_over:",
            "if False:",
            "simulation/test_deposed_coordinators.py::test_a_coordinator_whose_markers_are_refused_sends_its_clients_to_another",
        ),
        opposite(
            "... until the broker becomes leader again: then it reads the log again",
            "coordinator/owned_partitions.py",
            "if uninterrupted and partition not in self._doubted:",
            "if uninterrupted:",
            "simulation/test_deposed_coordinators.py::test_a_coordinator_under_the_next_epoch_takes_up_what_was_refused",
        ),
        opposite(
            "The transaction is complete when every marker is written",
            "coordinator/transaction/marker_channel.py",
            "[item for item in self._pending.values() if not item.missing]",
            "list(self._pending.values())",
            "simulation/test_transactions.py::test_markers_follow_the_leaders_of_the_partitions",
        ),
        opposite(
            "A coordinator that takes over has the markers of what is decided written",
            "coordinator/transaction/coordinator.py",
            "            self._record(EventKind.TRANSACTION_RESUMED, why, metadata)\n            self._decided(transaction)\n",
            "            self._record(EventKind.TRANSACTION_RESUMED, why, metadata)\n",
            "simulation/test_transactions.py::test_a_transaction_is_completed_wherever_its_coordinator_died",
        ),
        opposite(
            "The latest record of each transactional id counts, and a tombstone removes it",
            "coordinator/transaction/loading.py",
            "                self._metadata.pop(transactional_id, None)",
            "                pass",
            "unit/test_transaction_records.py::test_a_tombstone_removes_a_transactional_id",
        ),
        opposite(
            "A record that cannot be understood is left out, and named",
            "coordinator/transaction/loading.py",
            "            self.unreadable.append((record.offset, str(error)))",
            "            pass",
            "unit/test_transaction_records.py::test_a_record_that_cannot_be_understood_is_left_out_and_named",
        ),
    ),
)

TRANSACTIONS_THAT_HANG = Section(
    _TABLE,
    "5. Transactions that hang",
    (
        opposite(
            "A transaction hangs if its coordinator does not know that it is open in the partition (KIP-664)",
            "admin/transactions/descriptions.py",
            "        return self.is_open and partition in self.partitions",
            "        return self.is_open",
            "unit/test_hanging_transactions.py::test_one_that_its_coordinator_knows_does_not_hang",
        ),
        opposite(
            "A transaction hangs if its coordinator does not know that it is open in the partition (KIP-664)",
            "admin/transactions/hanging.py",
            "        if known is None or not known.will_end(",
            "        if known is not None and not known.will_end(",
            "unit/test_hanging_transactions.py::test_one_of_an_unknown_producer_hangs",
        ),
        opposite(
            "One whose newest batch is younger than the longest timeout is left out",
            "admin/transactions/hanging.py",
            "        and now_ms - producer.last_timestamp > max_timeout_ms\n",
            "",
            "unit/test_hanging_transactions.py::test_only_transactions_older_than_any_may_be_are_candidates",
        ),
        opposite(
            "An administrator may end it by an abort only. Beyond Kafka",
            "api/transactions/write_txn_markers.py",
            "    return possible and elsewhere and not marker.transaction_result",
            "    return possible",
            "simulation/test_transaction_admin.py::test_an_administrator_ends_a_hanging_transaction_and_only_by_an_abort",
        ),
    ),
)

SECTIONS = (
    THE_DECISION,
    MARKERS,
    TRANSACTIONS_THAT_HANG,
)
