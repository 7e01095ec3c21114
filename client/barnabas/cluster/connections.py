"""Channels to brokers, and one request sent to many addresses concurrently.

A channel belongs to an address and a service; it connects when first used and reconnects by
itself, so channels are kept until the client is closed.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from barnabas_common.errors import BarnabasError, ClientError, ClosedError, NoBrokerReachableError
from barnabas_common.runtime import Address, Channel, Message, Network, Service, TaskScope

logger = logging.getLogger(__name__)


class Connections:
    """The open channels of one client."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._channels: dict[tuple[Address, Service], Channel] = {}
        self._closed = False

    def channel(self, address: Address, service: Service) -> Channel:
        """The channel to a service at an address; the first call creates it.

        Raises `ClosedError` after `close`: a new channel would never be closed.
        """
        self.check_open()
        key = (address, service)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = self._network.connect(address, service)
        return channel

    def check_open(self) -> None:
        if self._closed:
            raise ClosedError("the client was closed meanwhile")

    async def close(self) -> None:
        """Close all channels, also if the caller is cancelled meanwhile."""
        self._closed = True
        channels = list(self._channels.values())
        self._channels.clear()
        async with AsyncExitStack() as closing:
            for channel in reversed(channels):
                closing.push_async_callback(channel.close)

    async def first_answer(
        self, addresses: Sequence[Address], request: Message, timeout: float
    ) -> Message:
        """Ask all addresses concurrently and return the first answer.

        One address that does not answer must not delay the others. Raises `NoBrokerReachableError`
        naming each address and its failure if none answers within `timeout` seconds.
        """
        outcomes: asyncio.Queue[tuple[Address, Message | BarnabasError]] = asyncio.Queue()

        async def ask(address: Address) -> None:
            try:
                channel = self.channel(address, Service.ADMIN)
                outcomes.put_nowait((address, await channel.call(request, timeout)))
            except BarnabasError as error:
                outcomes.put_nowait((address, error))
            except Exception as error:
                logger.exception("asking %s failed", address)
                outcomes.put_nowait((address, ClientError(repr(error))))

        scope = TaskScope("bootstrap")
        failures: dict[Address, BarnabasError] = {}
        try:
            for address in addresses:
                scope.spawn(ask(address), str(address))
            for _ in addresses:
                address, outcome = await outcomes.get()
                if not isinstance(outcome, BarnabasError):
                    return outcome
                failures[address] = outcome
        finally:
            await scope.close()
        raise unreachable(failures)


def unreachable(failures: dict[Address, BarnabasError]) -> NoBrokerReachableError:
    """The error that names every address tried and why each failed."""
    reasons = "; ".join(f"{address}: {error}" for address, error in failures.items())
    return NoBrokerReachableError(f"no broker could be reached ({reasons or 'none is known'})")
