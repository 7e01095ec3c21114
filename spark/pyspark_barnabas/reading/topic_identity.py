"""Whether a name still means the topic that a query was planned for (KIP-516)."""

import asyncio

from barnabas import Consumer

# Brokers learn of a new topic one by one: the first answer may be about the old one.
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2


async def has_id(consumer: Consumer, topic: str, topic_id: str) -> str:
    """Return "" if the topic has this id ("" is any), or why it has not."""
    reason = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(_PAUSE_SECONDS)
        info = (await consumer.list_topics([topic])).get(topic)
        if info is None:
            return f"topic {topic!r} was deleted"
        if topic_id in ("", info.topic_id):
            return ""
        reason = (
            f"topic {topic!r} was deleted and created again: its id was {topic_id}"
            f" and is {info.topic_id}"
        )
    return reason
