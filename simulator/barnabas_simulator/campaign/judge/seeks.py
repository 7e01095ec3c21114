"""What consumers that seek must see: the very next record, and the first one of a time."""

from collections.abc import Callable, Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.varied.seekers import Asked, Journal, Step

MayBeGone = Callable[[TopicPartition, int], bool]
"""Whether compaction may have removed what was at an offset."""


def wrong_seeks(
    journal: Journal,
    times: Mapping[TopicPartition, Mapping[int, int]],
    may_be_gone: MayBeGone,
) -> list[str]:
    """`times`: of each offset that is in the log in the end the timestamp."""
    found = [_wrong_step(step, may_be_gone) for step in journal.steps]
    for asked in journal.asked:
        of_partition = times[asked.partition]
        stays = {
            offset: time
            for offset, time in of_partition.items()
            if time >= asked.timestamp and not may_be_gone(asked.partition, offset)
        }
        found.append(_wrong_answer(asked, of_partition, stays))
    return [finding for finding in found if finding is not None]


def _wrong_step(step: Step, may_be_gone: MayBeGone) -> str | None:
    """A reader gets what is at its position, or what follows what compaction has removed."""
    if step.expected < 0:
        return None
    if step.offset < step.expected:
        return f"{step}: it went back"
    skipped = [
        offset
        for offset in range(step.expected, step.offset)
        if not may_be_gone(step.partition, offset)
    ]
    return f"{step}: offsets {skipped[:5]} were left out" if skipped else None


def _wrong_answer(asked: Asked, times: Mapping[int, int], stays: Mapping[int, int]) -> str | None:
    """The answer is as late as what was asked for, and nothing before it. `stays`: the records that
    are as late, and that compaction may not have removed by then.

    That there is none, only a deposed leader may say while faults last.
    """
    if asked.offset < 0 and not asked.at_rest:
        return None
    if times.get(asked.offset, asked.timestamp) < asked.timestamp:
        return f"{asked}: that record was sent earlier, at {times[asked.offset]}"
    missed = [offset for offset in stays if asked.offset < 0 or offset < asked.offset]
    return f"{asked}: offsets {missed[:5]} are as late" if missed else None
