"""Which roles a broker refuses because its log has a newer leader epoch."""

from dataclasses import replace

import pytest
from barnabas_broker.replica.epoch_refusals import is_below_log
from barnabas_common.messages.control import LeaderAndIsrPartition

from tests.support.log_world import PARTITION, LogWorld


def role(leader_epoch: int) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(*PARTITION, "", 1, 1, leader_epoch, 0, [1], [1, 2])


@pytest.mark.parametrize(
    ("leader_epoch", "to_lead", "to_follow"),
    [(2, True, True), (3, True, False), (4, False, False)],
)
def test_a_leader_needs_an_epoch_without_records_and_a_follower_one_that_is_not_over(
    leader_epoch: int, to_lead: bool, to_follow: bool
) -> None:
    world = LogWorld()
    log = world.open()
    world.append(log, b"a", epoch=3)
    assert is_below_log(role(leader_epoch), leads=True, partition=None, log=log) is to_lead
    assert is_below_log(role(leader_epoch), leads=False, partition=None, log=log) is to_follow


def test_an_epoch_without_records_may_be_led_in_again() -> None:
    world = LogWorld()
    log = world.open()
    world.append(log, b"a", epoch=3)
    log.assign_epoch(5, log.log_end_offset)
    assert not is_below_log(role(5), leads=True, partition=None, log=log)
    assert is_below_log(role(4), leads=True, partition=None, log=log)


def test_a_follower_with_records_refuses_a_first_role() -> None:
    """The partition is not new: a leader with an empty log would have it truncate its own."""
    world = LogWorld()
    log = world.open()
    world.append(log, b"a", epoch=0)
    first = replace(role(0), is_new=True)
    assert is_below_log(first, leads=False, partition=None, log=log)
    assert not is_below_log(role(0), leads=False, partition=None, log=log)
    assert not is_below_log(first, leads=False, partition=None, log=LogWorld().open())


def test_an_empty_log_refuses_nothing() -> None:
    assert not is_below_log(role(0), leads=True, partition=None, log=LogWorld().open())
