"""DeleteTopics: write the deletion request to ZooKeeper, and wait until it has been carried out.

Kafka answers once its own metadata no longer has the topic. Its name is still taken then, until the
controller has deleted the znodes. Here the answer waits for that too, unless the deletion must wait
for a broker that does not run.
"""

import asyncio

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, TopicResult
from barnabas_common.runtime import Peer
from barnabas_controller.store import znodes
from barnabas_controller.topics.admin_zk_client import AdminZkClient

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.zookeeper_call import current_store, kafka_errors
from barnabas_broker.config import keys

# A watch ends with its session, so the znode is looked at again after this time.
_LOOK_AGAIN_SECONDS = 1.0


async def handle_delete_topics(
    parts: BrokerParts, request: DeleteTopicsRequest, peer: Peer
) -> DeleteTopicsResponse:
    results = [await _delete(parts, topic) for topic in dict.fromkeys(request.topics)]
    marked = [result for result in results if not result.error_code]
    try:
        async with asyncio.timeout(request.timeout_ms / 1000):
            await asyncio.gather(*(_until_deleted(parts, result) for result in marked))
    except TimeoutError:
        for result in marked:
            if result.error_code == ErrorCode.REQUEST_TIMED_OUT:
                result.error_message = (
                    f"topic {result.topic!r} is marked for deletion, but after"
                    f" {request.timeout_ms / 1000:g} s it is not deleted yet"
                )
    return DeleteTopicsResponse(results)


async def _delete(parts: BrokerParts, topic: str) -> TopicResult:
    try:
        with kafka_errors():
            admin = AdminZkClient(current_store(parts), parts.runtime.randomness)
            await admin.delete_topic(topic, parts.config[keys.DELETE_TOPIC_ENABLE])
    except KafkaError as error:
        return TopicResult(topic, error.code, error.message)
    return TopicResult(topic)


async def _until_deleted(parts: BrokerParts, result: TopicResult) -> None:
    """Wait until the topic can be created again: the controller deletes its request last.

    Returns early if a broker with a replica does not run, because that may take any time.
    """
    result.error_code = ErrorCode.REQUEST_TIMED_OUT  # unless this function returns in time
    path = znodes.delete_topic_path(result.topic)
    cache = parts.metadata_cache
    while not await cache.wait_for(lambda: not cache.contains(result.topic), _LOOK_AGAIN_SECONDS):
        pass
    changed = asyncio.Event()
    while True:
        changed.clear()
        try:
            with kafka_errors():
                if await current_store(parts).exists(path, lambda _: changed.set()) is None:
                    break
                result.waits_for = await _replicas_down(parts, result.topic)
                if result.waits_for:
                    break
        except KafkaError:
            pass  # the session may be replaced in time
        try:
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await changed.wait()
        except TimeoutError:
            pass
    result.error_code = ErrorCode.NONE


async def _replicas_down(parts: BrokerParts, topic: str) -> list[int]:
    """The brokers with a replica of the topic that are not registered."""
    store = current_store(parts)
    node, registered = await store.topic(topic), await store.broker_ids()
    if node is None:
        return []
    replicas = {b for assignment in node.partitions.values() for b in assignment.replicas}
    return sorted(replicas - set(registered))
