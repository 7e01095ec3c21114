"""Incremental changes to the overrides of a topic or a broker (KIP-339)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas_broker.config.key import InvalidConfig, Key


class InvalidChange(ValueError):
    """A change that is invalid for any value: Kafka's INVALID_REQUEST."""


@dataclass(frozen=True)
class Change:
    """`operation` is "set", "delete", and for lists "append" or "subtract"."""

    name: str
    operation: str
    value: str = ""


def altered(
    present: Mapping[str, str],
    changes: Sequence[Change],
    known: Mapping[str, Key[Any]],
    in_force: Mapping[str, str],
) -> dict[str, str]:
    """The overrides after the changes; the values are not checked.

    For a list without an override, append and subtract start from the value `in_force`. Raises
    InvalidChange, and InvalidConfig for a key that is neither known nor present.
    """
    if not changes:
        raise InvalidChange("the request has no changes")
    named = Counter(change.name for change in changes)
    twice = sorted(name for name, times in named.items() if times > 1)
    if twice:
        raise InvalidChange(f"changed twice in one request: {', '.join(twice)}")
    overrides = dict(present)
    for change in changes:
        if change.name not in known and not (
            change.operation == "delete" and change.name in present
        ):
            raise InvalidConfig(f"unknown config {change.name!r}")
        if change.operation == "set":
            overrides[change.name] = change.value
        elif change.operation == "delete":
            overrides.pop(change.name, None)
        else:
            before = present.get(change.name, in_force.get(change.name, ""))
            overrides[change.name] = _list_after(change, known[change.name], before)
    return overrides


def _list_after(change: Change, key: Key[Any], before: str) -> str:
    if change.operation not in ("append", "subtract"):
        raise InvalidChange(f"{change.name}: no such operation: {change.operation!r}")
    if not key.is_list:
        raise InvalidChange(f"{change.name} is not a list: it can only be set or deleted")
    words, given = _words(before), dict.fromkeys(_words(change.value))
    if change.operation == "append":
        return ",".join(dict.fromkeys([*words, *given]))
    return ",".join(word for word in words if word not in given)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
