"""The high watermark follows the leader's own log, whoever has fetched it."""

from barnabas_broker.replica import high_watermark


def next_high_watermark(current: int, leader_log_end_offset: int, *_: object, **__: object) -> int:
    return max(current, leader_log_end_offset)


assert high_watermark.next_high_watermark
high_watermark.next_high_watermark = next_high_watermark  # type: ignore[assignment]
