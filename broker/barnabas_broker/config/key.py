"""One configuration key: its name, type, default, meaning, and how its text is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1


class InvalidConfig(ValueError):
    """A key that does not exist, is not built here, or has a value of the wrong type."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """A typed key. `parse` turns text into a value and raises ValueError saying what it wants.

    A `dynamic` key may be changed while the broker runs; every reader reads it at use. The text of
    one that `is_list` is words with commas between them.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    dynamic: bool = False
    is_list: bool = False

    def read(self, text: str) -> T:
        """The value of `text`; raises InvalidConfig naming the key, the text and the rule."""
        try:
            return self.parse(text.strip())
        except ValueError as error:
            raise InvalidConfig(f"{self.name}={text!r}: {error}") from None


def boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("must be true or false")


def integer(low: int = -MAX_LONG - 1, high: int = MAX_LONG) -> Callable[[str], int]:
    """A whole number in [low, high]."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def optional_integer(low: int, high: int = MAX_LONG) -> Callable[[str], int | None]:
    """A whole number; the key is unset by default."""
    return integer(low, high)


def text(value: str) -> str:
    """Any text."""
    return value


def optional_text(value: str) -> str | None:
    """Any text; empty means unset."""
    return value or None


def one_of(*choices: str) -> Callable[[str], str]:
    """Exactly one of the words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return parse
