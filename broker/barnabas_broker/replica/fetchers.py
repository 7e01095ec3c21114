"""All the leaders this broker follows: one `LeaderFetcher` each, and where to reach them."""

from collections.abc import Iterable

from barnabas.messages.control import BrokerEndpoint
from barnabas.runtime import Address
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.fetcher import LeaderFetcher
from barnabas_broker.replica.fetcher_context import FetcherContext
from barnabas_broker.replica.partition import Partition


class Fetchers:
    """Moves partitions from one leader to the next as the controller says.

    Addresses are those of the inter-broker listener, learned from LeaderAndIsr and UpdateMetadata,
    the latest word being the right one. A leader without an address is waited for. A loop without
    partitions sleeps, its connection kept for the next ones: there is at most one per broker.
    """

    def __init__(self, context: FetcherContext) -> None:
        self._addresses: dict[int, Address] = {}
        self._context = context
        self._by_leader: dict[int, LeaderFetcher] = {}
        self._leader_of: dict[TopicPartition, int] = {}

    def learn(self, endpoints: Iterable[BrokerEndpoint], listener: str) -> None:
        """Take note of addresses."""
        for endpoint in endpoints:
            if endpoint.listener == listener:
                self._addresses[endpoint.broker_id] = Address(endpoint.host, endpoint.port)

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader from now on."""
        key, leader_id = partition.topic_partition, partition.leader_id
        self.stop([key])
        if leader_id < 0:
            return
        fetcher = self._by_leader.get(leader_id)
        if fetcher is None:
            fetcher = self._by_leader[leader_id] = LeaderFetcher(
                leader_id, self._addresses.get, self._context
            )
        self._leader_of[key] = leader_id
        fetcher.add(partition)

    def stop(self, keys: Iterable[TopicPartition]) -> None:
        """No longer fetch these partitions."""
        for key in keys:
            leader_id = self._leader_of.pop(key, None)
            if leader_id is not None:
                self._by_leader[leader_id].remove(key)

    async def close(self) -> None:
        """End all loops."""
        for fetcher in self._by_leader.values():
            await fetcher.close()
        self._by_leader.clear()
        self._leader_of.clear()
