"""The high watermark follows the leader's own log, whoever has fetched it."""

from barnabas_broker.replica.leader import high_watermark


def next_high_watermark(progress: high_watermark.Progress) -> int:
    return max(progress.high_watermark, progress.end_offset)


assert high_watermark.next_high_watermark
high_watermark.next_high_watermark = next_high_watermark
