"""Lanes: one bar for each replica, how far its log reaches and how much of it is committed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas.admin import BrokerReplicas
from barnabas.messages.replicas import ReplicaDescription

COMMITTED, UNCOMMITTED, MISSING = "█", "▒", "·"


@dataclass(frozen=True)
class Lane:
    """A replica as last seen; `is_gone` if its broker did not answer since."""

    topic: str
    partition: int
    broker: int
    is_leader: bool
    leader_epoch: int
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    in_sync: bool
    held_back_because: str = ""
    is_gone: bool = False


Lanes = Mapping[tuple[str, int, int], Lane]


def lanes(answers: Iterable[BrokerReplicas], before: Lanes) -> Lanes:
    """The lanes of all who answered, and of the others as they were, by partition and broker."""
    found = {key: replace(lane, is_gone=True) for key, lane in before.items()}
    answered = [answer for answer in answers if answer.error is None]
    for broker in {answer.broker_id for answer in answered}:  # what it no longer has is deleted
        found = {key: lane for key, lane in found.items() if key[2] != broker}
    replicas = [(answer.broker_id, each) for answer in answered for each in answer.replicas]
    in_sync = _in_sync(each for _, each in replicas)
    for broker, each in replicas:
        key = (each.topic, each.partition, broker)
        found[key] = Lane(
            *key,
            is_leader=each.is_leader,
            leader_epoch=each.leader_epoch,
            log_start_offset=each.log_start_offset,
            log_end_offset=each.log_end_offset,
            high_watermark=each.high_watermark,
            in_sync=broker in in_sync.get((each.topic, each.partition), ()),
            held_back_because=each.held_back_because,
        )
    return dict(sorted(found.items()))


def _in_sync(
    replicas: Iterable[ReplicaDescription],
) -> Mapping[tuple[str, int], list[int]]:
    """By the word of each partition's leader, the newest where two believe to lead."""
    leaders: dict[tuple[str, int], ReplicaDescription] = {}
    for each in replicas:
        key = (each.topic, each.partition)
        known = leaders.get(key)
        if each.is_leader and (known is None or each.leader_epoch > known.leader_epoch):
            leaders[key] = each
    return {key: leader.in_sync_replicas for key, leader in leaders.items()}


def bar(lane: Lane, start: int, end: int, width: int) -> str:
    """The log between two offsets: committed, not yet committed, missing."""
    if end <= start:
        return MISSING * width
    scale = width / (end - start)
    log_end = min(width, round(max(0, lane.log_end_offset - start) * scale))
    committed = min(log_end, round(max(0, lane.high_watermark - start) * scale))
    if lane.high_watermark < lane.log_end_offset and committed == log_end > 0:
        committed -= 1  # a difference is worth a column, however small it is
    if lane.log_end_offset < end and log_end == width:
        log_end -= 1
        committed = min(committed, log_end)
    return COMMITTED * committed + UNCOMMITTED * (log_end - committed) + MISSING * (width - log_end)
