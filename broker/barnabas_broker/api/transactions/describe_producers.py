"""DescribeProducers: what the leaders of partitions know of the producers (KIP-664)."""

from barnabas_common.errors import KafkaError
from barnabas_common.messages.transactions import (
    ActiveProducer,
    DescribedProducers,
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_partition import TopicPartition, named_once

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.log.producers.producer_state import unpack


async def handle_describe_producers(
    parts: BrokerParts, request: DescribeProducersRequest, _peer: Peer
) -> DescribeProducersResponse:
    asked = named_once(request.partitions)
    return DescribeProducersResponse(
        [_describe(parts, TopicPartition(item.topic, item.partition)) for item in asked]
    )


def _describe(parts: BrokerParts, key: TopicPartition) -> DescribedProducers:
    try:
        log = parts.replica_manager.partitions.hosted(key).lead().log
    except KafkaError as error:
        return DescribedProducers(*key, error.code, error.message)
    return DescribedProducers(
        *key,
        active_producers=[_producer(entry) for _, entry in sorted(log.producers.entries.items())],
    )


def _producer(entry: bytes) -> ActiveProducer:
    state = unpack(entry)
    return ActiveProducer(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.timestamp,
        state.coordinator_epoch,
        state.current_txn_first_offset,
    )
