"""The groups with offsets in open transactions, by producer (Kafka's `openGroupsForProducer`).

A coordinator may have thousands of groups. The end of a transaction must not look at all of them.
"""

from barnabas_broker.coordinator.group.group import Group


class OpenGroups:
    """An index of what each group's `committed.transactional` said at the latest `review`."""

    def __init__(self) -> None:
        self._groups: dict[int, dict[Group, None]] = {}
        self._producers: dict[Group, set[int]] = {}

    def of(self, producer_id: int) -> list[Group]:
        """The groups with offsets in the producer's transaction."""
        return list(self._groups.get(producer_id, ()))

    def add(self, group: Group) -> None:
        """The group is here, with all that waits in it."""
        for producer_id in group.committed.transactional.producer_ids():
            self.review(producer_id, group)

    def remove(self, group: Group) -> None:
        """The group is not here any more."""
        for producer_id in list(self._producers.get(group, ())):
            self._discard(producer_id, group)

    def review(self, producer_id: int, group: Group) -> None:
        """Offsets of the group began to wait for the producer, or no longer do."""
        if producer_id in group.committed.transactional.producer_ids():
            self._groups.setdefault(producer_id, {})[group] = None
            self._producers.setdefault(group, set()).add(producer_id)
        else:
            self._discard(producer_id, group)

    def _discard(self, producer_id: int, group: Group) -> None:
        if producer_id not in self._producers.get(group, ()):
            return
        self._producers[group].remove(producer_id)
        if not self._producers[group]:
            del self._producers[group]
        del self._groups[producer_id][group]
        if not self._groups[producer_id]:
            del self._groups[producer_id]
