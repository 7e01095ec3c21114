"""What the labs of groups count and measure, on planted faults."""

from barnabas_tools.labs.scenarios.groups.delivery import Delivered, delivered
from barnabas_tools.labs.scenarios.groups.ownership import Ownership


def test_work_that_was_left_out_or_repeated_is_found() -> None:
    assert delivered(["0", "1", "2"], 3) == Delivered([], [])
    assert delivered(["0", "2"], 4) == Delivered([1, 3], [])
    assert delivered(["0", "1", "1", "0", "2"], 3) == Delivered([], [0, 1])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_longest_time_without_a_reader_counts() -> None:
    clock = Clock()
    ownership = Ownership(clock)
    ownership.taken("a", [0, 1])
    ownership.begin_to_measure()
    for seconds in (1.0, 3.0, 2.0):
        ownership.given_up("a", [0])
        clock.now += seconds
        ownership.taken("b", [0])
        ownership.given_up("b", [0])
        ownership.taken("a", [0])
    assert ownership.longest_unread == {0: 3.0, 1: 0.0}
    assert ownership.by_member() == {"a": [0, 1]} and not ownership.shared


def test_what_was_unread_before_the_measurement_does_not_count() -> None:
    clock = Clock()
    ownership = Ownership(clock)
    ownership.taken("a", [0])
    ownership.given_up("a", [0])
    clock.now += 9.0
    ownership.taken("a", [0])
    ownership.begin_to_measure()
    assert ownership.longest_unread == {0: 0.0}


def test_two_readers_of_one_partition_are_found() -> None:
    ownership = Ownership(Clock())
    ownership.taken("a", [0, 1])
    ownership.taken("b", [1])
    assert ownership.shared == {1}
    ownership.given_up("a", [1])
    assert ownership.by_member() == {"a": [0], "b": [1]} and ownership.shared == {1}
