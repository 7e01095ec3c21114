"""DeleteTopics: write the deletion request to ZooKeeper, and wait until it has been carried out."""

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, TopicResult
from barnabas_common.runtime import Peer
from barnabas_controller.topics.admin_zk_client import AdminZkClient

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.zookeeper_call import current_store, kafka_errors
from barnabas_broker.config import keys


async def handle_delete_topics(
    parts: BrokerParts, request: DeleteTopicsRequest, peer: Peer
) -> DeleteTopicsResponse:
    results = [await _delete(parts, topic) for topic in request.topics]
    marked = [result.topic for result in results if not result.error_code]
    deleted = await parts.metadata_cache.wait_for(
        lambda: not any(parts.metadata_cache.contains(topic) for topic in marked),
        request.timeout_ms / 1000,
    )
    if not deleted:
        for result in results:
            if not result.error_code and parts.metadata_cache.contains(result.topic):
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
                result.error_message = "marked for deletion, but still there"
    return DeleteTopicsResponse(results)


async def _delete(parts: BrokerParts, topic: str) -> TopicResult:
    try:
        with kafka_errors():
            admin = AdminZkClient(current_store(parts), parts.runtime.randomness)
            await admin.delete_topic(topic, parts.config[keys.DELETE_TOPIC_ENABLE])
    except KafkaError as error:
        return TopicResult(topic, error.code, error.message)
    return TopicResult(topic)
