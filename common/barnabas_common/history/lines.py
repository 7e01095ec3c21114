"""An operation as one line of JSON, and back.

    {"t":12,"p":"producer-1","i":1,"n":7,"type":"ok","f":"send","partition":"orders-0","value":"…",
     "offset":41}

A field that has its default is left out.
"""

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, NoReturn

from barnabas_common.history.operations import KINDS, Operation, Records, Stage

_HEAD = {"time": "t", "client": "p", "incarnation": "i", "number": "n", "stage": "type"}
_OWN = {
    kind: [
        (field.name, None if field.default is MISSING else field.default)
        for field in fields(kind)
        if field.name not in _HEAD
    ]
    for kind in KINDS.values()
}
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class MalformedHistoryError(ValueError):
    """A history that cannot be judged; the message names the place and what is wrong."""


def to_line(operation: Operation) -> str:
    """Encode an operation, without a newline."""
    found: dict[str, Any] = {
        "t": operation.time,
        "p": operation.client,
        "i": operation.incarnation,
        "n": operation.number,
        "type": operation.stage.value,
        "f": operation.function,
    }
    for name, default in _OWN[type(operation)]:
        value = getattr(operation, name)
        if value != default:
            found[name] = value
    return _encode(found)


def from_line(line: str | bytes) -> Operation:
    """Decode a line. Raises `MalformedHistoryError` saying what is wrong with it."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise MalformedHistoryError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        _refuse(f"not an object: {found!r}")
    kind = KINDS.get(found.pop("f", ""))
    if kind is None:
        _refuse(f"unknown f: an operation is one of {', '.join(KINDS)}")
    given: dict[str, Any] = {}
    for name, key in _HEAD.items():
        if key not in found:
            _refuse(f"{kind.function} without {key!r}")
        given[name] = found.pop(key)
    given |= found
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is None or name not in kind.__dataclass_fields__:
            _refuse(f"{kind.function} has no field {name!r}")
        try:
            given[name] = check(value)
        except (TypeError, ValueError, AttributeError):
            _refuse(f"{name} of {kind.function} must not be {value!r}")
    try:
        return kind(**given)
    except TypeError as error:
        missing = str(error).partition(": ")[2] or str(error)
        _refuse(f"{kind.function} without {missing}")


def _refuse(why: str) -> NoReturn:
    raise MalformedHistoryError(why)


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in value]


def _numbers(value: Any) -> list[int]:
    return [_number(each) for each in value]


def _offsets(value: Any) -> dict[str, int]:
    return {partition: _number(offset) for partition, offset in value.items()}


def _bounds(value: Any) -> dict[str, tuple[int, int]]:
    return {partition: (_number(begin), _number(end)) for partition, (begin, end) in value.items()}


def _records(value: Any) -> Records:
    return {
        partition: [(_number(offset), _text(label)) for offset, label in records]
        for partition, records in value.items()
    }


_CHECKS: dict[str, Callable[[Any], object]] = {
    "time": _number,
    "client": _text,
    "incarnation": _number,
    "number": _number,
    "stage": Stage,
    "error": _text,
    "partition": _text,
    "value": _text,
    "offset": _number,
    "transaction": _text,
    "records": _records,
    "group": _text,
    "read_committed": _flag,
    "partitions": _texts,
    "generation": _number,
    "lost": _flag,
    "offsets": _offsets,
    "commit": _flag,
    "epoch": _number,
    "bounds": _bounds,
    "fault": _text,
    "target": _text,
    "leader": _number,
    "leader_epoch": _number,
    "in_sync_replicas": _numbers,
}
