"""The last judgement of a run: what was acknowledged or seen against what is read at the end."""

from collections import Counter
from collections.abc import Mapping

from barnabas.topic_partition import TopicPartition

from barnabas_simulator.delivery import History, judge

Records = Mapping[TopicPartition, list[tuple[int, bytes]]]


def assert_delivered(
    histories: Mapping[str, dict[TopicPartition, History]],
    seen: Mapping[TopicPartition, dict[int, bytes]],
    records: Records,
) -> None:
    """Raises AssertionError with the first findings.

    Each producer's records must be there by value, at their offsets and in their order; nothing
    may be there that nobody sent; and what a consumer saw once must still be there. A producer that
    was killed has a history for each of its lives: none waits for what the one before it had sent.
    One of which nothing was acknowledged in any life has proved nothing.
    """
    acked = Counter[str]()
    for name, by_partition in histories.items():
        own = name.encode() + b"/"
        verdict = judge(
            by_partition,
            {p: [(o, v) for o, v in found if v.startswith(own)] for p, found in records.items()},
        )
        verdict.assert_nothing_wrong()
        acked[name.partition(".")[0]] += verdict.acked
    mute = [producer for producer, count in acked.items() if not count]
    assert acked and not mute, f"nothing of {mute or 'anybody'} was acknowledged"
    for partition, found in records.items():
        senders = {value.partition(b"/")[0].decode() for _, value in found}
        foreign = senders - set(histories)
        assert not foreign, f"{partition}: records of nobody: {sorted(foreign)}"
        lost = seen[partition].items() - dict(found).items()
        assert not lost, f"{partition}: a consumer has seen what is lost now: {sorted(lost)[:5]}"
