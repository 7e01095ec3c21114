"""Of a topic that was deleted and made again: only the last incarnation's records are there, and
all of those that were acknowledged."""

from collections.abc import Mapping, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.delivery import History, judge


def wrong_incarnations(
    incarnations: Sequence[Mapping[TopicPartition, History]],
    records: Mapping[TopicPartition, list[tuple[int, bytes]]],
) -> list[str]:
    """What was acknowledged before a deletion must be gone. What had no answer by then may have
    been sent again to the next incarnation."""
    last = incarnations[-1]
    wrong = []
    for partition, found in records.items():
        earlier = [one[partition] for one in incarnations[:-1]]
        gone = {label for history in earlier for label in history.acked}
        late = {label for history in earlier for label in history.sent} - gone
        wrong += [f"{partition}@{o} {v!r} is of an earlier one" for o, v in found if v in gone]
        own = [(o, v) for o, v in found if v not in gone | late]
        wrong += judge({partition: last[partition]}, {partition: own}).findings
    return wrong
