"""A request that names very much costs time in proportion to its length: other clients wait."""

from types import SimpleNamespace
from typing import Any

import pytest
from barnabas_broker.api.describe_events import handle_describe_events
from barnabas_broker.api.incremental_alter_configs import handle_incremental_alter_configs
from barnabas_broker.config import Change, InvalidConfig, altered
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.configs import AlterConfigResource, IncrementalAlterConfigsRequest
from barnabas_common.messages.events import DescribeEventsRequest
from barnabas_common.runtime import Peer
from barnabas_common.topic_partition import TopicPartition

LENGTH = 2000
PEER = Peer("CLIENT", "1.2.3.4:5")


class Name(str):
    """A name that counts how often any name was compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


@pytest.fixture
def names() -> list[str]:
    Name.compared = 0
    return [Name(f"name-{number}") for number in range(LENGTH)]


def assert_few_were_compared() -> None:
    assert Name.compared < 20 * LENGTH


def test_changes_of_settings(names: list[str]) -> None:
    with pytest.raises(InvalidConfig, match="name-0"):
        altered({}, [Change(name, "set") for name in names], {}, {})
    assert_few_were_compared()


async def test_resources_whose_settings_change(names: list[str]) -> None:
    parts: Any = SimpleNamespace(store=lambda: None)
    resources = [AlterConfigResource("topic", name) for name in (*names, names[0])]
    answer = await handle_incremental_alter_configs(
        parts, IncrementalAlterConfigsRequest(resources=resources), PEER
    )
    codes = [result.error_code for result in answer.resources]
    assert codes[0] == codes[-1] == ErrorCode.INVALID_REQUEST
    assert set(codes[1:-1]) == {ErrorCode.NETWORK_EXCEPTION}
    assert_few_were_compared()


async def test_topics_whose_events_are_wanted(names: list[str]) -> None:
    log = EventLog(1)
    for name in ("other", "name-7"):
        for _ in range(50):
            log.record(EventKind.LEADER_ELECTED, "why", TopicPartition(name, 0))
    log.record(EventKind.TOPIC_DELETED, "why", topic="other")
    log.record(EventKind.BROKER_STOPPING, "why")
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    parts: Any = SimpleNamespace(events=log, broker_id=1, runtime=SimpleNamespace(clock=clock))
    request = DescribeEventsRequest(life=log.life, max_events=LENGTH, topics=names)
    answer = await handle_describe_events(parts, request, PEER)
    assert len(answer.events) == 51
    assert_few_were_compared()
