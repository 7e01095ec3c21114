"""The producer id under which leaders recognize a retry, and its epoch (KIP-98, KIP-360).

The producer asks any broker for an id when it has the first batch to send. A new epoch needs no
broker: only this producer uses the id, so it counts up by itself.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from barnabas_common.errors import BarnabasError, KafkaError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.runtime import Service

from barnabas.cluster import Cluster

logger = logging.getLogger(__name__)

# The epoch is an int16; the next batch after it needs another id.
_LAST_EPOCH = 2**15 - 1


class ProducerIdAndEpoch(NamedTuple):
    """What a batch's header says about its producer."""

    producer_id: int
    epoch: int


class ProducerIds:
    """The id of one producer: `current` is None until a broker has given one.

    `last_failure`: why there is none yet.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_id: Callable[[], None],
        on_refusal: Callable[[BarnabasError], None],
    ) -> None:
        self.current: ProducerIdAndEpoch | None = None
        self.last_failure: BarnabasError | None = None
        self.epochs_started = 0
        self._cluster = cluster
        self._on_id = on_id
        self._on_refusal = on_refusal
        self._wanted = asyncio.Event()

    def request(self) -> None:
        """Get an id soon, in the background."""
        self._wanted.set()

    def start_epoch(self, beyond: ProducerIdAndEpoch | None) -> None:
        """Make `current` newer than `beyond`; None once the id has no epochs left."""
        if self.current is None or self.current != beyond:
            return
        self.epochs_started += 1
        producer_id, epoch = self.current
        self.current = None if epoch >= _LAST_EPOCH else ProducerIdAndEpoch(producer_id, epoch + 1)

    async def run(self) -> None:
        """Ask for an id whenever one is wanted and there is none."""
        failures = 0
        while True:
            await self._wanted.wait()
            try:
                if self.current is None:
                    self.current = await self._ask()
            except BarnabasError as error:
                failures += 1
                self.last_failure = error
                if _is_final(error):
                    self._on_refusal(error)
                    self._wanted.clear()
                level = logging.WARNING if failures == 1 else logging.DEBUG
                logger.log(level, "no producer id yet: %s", error)
                await asyncio.sleep(self._cluster.backoff.seconds(failures))
            else:
                failures = 0
                self.last_failure = None
                self._wanted.clear()
                self._on_id()

    async def _ask(self) -> ProducerIdAndEpoch:
        response: InitProducerIdResponse = await self._cluster.ask(
            InitProducerIdRequest(), service=Service.COORDINATOR
        )
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message)
        logger.info("producer id %d, epoch %d", response.producer_id, response.producer_epoch)
        return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def _is_final(error: BarnabasError) -> bool:
    """Whether asking again cannot help."""
    unknown = isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    return isinstance(error, KafkaError) and not error.retriable and not unknown
