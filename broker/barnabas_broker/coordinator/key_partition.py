"""Which partition of an internal topic holds a key, by Java's hash code of it, as in Kafka."""

from functools import lru_cache

_INT_MIN = -(2**31)
# Every request names its group: the hash of a busy one is computed once.
_KEYS_REMEMBERED = 10_000
_LONGEST_REMEMBERED = 255


def java_hash_code(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code


def partition_of_key(key: str, partition_count: int) -> int:
    """The partition of a group id or transactional id."""
    partition = _remembered if len(key) <= _LONGEST_REMEMBERED else _partition_of_key
    return partition(key, partition_count)


def _partition_of_key(key: str, partition_count: int) -> int:
    code = java_hash_code(key)
    return (0 if code == _INT_MIN else abs(code)) % partition_count


_remembered = lru_cache(_KEYS_REMEMBERED)(_partition_of_key)
