"""Which answers to a change of topics have it sent again, and what a second answer then means."""

from types import SimpleNamespace
from typing import Any

import pytest
from barnabas.admin.topic_requests import delete_topics
from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.topics import DeleteTopicsRequest, TopicResult

PATIENCE = 5.0


class Answering:
    """A cluster whose broker gives these answers, one after another, to one topic's deletion."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.asked: list[list[str]] = []
        self.clock = SimpleNamespace(monotonic=lambda: 1.0 * len(self.asked))
        self.backoff = SimpleNamespace(seconds=lambda failures: 0.0)

    async def ask(self, request: DeleteTopicsRequest, _timeout: float) -> Any:
        self.asked.append(list(request.topics))
        code = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        return SimpleNamespace(topics=[TopicResult(name, code) for name in request.topics])


async def deleted(*codes: ErrorCode) -> int:
    """How often the broker was asked."""
    cluster: Any = Answering(*codes)
    await delete_topics(cluster, DeleteTopicsRequest(0, ["t"]), PATIENCE)
    return len(cluster.asked)


@pytest.fixture(autouse=True)
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def known(*_: object) -> None: ...

    monkeypatch.setattr("barnabas.admin.topic_requests.wait_until_known", known)


@pytest.mark.parametrize("first", [ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION])
async def test_without_a_controller_or_zookeeper_it_is_sent_again(first: ErrorCode) -> None:
    assert await deleted(first, first, ErrorCode.NONE) == 3
    with pytest.raises(KafkaError) as raised:
        await deleted(first)
    assert raised.value.code is first, "for PATIENCE seconds"


@pytest.mark.parametrize("between", [[], [ErrorCode.NOT_CONTROLLER]])
async def test_what_is_unknown_after_an_answer_without_zookeeper_was_deleted(
    between: list[ErrorCode],
) -> None:
    codes = [ErrorCode.NETWORK_EXCEPTION, *between, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await deleted(*codes) == len(codes)


@pytest.mark.parametrize("before", [[], [ErrorCode.NOT_CONTROLLER]])
async def test_otherwise_it_was_unknown(before: list[ErrorCode]) -> None:
    with pytest.raises(KafkaError) as raised:
        await deleted(*before, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
