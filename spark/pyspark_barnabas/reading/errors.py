"""Errors with the names of their conditions in Spark's Kafka source, for programs that look for
them."""

import logging

logger = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """Requested records no longer exist, or do not exist yet."""


class PlanError(RuntimeError):
    """The offsets of a query do not fit the partitions that it reads."""


def data_loss(condition: str, reason: str) -> DataLossError:
    return DataLossError(f"[KAFKA_DATA_LOSS.{condition}] {reason}")


def report_data_loss(fail: bool, condition: str, reason: str) -> None:
    """Raise DataLossError, or log the loss if the query is to go on."""
    if fail:
        raise data_loss(condition, f"{reason}; set failOnDataLoss=false to read what remains")
    logger.warning("data loss, %s: %s", condition, reason)
