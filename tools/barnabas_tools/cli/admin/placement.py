"""Where the replicas of a new topic go: the values of `topic create --assignment`."""

from collections.abc import Mapping, Sequence

from barnabas_controller.topics.admin_zk_client import MAX_PARTITIONS

from barnabas_tools.cli.settings import UsageFailed

PLAIN = "plain"
_WANTED = "--assignment wants 'plain' or PARTITION:ID,ID,...;..., such as 0:1,2,3;1:2,3,1"


def plain(brokers: Sequence[int], partitions: int, factor: int) -> dict[int, list[int]]:
    """Return the brokers of each partition: replica j of partition i is on broker (i + j) mod n.

    The brokers are counted in order of their ids. Raises UsageFailed if there are too few, or
    for more partitions than brokers accept: their list could take all memory.
    """
    if partitions > MAX_PARTITIONS:
        raise UsageFailed(f"--partitions must be at most {MAX_PARTITIONS}, not {partitions}")
    ids = sorted(brokers)
    if factor > len(ids):
        raise UsageFailed(f"{factor} replicas need as many brokers; there are {len(ids)}")
    return {i: [ids[(i + j) % len(ids)] for j in range(factor)] for i in range(partitions)}


def explicit(text: str) -> dict[int, list[int]]:
    """Parse `0:1,2,3;1:2,3,1`: the brokers of each partition, the preferred leader first.

    Raises UsageFailed for anything else.
    """
    found: dict[int, list[int]] = {}
    for part in text.split(";"):
        number, _, ids = part.partition(":")
        try:
            partition, brokers = int(number), [int(broker) for broker in ids.split(",")]
        except ValueError:
            raise UsageFailed(f"{_WANTED}; not {part!r}") from None
        if partition in found:
            raise UsageFailed(f"--assignment names partition {partition} twice")
        found[partition] = brokers
    return found


def check_alone(
    assignment: Mapping[int, Sequence[int]], partitions: int | None, factor: int | None
) -> None:
    """Raise UsageFailed where counts contradict an explicit assignment."""
    if partitions not in (None, len(assignment)):
        raise UsageFailed(f"--assignment names {len(assignment)} partitions, not {partitions}")
    for partition, brokers in assignment.items():
        if factor not in (None, len(brokers)):
            raise UsageFailed(
                f"--assignment gives partition {partition} {len(brokers)} replicas, not {factor}"
            )
