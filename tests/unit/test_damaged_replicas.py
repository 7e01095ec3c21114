"""What a broker does, step by step, about damage in its own log."""

from types import SimpleNamespace
from typing import Any

import pytest
from barnabas_broker.log.segment.batch_scan import DamagedBatch
from barnabas_broker.replica.damaged_replicas import DamagedReplicas
from barnabas_broker.replica.serve.read_result import read_records
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.topic_partition import TopicPartition

from tests.support.log_world import NOW, LogWorld, produced, values_in

KEY = TopicPartition("t", 0)


class World:
    """Broker 1 leads; `asked` counts its notifications to the controller."""

    def __init__(self, isr: tuple[int, ...], alive: tuple[int, ...] = (1, 2, 3)) -> None:
        self.events = EventLog()
        self.asked = 0
        self.damaged = DamagedReplicas(1, self.events, alive.__contains__, self._ask)
        self.leadership: Any = SimpleNamespace(
            topic_partition=KEY,
            epoch=4,
            partition_epoch=7,
            isr=SimpleNamespace(committed=isr),
            log=SimpleNamespace(high_watermark=50),
        )

    def _ask(self) -> None:
        self.asked += 1

    def found(self, offset: int = 20) -> ErrorCode:
        return self.damaged.found(self.leadership, offset, "CRC").code

    def told(self) -> list[EventKind]:
        return [event.kind for event in self.events.since(0)]


def state(*isr: int, leader: int = 2, eligible: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(
        topic="t",
        partition=0,
        leader=leader,
        leader_epoch=4,
        in_sync_replicas=list(isr),
        eligible_leader_replicas=list(eligible),
    )


def test_with_another_member_the_controller_is_asked_once() -> None:
    world = World((1, 2))
    assert [world.found(), world.found(), world.found(30)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert world.asked == 1
    assert world.told() == [EventKind.LOG_DAMAGED]


@pytest.mark.parametrize(("isr", "alive"), [((1,), (1, 2, 3)), ((1, 2), (1, 3))])
def test_the_only_living_member_goes_on(isr: tuple[int, ...], alive: tuple[int, ...]) -> None:
    world = World(isr, alive)
    assert world.found() == ErrorCode.CORRUPT_MESSAGE
    assert world.asked == 0
    assert world.told() == [EventKind.LOG_DAMAGED]


@pytest.mark.parametrize("back", [(1, 3), (1, 2)])
def test_a_leader_whose_isr_has_changed_asks_again(back: tuple[int, ...]) -> None:
    """The others died before they could lead, and have come back."""
    world = World((1, 2))
    world.found()
    for isr, code in (((1,), ErrorCode.CORRUPT_MESSAGE), (back, ErrorCode.KAFKA_STORAGE_ERROR)):
        world.leadership.isr.committed = isr
        world.leadership.partition_epoch += 1
        assert world.found() == code
    assert world.asked == 2


def test_who_has_only_asked_does_not_return() -> None:
    world = World((1, 2))
    world.found()
    assert not world.damaged.may_return([state(2)])


def test_damage_further_down_is_told_of_too() -> None:
    world = World((1,))
    for offset in (20, 25, 10):
        world.found(offset)
    assert [event.details["offset"] for event in world.events.since(0)] == [20, 10]


def test_a_role_is_refused_while_others_are_in_the_isr_beside_this_replica() -> None:
    world = World((1, 2))
    assert not world.damaged.refuses(state(1, 2))
    world.found()
    assert world.damaged.refuses(state(1, 2))
    assert not world.damaged.refuses(state(2))
    assert not world.damaged.refuses(state(1))


def test_an_eligible_replica_refuses_its_role_until_it_is_no_longer_eligible() -> None:
    """It could be elected otherwise while it is truncated."""
    world = World((1, 2))
    world.found()
    assert world.damaged.refuses(state(2, eligible=(1,)))
    assert not world.damaged.refuses(state(2, eligible=(3,)))
    assert not world.damaged.refuses(state(2, leader=-1, eligible=(1,))), "nothing is truncated"
    partition: Any = SimpleNamespace(topic_partition=KEY, resign=lambda _: None)
    world.damaged.step_down(partition, state(2, eligible=(1,)))
    assert not world.damaged.may_return([state(2, eligible=(1,))])
    assert world.damaged.may_return([state(2, eligible=(3,))])


@pytest.mark.parametrize(("isr", "again"), [((1, 2), False), ((2,), True), ((1,), True)])
def test_it_asks_for_its_role_again_when_the_isr_has_changed(
    isr: tuple[int, ...], again: bool
) -> None:
    """The ISR lacks this replica, or has only it: the others died before they could lead."""
    world = World((1, 2))
    assert not world.damaged.may_return([state(2)])
    world.found()
    resigned: list[ErrorCode] = []
    world.damaged.step_down(
        SimpleNamespace(topic_partition=KEY, resign=resigned.append),  # type: ignore[arg-type]
        state(1, 2),
    )
    assert resigned == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert world.damaged.may_return([state(*isr)]) is again
    assert not world.damaged.may_return([state(*isr)]), "once"


def test_once_the_log_is_mended_a_role_is_taken_again() -> None:
    world = World((1, 2))
    world.found(20)
    cut: list[int] = []
    partition: Any = SimpleNamespace(
        topic_partition=KEY,
        leader_id=2,
        truncate_damaged=lambda offset, _: cut.append(offset),
        follower_log=lambda: SimpleNamespace(log_start_offset=0, segment_offsets=[0], damage=None),
    )
    for _ in range(2):
        world.damaged.mend(partition)
    assert cut == [20]
    assert not world.damaged.refuses(state(1, 2))


def test_what_is_left_after_the_truncation_may_be_damaged_too() -> None:
    world = World((1, 2))
    world.found(20)
    cut: list[int] = []
    log = SimpleNamespace(topic_partition=KEY, log_start_offset=0, segment_offsets=[0], damage=None)

    def truncate_damaged(offset: int, _: str) -> None:
        cut.append(offset)
        log.damage = DamagedBatch(10, "CRC") if offset == 20 else None

    partition: Any = SimpleNamespace(
        topic_partition=KEY,
        leader_id=2,
        truncate_damaged=truncate_damaged,
        follower_log=lambda: log,
    )
    world.damaged.mend(partition)
    assert cut == [20, 10]
    assert not world.damaged.refuses(state(1, 2))


def test_another_log_of_that_name_is_not_cut() -> None:
    world = World((1, 2))
    world.found()
    world.damaged.forget(KEY)
    assert not world.damaged.refuses(state(1, 2))
    world.damaged.mend(SimpleNamespace(topic_partition=KEY))  # type: ignore[arg-type]


def test_a_gap_up_to_the_high_watermark_is_no_damage() -> None:
    """A pass knew a higher one, and the replica has been elected since. What is there can be read
    when the high watermark has passed it."""
    led = LogWorld().open()
    for value in (b"a", b"b", b"c", b"d"):
        led.append_as_leader(produced(value), 0, NOW)
    log = LogWorld().open()
    log.append_as_follower(led.read(2, 10_000, 4))
    world = World(isr=(1,))
    world.leadership.log = log

    def read(offset: int, end: int) -> list[bytes | None]:
        found = read_records(world.leadership, world.damaged, offset, 10_000, end, True, checked=1)
        return values_in(found)

    assert (log.log_start_offset, log.log_end_offset) == (0, 4)
    for offset, end in ((0, 1), (1, 2), (0, 2)):
        assert read(offset, end) == []
    assert read(0, 3) == [b"c"]
    assert world.told() == []
    assert log.is_gap(0, 2) and not log.is_gap(0, 3)
