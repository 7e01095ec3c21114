"""The topics of a subscription: those named, or those whose names match a pattern."""

import re
from collections.abc import Iterable

from barnabas_common.errors import InvalidArgumentError

from barnabas.cluster import ClusterMetadata
from barnabas.cluster.options import check_topic, checked_names


def checked_subscription(
    topics: str | Iterable[str] | re.Pattern[str],
) -> tuple[str, ...] | re.Pattern[str]:
    """What the caller gave, without duplicates; refuses what is no topic."""
    if isinstance(topics, re.Pattern):
        return topics
    names = checked_names("topics", [topics] if isinstance(topics, str) else topics)
    for name in names:
        check_topic(name)
    if not names:
        raise InvalidArgumentError("name at least one topic; unsubscribe() ends a subscription")
    return tuple(dict.fromkeys(names))


def subscribed_topics(
    subscription: tuple[str, ...] | re.Pattern[str], metadata: ClusterMetadata
) -> tuple[str, ...]:
    """The names. A pattern must match the whole name, and never matches an internal topic."""
    if not isinstance(subscription, re.Pattern):
        return subscription
    return tuple(
        sorted(
            name
            for name, info in metadata.topics.items()
            if not info.is_internal and subscription.fullmatch(name)
        )
    )
