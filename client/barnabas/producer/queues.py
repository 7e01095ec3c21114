"""What waits to be sent: the batches of one partition, and the partitions of one topic."""

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from barnabas_common.topic_partition import TopicPartition

from barnabas.producer.batch import BatchState, ProducerBatch
from barnabas.producer.producer_id import ProducerIdAndEpoch
from barnabas.producer.sequences import MAX_UNANSWERED, PartitionSequences


class PartitionQueue:
    """The unsent batches of one partition.

    `requests` is how many requests with its batches are unanswered. `sequences` keep the order of
    an idempotent producer's batches through retries; without idempotence, one request at a time
    does. They were last sent under `sent_epoch`, a leader epoch. A retry waits until
    `not_before` (monotonic seconds), or for a leader with a higher epoch.
    """

    __slots__ = ("_shares", "closed", "failures", "not_before", "open", "requests", "sent_epoch",
                 "sequences", "topic", "topic_partition")  # fmt: skip

    def __init__(self, topic: "TopicQueues", topic_partition: TopicPartition) -> None:
        self.topic = topic
        self.topic_partition = topic_partition
        self.open: ProducerBatch | None = None
        self.closed: deque[ProducerBatch] = deque()
        self.requests = 0
        self._shares = 0
        self.sequences = PartitionSequences()
        self.failures = 0
        self.not_before = 0.0
        self.sent_epoch = -1

    @property
    def unsent(self) -> int:
        """How many batches wait."""
        return len(self.closed) + (self.open is not None)

    def retry(self) -> list[ProducerBatch]:
        """The oldest batches if they were sent before: those that were in one request.

        The leader has stored all of them or none, and recognizes them by the last one.
        """
        if not self.closed or self.closed[0].producer is None:
            return []
        share = self.closed[0].share
        return list(takewhile(lambda batch: batch.share == share, self.closed))

    def fresh(self, count: int, room: int, first: bool) -> list[ProducerBatch]:
        """The oldest batches, at most `room` bytes of them, but one if `first`; and at most `count`
        record batches, but one batch if no request is unanswered.

        The broker appends all batches of a partition in a request or none, so a batch marked
        `solo`, which was refused together with others, is taken alone.
        """
        taken: list[ProducerBatch] = []
        for batch in self.closed:
            count -= batch.record_batches
            room -= len(batch.payload)
            if taken and (batch.solo or taken[-1].solo):
                break
            if (count < 0 and (taken or self.requests)) or (room < 0 and (taken or not first)):
                break
            taken.append(batch)
        return taken

    def take(self, share: list[ProducerBatch], current: ProducerIdAndEpoch | None) -> None:
        """Move the oldest batches into a request; `current` numbers those that are new."""
        if not share:
            return
        self.requests += 1
        self._shares += 1
        for batch in share:
            self.closed.popleft()
            if current is not None:
                self.sequences.assign(batch, current)
            batch.share = self._shares
            batch.sent()

    def separate(self, batches: Sequence[ProducerBatch]) -> None:
        """Let each batch be sent alone from now on."""
        for batch in batches:
            self._shares += 1
            batch.share = self._shares
            batch.solo = True

    def widen(self, batches: Sequence[ProducerBatch]) -> None:
        """Let the retry of these include as many batches behind them as a leader remembers.

        The leader has refused these as out of order, and may have forgotten them. If it has, it
        has stored at least one more.
        """
        last, room = batches[-1], MAX_UNANSWERED
        for batch in self.sequences.behind(last):
            if room <= 0:
                break
            batch.share = last.share
            room -= batch.record_batches

    def put_in_front(self, batches: Sequence[ProducerBatch]) -> None:
        """Queue batches again that were in flight, before all that were not."""
        if not self.sequences.unanswered:
            self.closed.extendleft(reversed(batches))
            return
        # Requests may fail in another order than they were sent in.
        again = [b for b in self.sequences.unanswered if b.state is BatchState.CLOSED]
        self.closed = deque([*again, *(b for b in self.closed if b.producer is None)])


class TopicQueues:
    """The queues of one topic, and the present partition for records without a key.

    `queues` and `has_leader` have an entry for every partition there ever was, `count` is how many
    there are now: fewer once the topic was deleted and created again with fewer.
    """

    def __init__(self, topic: str, partition_count: int) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.sticky: PartitionQueue | None = None
        self.sticky_bytes = 0
        self.last_partition = -1
        self.has_leader: list[bool] = []
        self.count = 0
        self.resize(partition_count)

    def given(self, queue: PartitionQueue, size: int, batch_size: int) -> None:
        """Count a closed batch: after `batch_size` bytes the sticky partition changes."""
        if self.sticky is queue:
            self.sticky_bytes += size
            if self.sticky_bytes >= batch_size:
                self.sticky = None
                self.sticky_bytes = 0

    def resize(self, partition_count: int) -> None:
        """Spread keys over this many partitions; new ones get queues."""
        self.count = partition_count
        if self.sticky is not None and self.sticky.topic_partition.partition >= partition_count:
            self.sticky = None
            self.sticky_bytes = 0
        for number in range(len(self.queues), partition_count):
            self.queues.append(PartitionQueue(self, TopicPartition(self.topic, number)))
            self.has_leader.append(True)
