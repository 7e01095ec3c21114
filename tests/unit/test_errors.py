"""Kafka's codes and our exceptions: one class for each code, and the right retry flags."""

import pytest
from barnabas_common import errors
from barnabas_common.errors import BarnabasError, ErrorCode, KafkaError, kafka_errors

CLASSES = [
    found
    for found in vars(kafka_errors).values()
    if isinstance(found, type) and issubclass(found, KafkaError) and found is not KafkaError
]


def test_every_code_but_success_has_exactly_one_class() -> None:
    codes = [found.code for found in CLASSES]
    assert sorted(codes) == sorted(set(ErrorCode) - {ErrorCode.NONE})


@pytest.mark.parametrize("found", CLASSES)
def test_every_class_can_be_imported_from_errors(found: type[KafkaError]) -> None:
    assert getattr(errors, found.__name__) is found
    assert found.__name__.endswith("Error")


@pytest.mark.parametrize("found", CLASSES)
def test_message_starts_with_the_code(found: type[KafkaError]) -> None:
    assert str(found()) == found.code.name
    assert str(found("flights-3")) == f"{found.code.name}: flights-3"
    assert found("flights-3").message == "flights-3"
    assert found().retriable == found.code.retriable


def test_numbers_are_kafkas() -> None:
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(0) is ErrorCode.NONE
    assert ErrorCode(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode(74) is ErrorCode.FENCED_LEADER_EPOCH
    assert ErrorCode(100) is ErrorCode.UNKNOWN_TOPIC_ID
    assert sorted(ErrorCode) == list(range(-1, 121)), "Kafka leaves no gap"


def test_stale_metadata_is_always_worth_a_retry() -> None:
    for code in ErrorCode:
        assert code.retriable or not code.stale_metadata


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.STALE_CONTROLLER_EPOCH,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ],
)
def test_what_cannot_get_better_is_not_retried(code: ErrorCode) -> None:
    assert not code.retriable


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_what_passes_by_itself_is_retried(code: ErrorCode) -> None:
    assert code.retriable


def test_blame_is_split() -> None:
    assert issubclass(KafkaError, BarnabasError)
    assert not issubclass(errors.TransportError, KafkaError)
    assert not issubclass(errors.ClientError, KafkaError)
    assert issubclass(errors.NotApplied, errors.TransportError)
    assert issubclass(errors.MaybeApplied, errors.TransportError)
    assert issubclass(errors.InvalidArgumentError, ValueError)
