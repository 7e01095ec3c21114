"""Legal topic names (Kafka's `Topic.validate`), and the names of internal topics."""

import re
from collections.abc import Iterable

from barnabas_common.errors import InvalidTopicError

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
"""The topics that brokers create and write; clients may read them."""

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(topic: str) -> None:
    """Raise InvalidTopicError, with the reason, unless a topic may have this name."""
    if topic == "":
        raise InvalidTopicError("the empty string is not a topic name")
    if topic in (".", ".."):
        raise InvalidTopicError(f"{topic!r} is not a topic name")
    if len(topic) > MAX_LENGTH:
        raise InvalidTopicError(
            f"the topic name is {len(topic)} characters long, more than {MAX_LENGTH}: "
            f"{topic[:40]!r}..."
        )
    if _LEGAL.fullmatch(topic) is None:
        raise InvalidTopicError(
            f"the topic name {topic!r} has characters other than "
            "ASCII letters, digits, '.', '_' and '-'"
        )


def is_legal_topic_name(topic: str) -> bool:
    """Whether a topic may have this name."""
    try:
        validate_topic_name(topic)
    except InvalidTopicError:
        return False
    return True


def colliding_topics(topic: str, existing: Iterable[str]) -> list[str]:
    """The existing topics whose names differ from this one only in `.` and `_`.

    Kafka replaces `.` by `_` in the names of metrics, so their metrics would collide.
    """
    folded = topic.replace(".", "_")
    return sorted(
        other for other in existing if other != topic and other.replace(".", "_") == folded
    )
