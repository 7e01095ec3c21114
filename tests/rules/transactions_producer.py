"""Opposites of the rules of transactions: the producer, and the exact copy."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-transactions.md"

THE_PRODUCER = Section(
    _TABLE,
    "6. The producer",
    (
        opposite(
            "A partition is added before its records are sent",
            "producer/transaction/manager.py",
            "        return topic_partition in self._added\n",
            "        return True\n",
            "simulation/test_transactional_producer.py::test_partitions_are_added_before_their_records_and_together",
        ),
        opposite(
            "Each transaction has the epoch of the answer before, and sequences from 0",
            "producer/transaction/manager.py",
            "        if producer.producer_id >= 0 and producer != self._ids.current:",
            "        if False:",
            "simulation/test_transactional_producer.py::test_every_transaction_has_an_epoch_and_sequences_from_0",
        ),
        opposite(
            "A transaction without records asks no coordinator",
            "producer/transaction/manager.py",
            "        if self._started:\n            self._take(await self._requests.end(self._current, committed=True))",
            "        if True:\n            self._take(await self._requests.end(self._current, committed=True))",
            "simulation/test_transactional_producer.py::test_a_transaction_without_records_asks_no_coordinator",
        ),
        opposite(
            "A record that was given up makes the commit impossible",
            "producer/transaction/manager.py",
            "            self.fail(after_produce(error))\n",
            "            pass\n",
            "simulation/test_transactional_producer_errors.py::test_an_error_of_a_record_makes_the_commit_fail_until_the_abort",
        ),
        opposite(
            "An abort drops what is not sent",
            "producer/transaction/manager.py",
            "        self._batches.drop(why)\n        self._new.clear()\n",
            "        self._new.clear()\n",
            "simulation/test_transactional_producer.py::test_an_abort_drops_what_is_queued_and_waits_for_what_is_in_flight",
        ),
        opposite(
            "`close` aborts an open transaction",
            "producer/transaction/manager.py",
            "            if self.is_undecided:\n",
            "            if False:\n",
            "simulation/test_transactional_producer.py::test_close_aborts_an_open_transaction",
        ),
        opposite(
            "An older epoch means that the producer is fenced, whatever the request was",
            "producer/transaction/outcomes.py",
            "    _E.INVALID_PRODUCER_EPOCH: _O.FENCED,",
            "    _E.INVALID_PRODUCER_EPOCH: _O.ABORT,",
            "unit/test_transaction_outcomes.py::test_errors_that_are_raised",
        ),
        opposite(
            "A coordinator that puts a request off for 3 s is confirmed with another broker. Beyond Kafka",
            "cluster/coordinator.py",
            "            await self.confirm()\n            put_off_since = None\n",
            "            put_off_since = None\n",
            "simulation/test_deposed_coordinators.py::test_a_producer_leaves_a_coordinator_that_puts_it_off_for_long",
        ),
        opposite(
            "The class of an error says what the producer can do",
            "producer/transaction/outcomes.py",
            "    return error if error.fatal else _of(TransactionFailedError, error)",
            "    return error",
            "unit/test_transaction_outcomes.py::test_the_class_of_what_is_raised_says_what_to_do",
        ),
        opposite(
            "A producer that its coordinator has forgotten gets another id by an abort",
            "producer/transaction/manager.py",
            "        if needs_producer_id(self.last_error) or self._ids.current is None:",
            "        if False:",
            "simulation/test_transactional_producer_errors.py::test_a_coordinator_that_forgot_the_producer_gives_it_another_id",
        ),
    ),
)

THE_EXACT_COPY = Section(
    _TABLE,
    "7. The exact copy",
    (
        opposite(
            "After an abort the same records are read again",
            "transactional_loop.py",
            "            _rewind(consumer, records)\n",
            "            pass\n",
            "simulation/test_exactly_once_loop.py::test_a_transaction_that_fails_is_repeated_with_the_same_records",
        ),
        opposite(
            "The offsets behind the records are committed with the results",
            "transactional_loop.py",
            '    return OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)',
            '    return OffsetAndMetadata(record.offset, "", record.leader_epoch)',
            "simulation/test_exactly_once_loop.py::test_the_loop_copies_each_record_once_and_commits_where_it_is",
        ),
        opposite(
            "The consumer of the loop reads what is committed only",
            "transactional_loop.py",
            "    if not consumer.reads_committed:\n",
            "    if False:\n",
            "simulation/test_textbook_transactions.py::test_the_loop_refuses_a_consumer_that_reads_what_is_not_committed",
        ),
    ),
)

SECTIONS = (
    THE_PRODUCER,
    THE_EXACT_COPY,
)
