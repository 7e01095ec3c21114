"""Lanes: one bar per replica, with the end of its log, the committed and the stable part of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas.admin import BrokerReplicas

from barnabas_tools.cli.observe.replica import newest_leaders

COMMITTED, UNDECIDED, UNCOMMITTED, MISSING = "█", "▓", "▒", "·"


@dataclass(frozen=True)
class Lane:
    """A replica as last reported; `is_gone` if its broker has not answered since."""

    topic: str
    partition: int
    broker: int
    is_leader: bool
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    in_sync: bool
    held_back_because: str = ""
    is_gone: bool = False


Lanes = Mapping[tuple[str, int, int], Lane]


def lanes(answers: Iterable[BrokerReplicas], before: Lanes) -> Lanes:
    """Return the lanes by partition and broker; unchanged for brokers that did not answer."""
    found = {key: replace(lane, is_gone=True) for key, lane in before.items()}
    answered = [answer for answer in answers if answer.error is None]
    for broker in {answer.broker_id for answer in answered}:  # drop the replicas it has deleted
        found = {key: lane for key, lane in found.items() if key[2] != broker}
    replicas = [(answer.broker_id, each) for answer in answered for each in answer.replicas]
    leaders = newest_leaders(each for _, each in replicas)
    for broker, each in replicas:
        key = (each.topic, each.partition, broker)
        leader = leaders.get((each.topic, each.partition))
        found[key] = Lane(
            *key,
            is_leader=each.is_leader,
            leader_epoch=each.leader_epoch,
            log_start_offset=each.log_start_offset,
            log_end_offset=each.log_end_offset,
            high_watermark=each.high_watermark,
            last_stable_offset=each.last_stable_offset,
            in_sync=leader is not None and broker in leader.in_sync_replicas,
            held_back_because=each.held_back_because,
        )
    return dict(sorted(found.items()))


def bar(lane: Lane, start: int, end: int, width: int) -> str:
    """Draw the log between two offsets: committed, of undecided transactions, not yet committed,
    missing."""
    if end <= start:
        return MISSING * width
    scale = width / (end - start)
    log_end = min(width, round(max(0, lane.log_end_offset - start) * scale))
    committed = min(log_end, round(max(0, lane.high_watermark - start) * scale))
    if lane.high_watermark < lane.log_end_offset and committed == log_end > 0:
        committed -= 1  # even a small difference gets a column
    if lane.log_end_offset < end and log_end == width:
        log_end -= 1
        committed = min(committed, log_end)
    stable = committed
    if 0 <= lane.last_stable_offset < lane.high_watermark:
        stable = min(committed, round(max(0, lane.last_stable_offset - start) * scale))
        if stable == committed > 0:
            stable -= 1
    return (
        COMMITTED * stable
        + UNDECIDED * (committed - stable)
        + UNCOMMITTED * (log_end - committed)
        + MISSING * (width - log_end)
    )
