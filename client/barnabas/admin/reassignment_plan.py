"""Where the replicas of partitions should be, given the brokers they may use: pure functions.

As few replicas as possible move: those on brokers that must not be used, then as many as needed
until no broker has two more than another. (Kafka's tool assigns all of them again.) A new replica
goes to the broker with the fewest, on a rack that the partition is not on yet, if there is one.
Finally each list is reordered, which moves nothing, until the preferred leaders are spread too.

The JSON of a plan is that of `kafka-reassign-partitions`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.topic_partition import TopicPartition

Assignment = Mapping[TopicPartition, Sequence[int]]
Plan = dict[TopicPartition, list[int]]


def plan_reassignment(
    current: Assignment, brokers: Iterable[int], racks: Mapping[int, str] | None = None
) -> Plan:
    """The assignment proposed for every partition of `current`; some may stay as they are.

    Raises InvalidArgumentError if there are fewer brokers than a partition has replicas.
    """
    usable = sorted(set(brokers))
    for partition, replicas in current.items():
        if len(replicas) > len(usable):
            raise InvalidArgumentError(
                f"{partition} has {len(replicas)} replicas, but only {len(usable)} brokers are"
                " named"
            )
    plan = {partition: list(replicas) for partition, replicas in sorted(current.items())}
    load = Counter(dict.fromkeys(usable, 0))
    load.update(r for replicas in plan.values() for r in replicas if r in load)
    places = racks or {}
    for replicas in plan.values():
        _replace_unusable(replicas, load, places)
    while _even_out(plan, load, places):
        pass
    _spread_leaders(plan, usable)
    return plan


def _replace_unusable(replicas: list[int], load: "Counter[int]", racks: Mapping[int, str]) -> None:
    for position, broker in enumerate(replicas):
        if broker not in load:
            others = [r for r in replicas if r in load]
            taken = {racks.get(r) for r in others} - {None}
            chosen = min(
                (b for b in load if b not in others),
                key=lambda b: (racks.get(b) in taken, load[b], b),
            )
            replicas[position] = chosen
            load[chosen] += 1


def _even_out(plan: Plan, load: "Counter[int]", racks: Mapping[int, str]) -> bool:
    """Move one replica from a full broker to an empty one; False if none needs to."""
    for full in sorted(load, key=lambda b: (-load[b], b)):
        for empty in sorted(load, key=lambda b: (load[b], b)):
            if load[full] - load[empty] < 2:
                break
            for replicas in plan.values():
                others = [r for r in replicas if r != full]
                crowded = racks.get(empty) in {racks.get(r) for r in others} - {None}
                if full in replicas and empty not in replicas and not crowded:
                    replicas[replicas.index(full)] = empty
                    load[full] -= 1
                    load[empty] += 1
                    return True
    return False


def _spread_leaders(plan: Plan, brokers: Sequence[int]) -> None:
    """Put another replica first if the present first one leads more than its share."""
    leads = Counter(dict.fromkeys(brokers, 0))
    leads.update(replicas[0] for replicas in plan.values() if replicas)
    for replicas in plan.values():
        best = min(replicas, key=lambda b: (leads[b], replicas.index(b)), default=None)
        if best is not None and leads[replicas[0]] - leads[best] >= 2:
            leads[replicas[0]] -= 1
            leads[best] += 1
            replicas.remove(best)
            replicas.insert(0, best)


def moved_replicas(current: Assignment, plan: Assignment) -> int:
    """How many replicas must be copied to a broker that does not have them."""
    return sum(len(set(plan[p]) - set(current.get(p, ()))) for p in plan)


def format_plan(plan: Assignment, indent: int | None = None) -> str:
    """The plan as JSON."""
    partitions = [
        {"topic": p.topic, "partition": p.partition, "replicas": list(replicas)}
        for p, replicas in sorted(plan.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, indent=indent)


def parse_plan(text: str) -> Plan:
    """Parse a plan in JSON; raises InvalidArgumentError that says what is invalid."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the plan is not JSON: {error}") from None
    partitions = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(partitions, list) or not partitions:
        raise InvalidArgumentError('the plan has no list of "partitions"')
    plan: Plan = {}
    for item in partitions:
        partition, replicas = _planned(item)
        if partition in plan:
            raise InvalidArgumentError(f"the plan names {partition} twice")
        plan[partition] = replicas
    return plan


def _planned(item: object) -> tuple[TopicPartition, list[int]]:
    if isinstance(item, dict):
        topic, number, replicas = (item.get(k) for k in ("topic", "partition", "replicas"))
        if (
            isinstance(topic, str)
            and _is_int32(number)
            and isinstance(replicas, list)
            and all(map(_is_int32, replicas))
        ):
            return TopicPartition(topic, number), replicas
    raise InvalidArgumentError(
        f'a partition of the plan needs "topic", "partition" and "replicas", not {item!r}'
    )


def _is_int32(value: object) -> TypeGuard[int]:
    return type(value) is int and -(2**31) <= value < 2**31
