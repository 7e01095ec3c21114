"""Checks of a caller's options; each error names the option and its legal values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from math import isnan
from typing import Any, TypeVar

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.topic_partition import TopicPartition

DEFAULT_BOOTSTRAP = "localhost:9092"

_INT, _LONG = 2**31 - 1, 2**63 - 1
# Kafka's options of type LONG; the others are of type INT, and requests carry them as such.
_LONGS = (
    "buffer_memory",
    "linger_ms",
    "max_block_ms",
    "metadata_max_age_ms",
    "retry_backoff_max_ms",
    "retry_backoff_ms",
)

T = TypeVar("T")


def config_of(cls: type[T], options: Mapping[str, Any], minima: Mapping[str, int]) -> T:
    """The config dataclass `cls` of these options, each int at least its minimum.

    Raises `InvalidArgumentError` naming the invalid option; for an unknown one, the nearest name.
    """
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidArgumentError(f"there is no option {name!r}{hint}")
    config = cls(**options)
    for name, minimum in minima.items():
        check_int(name, getattr(config, name), minimum, _LONG if name in _LONGS else _INT)
    return config


def check_int(name: str, value: object, minimum: int, maximum: int = _LONG) -> None:
    """Raise `InvalidArgumentError` unless `value` is an int (not a bool) within the bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgumentError(f"{name} must be an int, not {value!r}")
    if not minimum <= value <= maximum:
        at_least = value < minimum and maximum >= _INT
        bounds = f"at least {minimum}" if at_least else f"in {minimum}..{maximum}"
        raise InvalidArgumentError(f"{name} must be {bounds}, not {value}")


def checked_names(what: str, values: Iterable[str]) -> list[str]:
    """Several names. A str would be taken for one name a letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"{what} are several names: [{values!r}], not {values!r}")
    found = list(values)
    for value in found:
        check_str(f"a name of {what}", value)
    return found


def checked_brokers(what: str, values: Iterable[int]) -> list[int]:
    """The ids of several brokers, as a request can carry them; raises `InvalidArgumentError`."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"{what} are several broker ids, not {values!r}")
    found = list(values)
    for value in found:
        check_int("a broker id", value, -_INT - 1, _INT)
    return found


def checked_partition(value: object) -> TopicPartition:
    """A partition that may be given as a plain pair; raises `InvalidArgumentError`."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidArgumentError(f"a partition is (topic, number), not {value!r}")
    found = TopicPartition(*value)
    check_topic(found.topic)
    check_int(f"partition of {found.topic!r}", found.partition, 0, 2**31 - 1)
    return found


def checked_partitions(values: Iterable[object]) -> list[TopicPartition]:
    """Several partitions; raises `InvalidArgumentError`."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"partitions are several (topic, number), not {values!r}")
    return [checked_partition(value) for value in values]


def checked_timestamps(values: Mapping[Any, int], minimum: int) -> dict[TopicPartition, int]:
    """A timestamp for each of several partitions; raises `InvalidArgumentError`."""
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(f"timestamps are {{(topic, number): ms}}, not {values!r}")
    found = {checked_partition(tp): timestamp for tp, timestamp in values.items()}
    for tp, timestamp in found.items():
        check_int(f"the timestamp of {tp}", timestamp, minimum)
    return found


def check_timeout(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless a time limit in ms is a number or None (no limit)."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value):
        raise InvalidArgumentError(f"{name} must be a number of ms or None, not {value!r}")


def check_seconds(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless it is a time, 0 s or longer."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # nan
        raise InvalidArgumentError(f"{name} must be a number of seconds, 0 or more, not {value!r}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise `InvalidArgumentError` unless `value` is one of `choices`."""
    # `True == 1` must not pass for acks=1.
    if isinstance(value, bool) != any(isinstance(choice, bool) for choice in choices):
        raise InvalidArgumentError(f"{name} must be one of {_listed(choices)}, not {value!r}")
    if value not in choices:
        raise InvalidArgumentError(f"{name} must be one of {_listed(choices)}, not {value!r}")


def check_bool(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless `value` is a bool."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be True or False, not {value!r}")


def check_callable(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless `value` can be called."""
    if not callable(value):
        raise InvalidArgumentError(f"{name} must be a function, not {value!r}")


def check_str(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless `value` is a str that a request can carry."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a str, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{name} is not Unicode: {error}") from None


def check_topic(value: object) -> None:
    """Raise `InvalidArgumentError` unless a request can carry `value` as the name of a topic."""
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"a topic is a non-empty str, not {value!r}")
    check_str(f"the topic name {value!r}", value)


def _listed(choices: Sequence[object]) -> str:
    return ", ".join(repr(choice) for choice in choices)
