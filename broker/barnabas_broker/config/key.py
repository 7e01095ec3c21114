"""A configuration key: its name, type, default and meaning, and the parsers of values."""

from collections.abc import Callable
from dataclasses import dataclass
from sys import float_info
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1
MAX_DOUBLE = float_info.max


class InvalidConfig(ValueError):
    """A key that does not exist or is not supported, or a value of the wrong type."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """A typed key. `parse` turns text into a value; its ValueError says what is allowed.

    A `dynamic` key may be changed while the broker runs. The text of a list (`is_list`) is words
    separated by commas.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    dynamic: bool = False
    is_list: bool = False

    def read(self, text: str) -> T:
        """The value of `text`; raises InvalidConfig with the key, the text and what is allowed."""
        if "\0" in text:
            raise InvalidConfig(f"{self.name}={text!r}: must not contain a null character")
        try:
            return self.parse(text.strip())
        except ValueError as error:
            raise InvalidConfig(f"{self.name}={text!r}: {error}") from None


def dynamic(
    name: str, parse: Callable[[str], T], default: T, doc: str, is_list: bool = False
) -> Key[T]:
    """A key that may be changed while the broker runs."""
    return Key(name, parse, default, doc, dynamic=True, is_list=is_list)


def boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("must be true or false")


def integer(low: int = -MAX_LONG - 1, high: int = MAX_LONG) -> Callable[[str], int]:
    """A whole number in [low, high]; spaces around it and a plus sign are allowed, as in Kafka."""

    def parse(text: str) -> int:
        if "_" in text or not text.isascii():
            raise ValueError("must be a whole number")
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


def number(low: float, high: float) -> Callable[[str], float]:
    """A number in [low, high]."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def words_of(*choices: str) -> Callable[[str], str]:
    """One or more of the words, separated by commas."""

    def parse(value: str) -> str:
        words = [word.strip() for word in value.split(",")]
        if not all(word in choices for word in words) or len(set(words)) < len(words):
            raise ValueError(f"must be a list of {', '.join(choices)}")
        return ",".join(words)

    return parse


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
