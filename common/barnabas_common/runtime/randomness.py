"""Randomness, as an interface: one source, so that a seed determines a whole run."""

import base64
import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Randomness(Protocol):
    """The random functions that code may use; `random.Random` and `SystemRandom` have them."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def randrange(self, stop: int, /) -> int:
        """An int in [0, stop)."""
        ...

    def choice(self, seq: Sequence[T], /) -> T:
        """One element of a non-empty sequence."""
        ...

    def randbytes(self, n: int, /) -> bytes:
        """`n` random bytes."""
        ...


def system_randomness() -> Randomness:
    """The operating system's own randomness."""
    return random.SystemRandom()


def new_uuid(randomness: Randomness) -> str:
    """A random UUID as Kafka writes it: 22 characters of URL-safe base64, not starting with `-`."""
    while True:
        raw = bytearray(randomness.randbytes(16))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        text = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
