"""Asking a leader where epochs end, for followers that cut their log before they fetch (KIP-101).

One OffsetForLeaderEpoch for all of them. It carries the epoch each believes in, so that a leader
of another epoch refuses to answer (KIP-320): an answer is never about another history.
"""

from collections.abc import Container

from barnabas.messages.offsets import (
    EpochEndOffset,
    EpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas.runtime import Channel
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.follower import Follower
from barnabas_broker.replica.truncation import UNDEFINED


class EpochLookups:
    """`pending`: the followers of one leader that have yet to learn where to cut."""

    def __init__(self, broker_id: int, timeout: float) -> None:
        self._broker_id = broker_id
        self._timeout = timeout
        self.pending: dict[TopicPartition, Follower] = {}

    def note(self, key: TopicPartition, follower: Follower) -> None:
        """Keep the follower among those that ask for as long as it must."""
        if follower.must_ask:
            self.pending[key] = follower
        else:
            self.pending.pop(key, None)

    def drop(self, key: TopicPartition) -> None:
        """It is no longer followed."""
        self.pending.pop(key, None)

    def questions(self, paused: Container[TopicPartition]) -> dict[TopicPartition, EpochPartition]:
        """What to ask now."""
        return {
            key: EpochPartition(
                *key,
                leader_epoch=UNDEFINED if follower.latest_epoch is None else follower.latest_epoch,
                current_leader_epoch=follower.leader_epoch,
            )
            for key, follower in self.pending.items()
            if key not in paused
        }

    async def ask(
        self, channel: Channel, questions: dict[TopicPartition, EpochPartition]
    ) -> list[EpochEndOffset]:
        """The leader's answers. Raises TransportError."""
        request = OffsetForLeaderEpochRequest(self._broker_id, list(questions.values()))
        response: OffsetForLeaderEpochResponse = await channel.call(request, self._timeout)
        return response.partitions
