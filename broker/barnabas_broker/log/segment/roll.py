"""When a log starts a new segment. A pure decision, made before each append."""

from typing import NamedTuple

from barnabas_broker.config.log_config import LogConfig

MAX_RELATIVE_OFFSET = 2**31 - 1
"""Indexes hold offsets as int32, relative to the segment's base."""


class ActiveSegment(NamedTuple):
    """`first_timestamp` is -1 if there is none."""

    base_offset: int
    size: int
    first_timestamp: int
    created_ms: int
    jitter_ms: int
    indexes_full: bool


class Incoming(NamedTuple):
    size: int
    last_offset: int
    max_timestamp: int


def reason_to_roll(
    segment: ActiveSegment, incoming: Incoming, config: LogConfig, now_ms: int
) -> str | None:
    """Why the append must go to a new segment, or None.

    The age is a difference of record timestamps if there are any, so that a replica rolls where
    its leader did, whenever it fetches. Only an append rolls a log.
    """
    if incoming.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return f"offset {incoming.last_offset} is too far from its base"
    if segment.size == 0:
        return None
    if segment.size > config.segment_bytes - incoming.size:
        return f"{segment.size} + {incoming.size} bytes exceed segment.bytes"
    if segment.indexes_full:
        return "an index is full"
    if segment.first_timestamp >= 0:
        waited = incoming.max_timestamp - segment.first_timestamp
    else:
        waited = now_ms - segment.created_ms
    if waited > _longest_age_ms(config) - segment.jitter_ms:
        return f"{waited} ms exceed segment.ms"
    return None


def _longest_age_ms(config: LogConfig) -> int:
    """Only sealed segments are compacted, so `max.compaction.lag.ms` limits the age too."""
    if "compact" in config.cleanup_policy:
        return min(config.segment_ms, config.max_compaction_lag_ms)
    return config.segment_ms
