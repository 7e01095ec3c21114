"""Asks the coordinators of transactions on behalf of this broker's leaders (KIP-890)."""

from collections.abc import Mapping

from barnabas_common.errors import KafkaError, TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
    TransactionPartition,
)
from barnabas_common.runtime import Address, Channel, Network, Service
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.record_fields import fits
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.serve.verification import Unverified, no_coordinator


class VerificationChannel:
    """`topic` is `__transaction_state`; `listener` is the one on which brokers connect to each
    other."""

    def __init__(
        self, network: Network, cache: MetadataCache, topic: InternalTopic, listener: str
    ) -> None:
        self._network = network
        self._cache = cache
        self.topic = topic
        self._listener = listener
        self._channels: dict[Address, Channel] = {}

    async def close(self) -> None:
        """Ask nothing more."""
        for channel in self._channels.values():
            await channel.close()

    async def ask(
        self, unverified: Unverified, timeout: float
    ) -> Mapping[TopicPartition, ErrorCode]:
        """What the coordinator answers; the producer repeats its request if there is none."""
        if not fits(unverified.transactional_id):  # its coordinator would refuse it
            return dict.fromkeys(unverified.partitions, ErrorCode.INVALID_REQUEST)
        address = await self._coordinator_of(unverified.transactional_id)
        if address is None:
            return await no_coordinator(unverified, timeout)
        if address not in self._channels:
            self._channels[address] = self._network.connect(address, Service.COORDINATOR)
        try:
            response: AddPartitionsToTxnResponse = await self._channels[address].call(
                _request(unverified), timeout
            )
        except (TransportError, KafkaError):
            return dict.fromkeys(unverified.partitions, ErrorCode.NETWORK_EXCEPTION)
        return {
            TopicPartition(item.topic, item.partition): ErrorCode(item.error_code)
            for result in response.results
            for item in result.partitions
        }

    async def _coordinator_of(self, transactional_id: str) -> Address | None:
        count = await self.topic.learned_partition_count()
        if not count:
            return None
        partition = partition_of_key(transactional_id, count)
        state = self._cache.partition(TRANSACTION_STATE_TOPIC, partition)
        return None if state is None else self._cache.address_of(state.leader, self._listener)


def _request(unverified: Unverified) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        [
            AddPartitionsToTxnTransaction(
                unverified.transactional_id,
                unverified.producer_id,
                unverified.producer_epoch,
                verify_only=True,
                partitions=[TransactionPartition(*key) for key in unverified.partitions],
            )
        ]
    )
