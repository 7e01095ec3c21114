"""A transaction that its producer has prepared, and that anyone may end (KIP-939)."""

from typing import NamedTuple

NO_TIMEOUT_MS = 2**31 - 1
"""The timeout of a transaction that ends only when it is told to, as Kafka writes it."""


class PreparedTransaction(NamedTuple):
    """Everything is delivered; only the outcome is missing.

    Who knows these three may commit or abort it, from any process and at any time: no timeout ends
    it. Plain values, so that a coordinator of several transactions can store them.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
