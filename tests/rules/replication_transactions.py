"""Opposites of the rules of replication: transactions in the leaders' logs, and their readers."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-replication.md"
_TRANSACTIONS = "log/producers/transactions.py"
_FLIPPED = "unit/test_damaged_transaction_indexes.py::test_readers_learn_of_the_same_transactions"
_UNIT = "unit/test_log_transactions.py::"

TRANSACTIONS = Section(
    _TABLE,
    "11a. Transactions",
    (
        opposite(
            "A client's control batch is refused",
            "log/validation.py",
            "if header.is_control and origin is AppendOrigin.CLIENT:",
            "if False:",
            _UNIT + "test_a_clients_control_batch_is_refused",
        ),
        opposite(
            "The first batch of a transaction is appended only if",
            _TRANSACTIONS,
            "elif not is_verified and not has_ongoing(entry, header.producer_epoch):",
            "elif False:",
            _UNIT + "test_a_first_batch_needs_the_coordinators_word_and_later_ones_do_not",
        ),
        opposite(
            "The first batch of a transaction is appended only if",
            "log/producers/verification.py",
            "        self._guards.pop(producer_id, None)\n",
            "        pass\n",
            _UNIT + "test_a_marker_voids_the_coordinators_word",
        ),
        opposite(
            "A marker of an older producer epoch",
            _TRANSACTIONS,
            "if entry is not None and marker.coordinator_epoch < unpack(entry).coordinator_epoch:",
            "if False:",
            _UNIT + "test_markers_are_fenced_by_both_epochs",
        ),
        opposite(
            "A marker of an older producer epoch",
            _TRANSACTIONS,
            "if entry is not None and header.producer_epoch < unpack(entry).producer_epoch:",
            "if False:",
            _UNIT + "test_markers_are_fenced_by_both_epochs",
        ),
        opposite(
            "Under transaction version 2 a repeated marker",
            "api/transactions/write_txn_markers.py",
            "    if not bump_supported(marker.transaction_version):\n",
            "    if True:\n",
            "simulation/test_transactional_data.py::test_a_repeated_marker_that_comes_late_ends_the_next_transaction_of_kafka_3_9_only",
        ),
        opposite(
            "The last stable offset is that of the earliest undecided transaction",
            "log/readable_log.py",
            "if unstable is None or unstable >= self.high_watermark:",
            "if True:",
            _UNIT + "test_the_last_stable_offset_stands_at_the_earliest_open_transaction",
        ),
        opposite(
            "The last stable offset is that of the earliest undecided transaction",
            _TRANSACTIONS,
            "            if marker_offset >= high_watermark:\n                break\n",
            "",
            _UNIT + "test_a_marker_counts_when_it_is_committed",
        ),
        opposite(
            "Read_committed readers are served below",
            "replica/serve/fetch_isolation.py",
            "                return log.last_stable_offset\n",
            "                return log.high_watermark\n",
            "simulation/test_transactional_data.py::test_what_is_committed_is_visible_at_once_and_what_is_aborted_never",
        ),
        opposite(
            "They are told of the aborted transactions",
            "log/index/transaction_index.py",
            "            if entry.last_stable_offset >= end:\n",
            "            if entry.last_offset >= end:\n",
            "unit/test_aborted_batches.py::test_a_reader_gets_what_is_committed_however_its_fetches_fall",
        ),
        opposite(
            "They are told of the aborted transactions",
            "record/aborted.py",
            "                    self._aborted.discard(producer_id)\n",
            "                    pass\n",
            "unit/test_aborted_batches.py::test_the_same_producers_next_transaction_is_kept",
        ),
        opposite(
            "Followers, restarts and truncations keep",
            "log/producers/producer_state_manager.py",
            "        self.transactions = TransactionTable.of(self.entries.values())\n",
            "        self.transactions = TransactionTable()\n",
            _UNIT + "test_a_restart_knows_the_transactions",
        ),
        opposite(
            "A transaction index that is torn or newer than its log",
            "log/recovery/stored_transactions.py",
            "            index.is_valid(segment.base_offset, segment.next_offset, begun_later)\n            and",
            "           ",
            _UNIT + "test_an_index_that_cannot_be_the_logs_is_rebuilt",
        ),
        opposite(
            "A transaction index with a wrong entry",
            "log/recovery/stored_transactions.py",
            "entry.producer_id, True, is_marker):",
            "header.producer_id, True, is_marker):",
            _FLIPPED,
        ),
        opposite(
            "A transaction index with a wrong entry",
            "log/recovery/stored_transactions.py",
            "            before == 0 or",
            "            True or",
            _FLIPPED,
        ),
        opposite(
            "A transaction index with a wrong entry",
            "log/index/transaction_index.py",
            "<= min(begun_later, entry.last_offset + 1)",
            "<= entry.last_offset + 1",
            _FLIPPED,
        ),
    ),
)

SECTIONS = (TRANSACTIONS,)
