"""Dataclasses of plain values from JSON; what does not fit is named."""

from dataclasses import MISSING, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def from_plain(cls: type[T], plain: Any) -> T:
    """Make a dataclass of a JSON object. Raises ValueError for anything that does not fit."""
    what = cls.__name__.lower()
    if not isinstance(plain, dict):
        raise ValueError(f"{what}: no JSON object: {plain!r}")
    wanted: dict[str, Any] = {field.name: field.type for field in fields(cls)}
    unknown = [name for name in plain if name not in wanted]
    if unknown:
        raise ValueError(f"{what}: unknown: {', '.join(map(repr, unknown))}")
    missing = [f.name for f in fields(cls) if f.default is MISSING and f.name not in plain]
    if missing:
        raise ValueError(f"{what}: missing: {', '.join(missing)}")
    return cls(**{name: _fitting(wanted[name], name, value) for name, value in plain.items()})


def _fitting(wanted: Any, name: str, value: Any) -> Any:
    if issubclass(wanted, Enum):
        if value not in [str(member.value) for member in wanted]:
            raise ValueError(f"unknown {name}: {value!r}")
        return wanted(value)
    is_number = wanted is float and type(value) is int
    if type(value) is not wanted and not is_number:
        raise ValueError(f"{name} is no {wanted.__name__}: {value!r}")
    return value
