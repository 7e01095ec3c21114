"""The hash that decides which partition a key belongs to: murmur2, exactly as in Kafka's clients.

Producers in all languages must use the same hash, or the records of one key would be in two
partitions. The producer computes it for each record with a key. A hash takes a microsecond or more
in Python, and keys repeat, so the latest ones are cached.
"""

from functools import lru_cache
from struct import Struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_32_BITS = 0xFFFFFFFF

_CACHED_KEYS = 16_384
_LONGEST_CACHED_KEY = 64
"""In bytes. With the number of keys it limits the cache to a few megabytes."""

_WORD = Struct("<I")


def murmur2(data: bytes) -> int:
    """The 32-bit hash of `data` as a signed number, as Java sees it (`Utils.murmur2`)."""
    length = len(data)
    whole = length & ~3
    h = _SEED ^ length
    for (k,) in _WORD.iter_unpack(data[:whole]):
        k = k * _MULTIPLIER & _32_BITS
        k = (k ^ k >> _SHIFT) * _MULTIPLIER
        h = (h * _MULTIPLIER ^ k) & _32_BITS
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _32_BITS
    h = (h ^ h >> 13) * _MULTIPLIER & _32_BITS
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition of `key` among `partitions`, whether or not it has a leader now."""
    if len(key) > _LONGEST_CACHED_KEY:
        return _positive_hash(key) % partitions
    return _cached_hash(key) % partitions


def _positive_hash(key: bytes) -> int:
    """The hash with its sign bit cleared, as `Utils.toPositive` does."""
    return murmur2(key) & 0x7FFFFFFF


_cached_hash = lru_cache(maxsize=_CACHED_KEYS)(_positive_hash)
