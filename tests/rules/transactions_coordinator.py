"""Opposites of the rules of transactions: what a coordinator is asked before a transaction ends."""

from tests.support.opposites import Section, opposite

_TABLE = "rules-transactions.md"

THE_TRANSACTIONAL_ID = Section(
    _TABLE,
    "1. The transactional id",
    (
        opposite(
            "Each InitProducerId raises the epoch, so that only the producer that asked last counts",
            "coordinator/transaction/metadata.py",
            "epochs = (current + 1, NO_PRODUCER_EPOCH)",
            "epochs = (current, NO_PRODUCER_EPOCH)",
            "unit/test_transaction_decisions.py::test_initializing_raises_the_epoch",
        ),
        opposite(
            "While the markers of the transaction before are missing, it is answered CONCURRENT_TRANSACTIONS",
            "coordinator/transaction/admission.py",
            "    if is_decided(metadata.state):\n        return ErrorCode.CONCURRENT_TRANSACTIONS\n    if metadata.state is TransactionState.ONGOING:\n",
            "    if metadata.state is TransactionState.ONGOING:\n",
            "unit/test_transaction_decisions.py::test_initializing_waits_for_the_markers",
        ),
        opposite(
            "An open transaction is aborted first, under an epoch that its producer does not have",
            "coordinator/transaction/metadata.py",
            "raised = min(metadata.producer_epoch + 1, MAX_EPOCH)",
            "raised = metadata.producer_epoch",
            "unit/test_transaction_decisions.py::test_initializing_fences_the_producer_of_an_open_transaction",
        ),
        opposite(
            "... once, also if that could not be written at the first attempt",
            "coordinator/transaction/metadata.py",
            "epoch = metadata.producer_epoch if transaction.has_failed_epoch_fence else raised",
            "epoch = raised",
            "unit/test_transaction_states.py::test_fencing_raises_the_epoch_once_even_if_it_could_not_be_written",
        ),
        opposite(
            "A producer that wants a higher epoch names the one it has, or the one before if the answer was lost (KIP-360)",
            "coordinator/transaction/metadata.py",
            "    elif expected_epoch == last and current <= LAST_CLIENT_EPOCH:\n        epochs = (current, last)\n",
            "",
            "unit/test_transaction_states.py::test_the_next_epoch",
        ),
        opposite(
            "A producer that wants a higher epoch names the one it has, or the one before if the answer was lost (KIP-360)",
            "coordinator/transaction/admission.py",
            "if producer != UNNAMED and not _may_ask_for_more(metadata, producer):",
            "if False:",
            "unit/test_transaction_decisions.py::test_an_unknown_producer_is_fenced_before_its_open_transaction_is_looked_at",
        ),
        opposite(
            "The timeout is above 0 and at most `transaction.max.timeout.ms`",
            "coordinator/transaction/admission.py",
            "return asked_ms if 0 < asked_ms <= max_ms else",
            "return asked_ms if True else",
            "simulation/test_transactions.py::test_what_is_refused",
        ),
        opposite(
            "When the epochs of a producer id run out, there is another one",
            "coordinator/transaction/admission.py",
            "if metadata.is_epoch_exhausted and (not named or producer.epoch == metadata.producer_epoch):",
            "if False:",
            "unit/test_transaction_decisions.py::test_exhausted_epochs_need_another_producer_id",
        ),
        opposite(
            "A transactional id that is not used for `transactional.id.expiration.ms` is forgotten, unless a transaction is open",
            "coordinator/transaction/metadata.py",
            "idle = nothing_is_open(metadata.state) and transaction.pending is None",
            "idle = True",
            "unit/test_transaction_states.py::test_a_transactional_id_expires_when_nothing_is_open",
        ),
    ),
)

PARTITIONS_AND_OFFSETS = Section(
    _TABLE,
    "2. Partitions and offsets",
    (
        opposite(
            "Only the current producer adds partitions",
            "coordinator/transaction/admission.py",
            "    if metadata.producer_epoch != producer.epoch:\n        return ErrorCode.PRODUCER_FENCED\n    if transaction.pending",
            "    if transaction.pending",
            "unit/test_transaction_decisions.py::test_who_may_add_partitions",
        ),
        opposite(
            "... and none while the transaction before is being completed",
            "coordinator/transaction/admission.py",
            "    if transaction.pending is not None or is_decided(metadata.state):\n        return",
            "    if transaction.pending is not None:\n        return",
            "unit/test_transaction_decisions.py::test_who_may_add_partitions",
        ),
        opposite(
            "The first partition begins the transaction, and its time",
            "coordinator/transaction/metadata.py",
            "        start_ms=now_ms if nothing_is_open(metadata.state) else metadata.start_ms,\n        client_version=client_version,\n    )\n\n\ndef prepare_end",
            "        start_ms=now_ms,\n        client_version=client_version,\n    )\n\n\ndef prepare_end",
            "unit/test_transaction_states.py::test_the_first_partition_begins_a_transaction_and_others_join_it",
        ),
        opposite(
            "What is part of the transaction is not written again",
            "coordinator/transaction/admission.py",
            "if metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:",
            "if False:",
            "unit/test_transaction_decisions.py::test_what_is_part_of_the_transaction_is_not_written_again",
        ),
        opposite(
            "A producer that was promised another id waits until it counts (KIP-890)",
            "coordinator/transaction/admission.py",
            "        if producer.producer_id in promised:",
            "        if False:",
            "unit/test_transaction_decisions.py::test_a_producer_that_was_promised_another_id_waits_for_it",
        ),
        opposite(
            "If one of the partitions does not exist, none is added",
            "api/coordinator/transactions.py",
            "    if refused:\n",
            "    if False:\n",
            "simulation/test_transactions.py::test_what_is_refused",
        ),
        opposite(
            "A leader may append for a partition of the open transaction only (KIP-890)",
            "coordinator/transaction/admission.py",
            "    if partition not in metadata.partitions:\n",
            "    if False:\n",
            "unit/test_transaction_decisions.py::test_a_leader_may_append_to_partitions_of_the_open_transaction_only",
        ),
        opposite(
            "Offsets count with the commit marker of their partition, and never after an abort",
            "coordinator/group/txn_offsets.py",
            "group.committed.transaction_ended(producer_id, commit",
            "group.committed.transaction_ended(producer_id, True",
            "simulation/test_transactional_commits.py::test_offsets_of_a_transaction_count_with_its_marker",
        ),
        opposite(
            "A member commits offsets in its generation only (KIP-447)",
            "coordinator/group/txn_offsets.py",
            "if request.generation_id < 0 and (group.state is GroupState.EMPTY or not named):",
            "if True:",
            "unit/test_group_transactional.py::test_a_member_must_be_of_this_generation",
        ),
        opposite(
            "... and the generation is checked again once the transaction is verified",
            "coordinator/group/txn_offsets.py",
            "                lambda: self._refusal(group, request, offsets),",
            "                lambda: ErrorCode.NONE,",
            "simulation/test_transactional_commits.py::test_offsets_are_not_committed_for_a_generation_that_ends_meanwhile",
        ),
    ),
)

SECTIONS = (
    THE_TRANSACTIONAL_ID,
    PARTITIONS_AND_OFFSETS,
)
