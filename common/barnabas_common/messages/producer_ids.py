"""InitProducerId: an id under which leaders recognize a retry (service Coordinator)."""

from dataclasses import dataclass

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


@dataclass(slots=True)
class InitProducerIdRequest:
    """Without `transactional_id` every broker answers, with a new id and epoch 0.

    A transactional producer that has an id and an epoch names both, to get a higher epoch
    (KIP-360). `enable_two_phase_commit`: its transactions have no timeout. `keep_prepared`: an open
    transaction is not aborted (both KIP-939).
    """

    transactional_id: str = ""
    transaction_timeout_ms: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    enable_two_phase_commit: bool = False
    keep_prepared: bool = False


@dataclass(slots=True)
class InitProducerIdResponse:
    """`has_ongoing_transaction`: an open transaction was kept; the id and epoch are those that
    end it."""

    error_code: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    error_message: str = ""
    has_ongoing_transaction: bool = False
