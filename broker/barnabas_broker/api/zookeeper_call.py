"""For handlers that write to ZooKeeper: the store of the current session, and Kafka errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas_common.errors import error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import TooLarge, ZooKeeperError

from barnabas_broker.api.parts import BrokerParts


def current_store(parts: BrokerParts) -> Store:
    """Return the store of the current session; raises a retriable KafkaError without one."""
    store = parts.store()
    if store is None:
        raise error_for(ErrorCode.NETWORK_EXCEPTION, "this broker has no ZooKeeper session now")
    return store


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turn ZooKeeper's errors into Kafka errors, all but TooLarge into a retriable one."""
    try:
        yield
    except TooLarge as error:
        raise error_for(ErrorCode.INVALID_REQUEST, f"ZooKeeper: {error}") from error
    except ZooKeeperError as error:
        raise error_for(
            ErrorCode.NETWORK_EXCEPTION, f"ZooKeeper: {type(error).__name__}: {error}"
        ) from error
