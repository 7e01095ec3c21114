"""Elections above a leader epoch that replicas hold already."""

from dataclasses import replace

from barnabas_common.messages.control import HeldRole
from barnabas_controller.election.decision import Elected, Unchanged
from barnabas_controller.eligibility.raised_epoch import elect_above
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

STATE = LeaderAndIsr(1, leader_epoch=3, isr=(1, 2, 3), controller_epoch=1, partition_epoch=5)
ALL = (1, 2, 3)


def held(epoch: int, leader: int = -1, isr: tuple[int, ...] = (), log: int = 0, end: int = 0):  # type: ignore[no-untyped-def]
    return HeldRole("t", 0, epoch, leader, list(isr), log, end)


def elected(*reports: tuple[int, HeldRole], online: tuple[int, ...] = ALL) -> LeaderAndIsr:
    decision = elect_above(STATE, dict(reports), ALL, online, "because")
    assert isinstance(decision, Elected)
    assert decision.recipients == online and decision.state.partition_epoch == 5
    return decision.state


def test_a_restarted_leader_leads_on_under_the_next_epoch() -> None:
    state = elected((1, held(3, log=3, end=10)))
    assert (state.leader, state.leader_epoch, state.isr) == (1, 4, (1, 2, 3))


def test_the_leader_of_the_newest_epoch_goes_on_with_its_own_isr() -> None:
    state = elected((3, held(7, leader=2, log=7, end=50)), (2, held(7, leader=2, isr=(2, 3))))
    assert (state.leader, state.leader_epoch, state.isr) == (2, 8, (2, 3))


def test_a_member_that_was_taken_out_since_does_not_come_back_with_the_leader() -> None:
    """It may have lost records, and the state has no proof of it any more."""
    without_three = replace(STATE, isr=(1, 2))
    report = {2: held(7, leader=2, isr=(2, 3))}
    decision = elect_above(without_three, report, ALL, ALL, "because")
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (2, (2,))


def test_a_leader_of_an_older_epoch_than_another_holds_does_not_decide() -> None:
    deposed = held(5, leader=2, isr=(2, 3), log=5, end=90)
    state = elected((2, deposed), (3, held(6, leader=1, log=6, end=50)))
    assert (state.leader, state.leader_epoch, state.isr) == (3, 7, (3,))


def test_without_that_leader_the_newest_log_decides_by_its_last_epoch_and_then_its_end() -> None:
    logs = {1: held(4, log=4, end=90), 2: held(6, log=6, end=50), 3: held(6, log=6, end=51)}
    state = elected(*logs.items())
    assert (state.leader, state.leader_epoch, state.isr) == (3, 7, (3,))


def test_of_equal_logs_the_leader_keeps_its_place() -> None:
    state = elected((2, held(6, log=6, end=50)), (1, held(6, log=6, end=50)))
    assert (state.leader, state.isr) == (1, (1,))


def test_a_replica_that_is_gone_since_does_not_lead() -> None:
    state = elected((1, held(4, log=4, end=9)), (2, held(6, log=6, end=50)), online=(1, 3))
    assert (state.leader, state.leader_epoch, state.isr) == (1, 7, (1,))


def test_an_equal_epoch_of_another_leader_is_newer_than_the_state() -> None:
    state = elected((2, held(3, leader=2, isr=(2,), log=3, end=5)))
    assert (state.leader, state.leader_epoch, state.isr) == (2, 4, (2,))


def test_what_is_older_than_the_state_changes_nothing() -> None:
    decision = elect_above(STATE, {2: held(2, leader=2, isr=(2,))}, ALL, ALL, "because")
    assert isinstance(decision, Unchanged)
