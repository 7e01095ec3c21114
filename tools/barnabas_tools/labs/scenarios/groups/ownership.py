"""Who reads which partition, from what the members' listeners are told; plain data, no waiting."""

from collections.abc import Callable, Iterable, Sequence

from barnabas import RebalanceListener
from barnabas_common.topic_partition import TopicPartition


class Ownership:
    """The readers of each partition; `now` is in seconds.

    `longest_unread`: the longest time, since `begin_to_measure`, that a partition had no reader.
    `shared`: partitions that two members read at the same time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.readers: dict[int, list[str]] = {}
        self.longest_unread: dict[int, float] = {}
        self.shared: set[int] = set()
        self._now = now
        self._unread_since: dict[int, float] = {}

    def begin_to_measure(self) -> None:
        self.longest_unread = dict.fromkeys(self.readers, 0.0)

    def taken(self, member: str, partitions: Iterable[int]) -> None:
        for partition in partitions:
            readers = self.readers.setdefault(partition, [])
            readers.append(member)
            if len(readers) > 1:
                self.shared.add(partition)
            since = self._unread_since.pop(partition, None)
            if since is not None:
                seconds = max(self._now() - since, self.longest_unread.get(partition, 0.0))
                self.longest_unread[partition] = seconds

    def given_up(self, member: str, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self.readers[partition].remove(member)
            if not self.readers[partition]:
                self._unread_since[partition] = self._now()

    def by_member(self) -> dict[str, list[int]]:
        """The partitions of each member that has some."""
        found: dict[str, list[int]] = {}
        for partition, readers in sorted(self.readers.items()):
            for member in readers:
                found.setdefault(member, []).append(partition)
        return found


class OwnershipListener(RebalanceListener):
    """Tells `Ownership` what one member is told."""

    def __init__(self, ownership: Ownership, member: str) -> None:
        self._ownership = ownership
        self._member = member

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._ownership.taken(self._member, [tp.partition for tp in partitions])

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._ownership.given_up(self._member, [tp.partition for tp in partitions])
