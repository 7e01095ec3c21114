"""Which partition of an internal topic holds a key, by Java's hash code of it, as in Kafka."""

from functools import lru_cache

_INT_MIN = -(2**31)
# Every request names its group: the hash of a busy one is computed once.
_KEYS_REMEMBERED = 10_000


def java_hash_code(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code


@lru_cache(_KEYS_REMEMBERED)
def partition_of_key(key: str, partition_count: int) -> int:
    """The partition of a group id or transactional id."""
    code = java_hash_code(key)
    return (0 if code == _INT_MIN else abs(code)) % partition_count
