"""The offset map of a pass: of each key the offset of its last record (Kafka's `SkimpyOffsetMap`).

A key is kept as its MD5, so an entry takes 24 bytes whatever the key's size. Two keys of equal MD5
would count as one; Kafka accepts that too. The memory is allocated once, and the map is full at
nine tenths of it: probing becomes slow beyond.
"""

from array import array
from hashlib import md5

ENTRY_BYTES = 24
LOAD_FACTOR = 0.9
_DIGEST_BYTES = 16
_LARGEST_PRIME_GAP = 400
"""Of the numbers below 2^31: so many slots at most are lost by taking a prime number of them."""
NOT_FOUND = -1


def slots_within(memory_bytes: int, most_keys: int) -> int:
    """The slots that fit into the memory, but no more than `most_keys` keys need."""
    needed = int(max(most_keys, 0) / LOAD_FACTOR) + _LARGEST_PRIME_GAP
    return max(min(memory_bytes // ENTRY_BYTES, needed), 3)


class OffsetMap:
    """A hash table with open addressing, of at most so many slots (at least 3).

    `latest_offset` is the last offset that the map accounts for, whether or not it had a key.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots = _prime_up_to(slots)  # so that a step of any width visits all slots
        self.capacity = max(int(slots * LOAD_FACTOR), 1)
        self._digests = bytearray(slots * _DIGEST_BYTES)
        self._offsets = array("q", [0]) * slots  # an offset plus one; 0: an empty slot
        self._count = 0
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= self.capacity

    @property
    def memory_bytes(self) -> int:
        return self._slots * ENTRY_BYTES

    def put(self, key: bytes, offset: int) -> None:
        """Set the offset of a key. The map must not be full."""
        digest = md5(key, usedforsecurity=False).digest()
        slot = self._slot_of(digest)
        if self._offsets[slot] == 0:
            self._digests[slot * _DIGEST_BYTES : (slot + 1) * _DIGEST_BYTES] = digest
            self._count += 1
        self._offsets[slot] = offset + 1

    def get(self, key: bytes) -> int:
        """The last offset of a key, NOT_FOUND without one."""
        slot = self._slot_of(md5(key, usedforsecurity=False).digest())
        return self._offsets[slot] - 1

    def account_for(self, offset: int) -> None:
        """Everything up to `offset` has been read."""
        self.latest_offset = max(self.latest_offset, offset)

    def _slot_of(self, digest: bytes) -> int:
        """The slot that has the digest, or the empty one where it belongs."""
        number = int.from_bytes(digest, "big")
        slots, digests, offsets = self._slots, self._digests, self._offsets
        slot = number % slots
        step = 0
        while offsets[slot]:
            start = slot * _DIGEST_BYTES
            if digests[start : start + _DIGEST_BYTES] == digest:
                break
            step = step or 1 + (number >> 64) % (slots - 1)
            slot = (slot + step) % slots
        return slot


def _prime_up_to(number: int) -> int:
    """The largest prime that is not above `number`, which must be at least 2."""
    while any(number % factor == 0 for factor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
