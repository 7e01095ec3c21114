"""The leaders that this broker follows: one `ReplicaFetcher` and one address for each."""

from collections.abc import Iterable

from barnabas_common.messages.control import BrokerEndpoint
from barnabas_common.runtime import Address
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.replica_fetcher import ReplicaFetcher
from barnabas_broker.replica.partition.partition import Partition


class ReplicaFetcherManager:
    """Moves partitions from one leader to the next as the controller requests.

    Addresses are those of the inter-broker listener, from the latest LeaderAndIsr or
    UpdateMetadata. The fetcher of a leader without an address waits for one. A fetcher without
    partitions waits too, and keeps its connection: there is at most one per broker.
    """

    def __init__(self, context: FetcherContext) -> None:
        self._addresses: dict[int, Address] = {}
        self._context = context
        self._by_leader: dict[int, ReplicaFetcher] = {}
        self._leader_of: dict[TopicPartition, int] = {}

    def learn(self, endpoints: Iterable[BrokerEndpoint], listener: str) -> None:
        """Store the addresses of a listener."""
        for endpoint in endpoints:
            if endpoint.listener == listener:
                self._addresses[endpoint.broker_id] = Address(endpoint.host, endpoint.port)

    def follow(self, partition: Partition) -> None:
        """Start to fetch from the partition's leader."""
        key, leader_id = partition.topic_partition, partition.leader_id
        self.stop([key])
        if leader_id < 0:
            return
        fetcher = self._by_leader.get(leader_id)
        if fetcher is None:
            fetcher = self._by_leader[leader_id] = ReplicaFetcher(
                leader_id, self._addresses.get, self._context
            )
        self._leader_of[key] = leader_id
        fetcher.add(partition)

    def stop(self, keys: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions."""
        for key in keys:
            leader_id = self._leader_of.pop(key, None)
            if leader_id is not None:
                self._by_leader[leader_id].remove(key)

    def leave(self, key: TopicPartition) -> None:
        """Stop fetching a partition that this broker no longer replicates; tell its leader so."""
        leader_id = self._leader_of.pop(key, None)
        if leader_id is not None:
            self._by_leader[leader_id].leave(key)

    async def close(self) -> None:
        """Stop all fetchers."""
        for fetcher in self._by_leader.values():
            await fetcher.close()
        self._by_leader.clear()
        self._leader_of.clear()
