"""What a handler that writes to ZooKeeper needs: the current session, and errors a client knows."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.error_code import ErrorCode
from barnabas.errors import error_for
from barnabas_controller.store import Store
from barnabas_controller.zookeeper.session import ZooKeeperError

from barnabas_broker.api.parts import BrokerParts


def current_store(parts: BrokerParts) -> Store:
    """The store of the living session; raises a retriable KafkaError while there is none."""
    store = parts.store()
    if store is None:
        raise error_for(ErrorCode.NETWORK_EXCEPTION, "this broker has no ZooKeeper session now")
    return store


@contextmanager
def kafka_errors() -> Iterator[None]:
    """ZooKeeper's own failures become a retriable Kafka error: the client may ask again."""
    try:
        yield
    except ZooKeeperError as error:
        raise error_for(
            ErrorCode.NETWORK_EXCEPTION, f"ZooKeeper: {type(error).__name__}: {error}"
        ) from error
