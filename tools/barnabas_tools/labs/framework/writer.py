"""An application that writes with acks=all during a scenario."""

import asyncio
from collections.abc import Sequence

from barnabas import Producer


class Writer:
    """Sends one record after the other to partition 0 of a topic until `stop` is set."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[int, bytes] = {}
        """Values by offset."""
        self.longest_wait = 0.0
        """The longest time from a send to its acknowledgement, in seconds."""
        self.stop = asyncio.Event()
        self._bootstrap = bootstrap
        self._topic = topic

    async def run(self) -> None:
        now = asyncio.get_running_loop().time
        async with Producer(self._bootstrap, acks="all", retry_backoff_ms=50) as producer:
            while not self.stop.is_set():
                began = now()
                value = b"%d" % len(self.acknowledged)
                metadata = await producer.send_and_wait(self._topic, value, partition=0)
                self.acknowledged[metadata.offset] = value
                self.longest_wait = max(self.longest_wait, now() - began)

    async def has_written(self, count: int) -> bool:
        return len(self.acknowledged) >= count

    def lost(self, values: Sequence[bytes]) -> list[bytes]:
        """Return the acknowledged values that a log lacks at their offsets."""
        acknowledged = self.acknowledged.items()
        return [value for offset, value in acknowledged if values[offset : offset + 1] != [value]]
