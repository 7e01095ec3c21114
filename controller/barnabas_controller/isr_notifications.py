"""`/isr_change_notification`: leaders of the old protocol changed ISRs by themselves.

Before KIP-497 a leader wrote the state znode and left a note of it here. Brokers of today ask the
controller instead (`isr_changes.py`) and leave none; but whoever mends a state znode by hand can
have the controller read it anew with such a note:

    /isr_change_notification/isr_change_0000000007
    {"version":1,"partitions":[{"topic":"flights","partition":0}]}
"""

import logging
from collections.abc import Callable, Sequence

from barnabas.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.reign import Reign
from barnabas_controller.state_reading import read_states
from barnabas_controller.znode_json import JsonReader
from barnabas_controller.znodes import ISR_CHANGES
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)


class IsrNotifications:
    """Handles the notes of one reign; `on_changed` hears of the partitions that were read."""

    def __init__(
        self, reign: Reign, on_changed: Callable[[Sequence[TopicPartition]], None]
    ) -> None:
        self._reign = reign
        self._context = reign.context
        self._on_changed = on_changed

    async def start(self) -> None:
        """Throw old notes away: they tell of state that is about to be read anyway."""
        await self._reign.store.store.children(ISR_CHANGES, self._watch)
        await self._reign.store.delete_children(ISR_CHANGES)

    def _watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("ISR change notifications", self.on_notes)

    async def on_notes(self) -> None:
        """There are other notes; taking them away brings us here once more, to find none."""
        store = self._reign.store.store
        names = await store.children(ISR_CHANGES, self._watch)
        named: dict[TopicPartition, None] = {}
        for name in names:
            found = await store.get(f"{ISR_CHANGES}/{name}")
            if found is not None:
                try:
                    named.update(dict.fromkeys(decode_note(f"{ISR_CHANGES}/{name}", found[0])))
                except MalformedZnode as error:
                    store.report(error)
        known = [p for p in named if p in self._context.leadership]
        if known:
            await self._read(known)
        for name in names:
            await self._reign.store.delete_tree(f"{ISR_CHANGES}/{name}")

    async def _read(self, partitions: list[TopicPartition]) -> None:
        states = await read_states(self._reign, partitions)
        for partition, (state, _) in states.items():
            logger.info("%s: its state was read anew: %s", partition, state)
            self._context.leadership[partition] = state
        self._reign.update_metadata(self._context.registered_brokers(), list(states))
        self._on_changed(list(states))


def decode_note(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions; raises MalformedZnode."""
    items = JsonReader(path, data).objects("partitions")
    return [TopicPartition(item.string("topic"), item.integer("partition")) for item in items]
