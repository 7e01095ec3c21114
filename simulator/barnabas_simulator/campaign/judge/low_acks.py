"""What may be lost with acks=1 and acks=0, and what may not.

Kafka promises: with acks=1 an acknowledged record is lost only if its leader is not the leader any
more and had not copied it, so that the next leader began below it. With acks=0 any may be lost, but
none is there twice, because nothing is sent again. In no case is there a record that was refused or
never sent. What one producer was told lies in the order of sending; with acks=0 it is told nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.varied.low_acks import MAX_MESSAGE_BYTES, Acked, Sent

Records = Sequence[tuple[int, bytes]]
Epochs = Sequence[tuple[int, int]]

SMALL_BYTES = MAX_MESSAGE_BYTES // 4


@dataclass
class Judged:
    """`wrong`: findings. `lost`: how many records were lost rightly, by acks."""

    wrong: list[str] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


def judge_low_acks(
    by_sender: Mapping[str, Mapping[TopicPartition, Sent]],
    records: Mapping[TopicPartition, Records],
    epochs: Mapping[TopicPartition, Epochs],
) -> Judged:
    """`epochs`: the leader epochs of each log, and where each starts."""
    judged = Judged()
    for partition, found in records.items():
        known = {label for by in by_sender.values() for label in by[partition].sent}
        strange = [f"{partition}@{o} {v!r} was never sent" for o, v in found if v not in known]
        judged.wrong += strange
        for sender, by_partition in by_sender.items():
            own = by_partition[partition]
            _judge(f"{partition}: {sender}", own, found, epochs[partition], judged)
    return judged


def _judge(what: str, own: Sent, records: Records, epochs: Epochs, judged: Judged) -> None:
    at, counts = dict(records), Counter(label for _, label in records)
    wrong = [f"{label!r} is there and was refused" for label in own.refused if counts[label]]
    wrong += [
        f"{label!r} of {own.sizes[label]} bytes was refused"
        for label in own.refused
        if own.sizes[label] <= SMALL_BYTES
    ]
    if own.acks != "1":  # a retry may write twice
        wrong += [f"{v!r} is there {counts[v]} times" for v in own.sent if counts[v] > 1]
    if own.acks == "0":
        judged.lost["0"] += sum(not counts[label] for label in own.sent)
    else:
        kept = [(label, told) for label, told in own.acked.items() if at.get(told.offset) == label]
        gone = {label: told for label, told in own.acked.items() if at.get(told.offset) != label}
        for label, told in gone.items():
            if told.offset < 0 and counts[label]:  # a retry, and the first was not known any more
                continue
            if own.acks == "1" and _may_be_lost(told, epochs, is_replaced=told.offset in at):
                judged.lost["1"] += not counts[label]  # an attempt without an answer may be left
            else:
                wrong.append(f"{label!r} is lost: {told}, {epochs}")
        places = {label: place for place, label in enumerate(own.sent)}
        in_order = sorted(kept, key=lambda one: places[one[0]])
        offsets = [told.offset for _, told in in_order]
        if offsets != sorted(offsets):
            wrong.append("what was acknowledged is not in the order of sending")
    judged.wrong += [f"{what}: {finding}" for finding in wrong]


def _may_be_lost(told: Acked, epochs: Epochs, is_replaced: bool) -> bool:
    """Whether a later leader began at the record's offset, or below.

    Or it began above, and has an earlier leader's records there: it never followed the leader that
    acknowledged this one. If the log has the lowest epoch there, and another record in this one's
    place (`is_replaced`), a leader of a later epoch acknowledged it.
    """
    there = max((one for one, start in epochs if start <= told.offset), default=told.lowest)
    return there != told.lowest or (is_replaced and told.lowest < told.highest)
