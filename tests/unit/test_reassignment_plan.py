"""Plans of reassignments: few moves, even, across racks, and checked when read from JSON."""

from collections import Counter

import pytest
from barnabas.admin.reassignment_plan import (
    Plan,
    format_plan,
    moved_replicas,
    parse_plan,
    plan_reassignment,
)
from barnabas.admin.reassignment_throttle import FOLLOWERS, LEADERS, throttled_replicas
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.topic_partition import TopicPartition


def topic(*replicas: list[int]) -> Plan:
    return {TopicPartition("t", number): list(ids) for number, ids in enumerate(replicas)}


EVEN = topic([1, 2, 3], [2, 3, 1], [3, 1, 2])


def loads(plan: Plan) -> Counter[int]:
    return Counter(broker for replicas in plan.values() for broker in replicas)


def test_what_is_well_stays() -> None:
    assert plan_reassignment(EVEN, [1, 2, 3]) == EVEN


def test_a_broker_that_is_to_go_is_replaced_where_it_stood_and_nothing_else_moves() -> None:
    plan = plan_reassignment(EVEN, [1, 2, 4])
    assert plan == topic([1, 2, 4], [2, 4, 1], [4, 1, 2])
    assert moved_replicas(EVEN, plan) == 3


def test_a_new_broker_gets_its_share_and_no_more_moves_than_that() -> None:
    current = topic(*[[1, 2], [2, 3], [3, 1]] * 4)
    plan = plan_reassignment(current, [1, 2, 3, 4])
    assert sorted(loads(plan).values()) == [6, 6, 6, 6]
    assert moved_replicas(current, plan) == 6
    leads = Counter(replicas[0] for replicas in plan.values())
    assert max(leads.values()) - min(leads[b] for b in (1, 2, 3, 4)) <= 1
    assert all(len(set(replicas)) == 2 for replicas in plan.values())


def test_leaders_are_spread_by_order_alone() -> None:
    current = topic([1, 2, 3], [1, 2, 3], [1, 2, 3])
    plan = plan_reassignment(current, [1, 2, 3])
    assert moved_replicas(current, plan) == 0
    assert sorted(replicas[0] for replicas in plan.values()) == [1, 2, 3]


def test_a_new_replica_goes_to_a_rack_without_one() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    plan = plan_reassignment(topic([1, 2]), [1, 3, 4], racks)
    assert plan == topic([1, 4])


def test_too_few_brokers_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="t-0 has 3 replicas"):
        plan_reassignment(EVEN, [1, 2])


def test_a_plan_is_read_as_it_was_written() -> None:
    assert parse_plan(format_plan(EVEN)) == EVEN
    kafkas = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4],'
    assert parse_plan(kafkas + '"log_dirs":["any"]}]}') == topic([4])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"partitions":[]}',
        '{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
        '{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}',
        '{"partitions":[{"topic":"t","partition":0}]}',
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},'
        '{"topic":"t","partition":0,"replicas":[2]}]}',
    ],
)
def test_nonsense_is_no_plan(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_plan(text)


def test_throttled_are_those_that_send_and_those_that_receive() -> None:
    now = {**topic([1, 2], [2, 3]), TopicPartition("other", 0): [1]}
    targets = {**topic([1, 4], [3, 2]), TopicPartition("other", 0): [3]}
    assert throttled_replicas(now, targets) == {
        "other": {LEADERS: "0:1", FOLLOWERS: "0:3"},
        "t": {LEADERS: "0:1,0:2", FOLLOWERS: "0:4"},
    }
