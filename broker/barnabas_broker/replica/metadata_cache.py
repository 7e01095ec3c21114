"""The metadata cache: the brokers and leaders that the controller last sent by UpdateMetadata.

The replica manager has already fenced the requests. The cache may be out of date and differ from
another broker's; leader epochs show which is newer.
"""

import asyncio
from collections.abc import Callable

from barnabas_common.messages.control import (
    BrokerEndpoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
)
from barnabas_common.messages.sentinels import LEADER_DURING_DELETE
from barnabas_common.runtime import Address
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.topic_identity import same_topic

NO_CONTROLLER = -1


class MetadataCache:
    """Starts empty; every update replaces the brokers and the partitions it names.

    A broker may miss that a topic is deleted, and that another one is created under its name: while
    its session is over, or when the controller dies before it can tell. So an update that names all
    topics removes the others, and a partition with another topic id removes those of the old topic.
    """

    def __init__(self) -> None:
        self.controller_id = NO_CONTROLLER
        self._brokers: dict[int, dict[str, BrokerEndpoint]] = {}
        self._suspects: dict[int, int] = {}
        self._leaving: frozenset[int] = frozenset()
        self._topics: dict[str, dict[int, UpdateMetadataPartition]] = {}
        self._topic_ids: dict[str, str] = {}
        self._newer: dict[TopicPartition, UpdateMetadataPartition] = {}
        self._updated: asyncio.Future[None] | None = None

    def update(self, request: UpdateMetadataRequest) -> None:
        """Apply a request and wake the tasks that wait for a change."""
        self.controller_id = request.controller_id
        brokers: dict[int, dict[str, BrokerEndpoint]] = {}
        for endpoint in request.live_brokers:
            brokers.setdefault(endpoint.broker_id, {})[endpoint.listener] = endpoint
        self._brokers = brokers
        self._suspects = {b.broker_id: b.broker_epoch for b in request.suspected_brokers}
        self._leaving = frozenset(self._suspects).union(request.shutting_down_brokers)
        for key in [*self.deleted_by(request), *self.missed_by(request)]:
            self._remove(key)
        unknown = [p for p in request.partitions_without_state if not self._knows(p)]
        for state in (*request.partitions, *unknown):
            if state.leader != LEADER_DURING_DELETE:
                if self._topic_ids.get(state.topic) != state.topic_id:
                    self._forget(state.topic)
                self._keep_newer(state)
                self._topics.setdefault(state.topic, {})[state.partition] = state
                self._topic_ids[state.topic] = state.topic_id
        if self._updated is not None and not self._updated.done():
            self._updated.set_result(None)
        self._updated = None

    def deleted_by(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """The partitions that are being deleted, by a request that is not applied yet.

        A request about a deleted topic may come late, when another topic has its name.
        """
        return [
            TopicPartition(state.topic, state.partition)
            for state in request.partitions
            if state.leader == LEADER_DURING_DELETE
            and same_topic(self._topic_ids.get(state.topic), state.topic_id)
        ]

    def replaced_by(self, request: UpdateMetadataRequest) -> dict[str, list[TopicPartition]]:
        """The partitions of topics whose name another topic has by this request, by its id."""
        replaced: dict[str, list[TopicPartition]] = {}
        named = (*request.partitions, *request.partitions_without_state)
        topic_ids = {state.topic: state.topic_id for state in named}
        for topic, topic_id in topic_ids.items():
            if not same_topic(self._topic_ids.get(topic), topic_id):
                known = sorted(self._topics[topic])
                replaced[topic_id] = [TopicPartition(topic, number) for number in known]
        return replaced

    def missed_by(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """The partitions of topics that do not exist by a request that names all, sorted."""
        if not request.names_all_topics:
            return []
        named = {state.topic for state in request.partitions}.union(request.other_topics)
        gone = sorted(self._topics.keys() - named)
        return [TopicPartition(topic, p) for topic in gone for p in sorted(self._topics[topic])]

    def _knows(self, state: UpdateMetadataPartition) -> bool:
        """Whether the partition is known, of the topic with this id."""
        known = self.partition(state.topic, state.partition)
        return known is not None and known.topic_id == state.topic_id

    def _keep_newer(self, state: UpdateMetadataPartition) -> None:
        """Keep the present state if it is newer than the next one: ZooKeeper was set back."""
        key = TopicPartition(state.topic, state.partition)
        newest = self.newest_state(key, state.topic_id)
        if newest is not None and newest.leader_epoch > state.leader_epoch:
            self._newer[key] = newest
        else:
            self._newer.pop(key, None)

    def _remove(self, key: TopicPartition) -> None:
        self._newer.pop(key, None)
        partitions = self._topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            self._forget(key.topic)

    def _forget(self, topic: str) -> None:
        for partition in self._topics.pop(topic, {}):
            self._newer.pop(TopicPartition(topic, partition), None)
        self._topic_ids.pop(topic, None)

    # ---- brokers

    def broker_ids(self) -> list[int]:
        """The registered brokers, sorted."""
        return sorted(self._brokers)

    @property
    def suspects(self) -> dict[int, int]:
        """The broker epochs of the suspected brokers, by id."""
        return self._suspects

    def alive(self) -> list[int]:
        """The registered brokers that are neither suspected nor shutting down, sorted."""
        return sorted(self._brokers.keys() - self._leaving)

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is registered, not suspected and not shutting down."""
        return broker_id in self._brokers and broker_id not in self._leaving

    def endpoints(self, listener: str) -> list[BrokerEndpoint]:
        """The address of each registered broker on one listener, sorted by broker id."""
        return [
            endpoints[listener]
            for _, endpoints in sorted(self._brokers.items())
            if listener in endpoints
        ]

    def address_of(self, broker_id: int, listener: str) -> Address | None:
        """The address of a registered broker on one listener; None if it has none."""
        endpoint = self._brokers.get(broker_id, {}).get(listener)
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    # ---- topics

    def topics(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._topics)

    def contains(self, topic: str) -> bool:
        return topic in self._topics

    def topic_id(self, topic: str) -> str:
        """The id of a known topic. Raises KeyError if the topic is unknown."""
        return self._topic_ids[topic]

    def partitions(self, topic: str) -> list[UpdateMetadataPartition]:
        """The states of a topic's partitions, sorted by number; empty if the topic is unknown."""
        return [state for _, state in sorted(self._topics.get(topic, {}).items())]

    def partition(self, topic: str, partition: int) -> UpdateMetadataPartition | None:
        """The state of a partition; None if it is unknown."""
        return self._topics.get(topic, {}).get(partition)

    def newest_state(self, key: TopicPartition, topic_id: str) -> UpdateMetadataPartition | None:
        """The state with the highest leader epoch that was ever sent, of the topic with this id.

        It is not the present one if ZooKeeper has been set back since.
        """
        found = self._newer.get(key) or self.partition(*key)
        return found if found is not None and found.topic_id == topic_id else None

    # ---- waiting

    async def wait_for(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Wait until `predicate` holds, checked after each update; False after `timeout` s."""
        if predicate():
            return True
        try:
            async with asyncio.timeout(timeout):
                while not predicate():
                    await asyncio.shield(self._next_update())
        except TimeoutError:
            return predicate()
        return True

    def _next_update(self) -> asyncio.Future[None]:
        if self._updated is None:
            self._updated = asyncio.get_running_loop().create_future()
        return self._updated
