"""Elections above a leader epoch that replicas hold already."""

from dataclasses import replace

import pytest
from barnabas_common.messages.control import HeldRole
from barnabas_controller.election.decision import Elected, Unchanged
from barnabas_controller.eligibility.eligible_leader_replicas import with_elr
from barnabas_controller.eligibility.min_isr import MinimumIsr
from barnabas_controller.eligibility.raised_epoch import (
    elect_above,
    is_confirmed_by,
    is_unconfirmed,
    may_lack_records,
    without_unknown_members,
)
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import AHEAD_SINCE_REGISTRATION, Broker

STATE = LeaderAndIsr(1, leader_epoch=3, isr=(1, 2, 3), controller_epoch=1, partition_epoch=2)
ALL = (1, 2, 3)


def held(epoch: int, leader: int = -1, isr: tuple[int, ...] = (), log: int = 0, end: int = 0):  # type: ignore[no-untyped-def]
    return HeldRole("t", 0, epoch, leader, list(isr), log, end)


def elected(
    *reports: tuple[int, HeldRole], online: tuple[int, ...] = ALL, given_up: tuple[int, ...] = ()
) -> LeaderAndIsr:
    decision = elect_above(STATE, dict(reports), ALL, online, "because", given_up=given_up)
    assert isinstance(decision, Elected)
    assert decision.recipients == online and decision.state.partition_epoch == 2
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


def test_a_member_that_lost_records_meanwhile_does_not_come_back_with_the_leader() -> None:
    """Its removal from the ISR was held back while the replicas were asked."""
    reports = {2: held(7, leader=2, isr=(1, 2, 3)), 1: held(6, log=6, end=5)}
    decision = elect_above(STATE, reports, ALL, ALL, "because", confirmed=False, lost=(1,))
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (2, (2, 3))


def test_a_leader_of_an_older_epoch_than_another_holds_does_not_decide() -> None:
    deposed = held(5, leader=2, isr=(2, 3), log=5, end=90)
    state = elected((2, deposed), (3, held(6, leader=1, log=6, end=50)))
    assert (state.leader, state.leader_epoch, state.isr) == (-1, 7, (1,))


def test_an_epoch_that_only_the_version_of_the_znode_remembers_is_not_given_again() -> None:
    """The leaders of epochs 8 to 11 appended nothing, and all replicas have restarted since."""
    written_back = replace(STATE, partition_epoch=11)
    report = {1: held(7, log=7, end=10), 2: held(7, log=7, end=10), 3: held(7, log=7, end=9)}
    decision = elect_above(written_back, report, ALL, ALL, "because")
    assert isinstance(decision, Elected) and decision.state.leader_epoch == 12


def test_the_version_of_the_znode_is_of_no_account_if_the_state_is_the_newest() -> None:
    often_written = replace(STATE, partition_epoch=11)
    decision = elect_above(often_written, {1: held(3, log=3, end=10)}, ALL, ALL, "because")
    assert isinstance(decision, Elected) and decision.state.leader_epoch == 4


@pytest.mark.parametrize("online", [(1, 3), ALL], ids=["it is gone", "it did not refuse"])
def test_the_leader_of_the_newest_epoch_is_awaited(online: tuple[int, ...]) -> None:
    """The longest log of the others may lack records that it committed alone."""
    reports = (1, held(6, leader=2, log=5, end=9)), (3, held(5, leader=1, log=5, end=10))
    state = elected(*reports, online=online)
    assert (state.leader, state.leader_epoch, state.isr) == (-1, 7, (2,))


def test_a_leader_of_the_newest_epoch_that_is_given_up_is_not_awaited() -> None:
    """Each acknowledged record is on a replica that has answered, so the longest log has all."""
    reports = (1, held(6, leader=2, log=6, end=9)), (3, held(6, leader=2, log=6, end=10))
    state = elected(*reports, given_up=(2,))
    assert (state.leader, state.leader_epoch, state.isr) == (3, 7, (3,))


def test_the_isr_of_a_newest_epoch_without_a_leader_decides() -> None:
    reports = (1, held(6, isr=(2, 3), log=5, end=9)), (3, held(5, leader=3, isr=(3,), log=5))
    state = elected(*reports)
    assert (state.leader, state.leader_epoch, state.isr) == (-1, 7, (2, 3))


def test_the_leader_of_the_newest_epoch_is_not_preferred_if_it_has_lost_records() -> None:
    """It has restarted after a power loss; a member of its ISR has more."""
    lost = (2, held(6, log=6, end=111)), (1, held(6, leader=2, log=6, end=113))
    assert (elected(*lost).leader, elected(*lost).isr) == (1, (1,))
    complete = (2, held(6, log=6, end=113)), (1, held(6, leader=2, log=6, end=112))
    assert (elected(*complete).leader, elected(*complete).isr) == (2, (2,))
    without_a_leader = (2, held(6, log=6, end=4)), (1, held(6, isr=(2,), log=6, end=5))
    assert elected(*without_a_leader).leader == 1


def test_a_leader_that_is_no_replica_any_more_is_not_awaited() -> None:
    state = elected((1, held(6, leader=9, log=6, end=9)), (3, held(6, leader=9, log=6, end=8)))
    assert (state.leader, state.leader_epoch, state.isr) == (1, 7, (1,))


def test_what_an_outdated_state_says_of_flushes_is_over() -> None:
    alone = replace(STATE, isr=(2,), durable=True)
    decision = elect_above(alone, {1: held(6, leader=2)}, ALL, (1, 3), "because")
    assert isinstance(decision, Elected) and decision.from_outdated
    assert not decision.state.durable


def test_without_that_leader_the_newest_log_decides_by_its_last_epoch_and_then_its_end() -> None:
    logs = {1: held(4, log=4, end=90), 2: held(6, log=6, end=50), 3: held(6, log=6, end=51)}
    state = elected(*logs.items())
    assert (state.leader, state.leader_epoch, state.isr) == (3, 7, (3,))


def test_of_equal_logs_the_leader_keeps_its_place() -> None:
    state = elected((2, held(6, log=6, end=50)), (1, held(6, log=6, end=50)))
    assert (state.leader, state.isr) == (1, (1, 2))


def test_of_equal_logs_a_member_of_the_isr_leads() -> None:
    """The state may be a true one: nothing is lost by another leader, but none needs to move."""
    leaderless = replace(STATE, leader=-1, isr=(3,))
    logs = {2: held(3, log=3, end=50), 3: held(3, log=3, end=50)}
    decision = elect_above(leaderless, logs, ALL, ALL, "because", confirmed=False)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (3, (2, 3))


def test_the_isr_are_the_replicas_with_the_newest_log_and_they_have_proved_it() -> None:
    """Only an equal last record, epoch and offset, shows an equal log."""
    newest = held(6, log=6, end=50)
    logs = {1: newest, 2: held(6, log=6, end=49), 3: newest, 4: held(6, log=5, end=50), 5: newest}
    decision = elect_above(STATE, logs, (1, 2, 3, 4), (1, 2, 3, 4), "because")
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr, decision.proved) == (1, (1, 3), (1, 3))


def test_replicas_with_the_newest_log_stay_in_the_isr_although_all_have_lost_something() -> None:
    logs = dict.fromkeys(ALL, held(6, log=6, end=50))
    decision = elect_above(STATE, logs, ALL, ALL, "because", confirmed=False, lost=ALL)
    assert isinstance(decision, Elected)
    assert (decision.state.isr, decision.proved) == (ALL, ALL)


def test_only_the_incarnation_that_is_ahead_confirms_a_state_by_its_proof() -> None:
    state = replace(STATE, proved_at={2: 51, 3: 40})
    ahead, again = AHEAD_SINCE_REGISTRATION, 51
    assert is_confirmed_by(state, Broker(2, (), epoch=51, ahead_since=ahead))
    assert not is_confirmed_by(state, Broker(2, (), epoch=51)), "not ahead"
    assert not is_confirmed_by(state, Broker(2, (), epoch=60, ahead_since=again)), "restarted"
    assert not is_confirmed_by(state, Broker(3, (), epoch=52, ahead_since=ahead)), "an older proof"


def test_of_what_a_running_leader_says_of_its_followers_nothing_is_proved() -> None:
    decision = elect_above(STATE, {2: held(5, leader=2, isr=(2, 3))}, ALL, ALL, "because")
    assert isinstance(decision, Elected)
    assert (decision.state.isr, decision.proved) == ((2, 3), ())


def test_a_replica_with_the_newest_log_that_is_gone_since_is_awaited() -> None:
    state = elected((1, held(4, log=4, end=9)), (2, held(6, log=6, end=50)), online=(1, 3))
    assert (state.leader, state.leader_epoch, state.isr) == (-1, 7, (2,))


def test_an_equal_epoch_of_another_leader_is_newer_than_the_state() -> None:
    state = elected((2, held(3, leader=2, isr=(2,), log=3, end=5)))
    assert (state.leader, state.leader_epoch, state.isr) == (2, 4, (2,))


def test_what_is_older_than_the_state_changes_nothing() -> None:
    decision = elect_above(STATE, {2: held(2, leader=2, isr=(2,))}, ALL, ALL, "because")
    assert isinstance(decision, Unchanged)


def brokers(*epochs: int, ahead: tuple[int, ...]) -> dict[int, Broker]:
    found = [
        Broker(n, (), epoch=e, ahead_since=AHEAD_SINCE_REGISTRATION if n in ahead else None)
        for n, e in enumerate(epochs, start=1)
    ]
    return {broker.broker_id: broker for broker in found}


def test_a_state_is_unconfirmed_until_a_replica_has_proved_its_log_since_the_restore() -> None:
    proved_before = replace(STATE, proved_at={1: 40, 2: 41, 3: 42})
    assert is_unconfirmed(proved_before, ALL, brokers(50, 51, 52, ahead=(2, 3)))
    assert not is_unconfirmed(proved_before, ALL, brokers(50, 51, 52, ahead=()))
    assert not is_unconfirmed(proved_before, (1,), brokers(50, 51, 52, ahead=(2, 3)))
    proved_since = replace(STATE, proved_at={1: 40, 3: 52})
    assert not is_unconfirmed(proved_since, ALL, brokers(50, 51, 52, ahead=(2, 3)))
    registered_again = {2: Broker(2, (), epoch=90, ahead_since=51)}
    assert not is_unconfirmed(proved_since, ALL, registered_again), "a later registration"
    assert is_unconfirmed(proved_before, ALL, registered_again)
    left = with_elr(proved_since, STATE.with_leader(1, (1,)), ALL, MinimumIsr(1, 0), {})
    assert left.proved_at == {1: 40}, "the others have left the ISR"
    assert not is_unconfirmed(left, ALL, registered_again)
    # One that has come before the last of them may not know what that one knows.
    for proved_at in ({1: 50}, {2: 51}):
        proved_alone = replace(STATE, proved_at=proved_at)
        assert is_unconfirmed(proved_alone, ALL, brokers(50, 51, 52, ahead=(2, 3)))


def test_a_replica_that_was_ahead_before_an_earlier_restore_confirms_nothing() -> None:
    since_then = replace(STATE, proved_at={1: 40, 2: 41, 3: 42})
    known = brokers(50, 51, 52, ahead=(2, 3)) | {1: Broker(1, (), epoch=50, ahead_since=30)}
    assert is_unconfirmed(since_then, ALL, known)


def test_only_a_proof_shows_that_a_replica_has_what_it_acknowledged() -> None:
    proved = replace(STATE, proved_at={1: 40, 2: 41})
    assert not may_lack_records(proved, Broker(1, (), epoch=50, unbroken_since=40))
    assert may_lack_records(proved, Broker(2, (), epoch=50)), "it has lost something since"
    assert may_lack_records(proved, Broker(3, (), epoch=50, unbroken_since=10)), "no proof"
    assert may_lack_records(proved, Broker(1, (), epoch=39, unbroken_since=10)), "another time"
    assert not may_lack_records(STATE, Broker(1, (), epoch=50)), "a state that Kafka wrote"


def test_the_isr_of_an_unconfirmed_state_is_of_no_account() -> None:
    """3 left the ISR after the copy; in the copy it leads, and its log is of the same epoch."""
    reports = {3: held(3, log=3, end=10), 1: held(3, log=3, end=90), 2: held(3, log=3, end=80)}
    by_three = replace(STATE, leader=3)
    decision = elect_above(by_three, reports, ALL, ALL, "because", confirmed=False)
    assert isinstance(decision, Elected) and decision.from_outdated
    assert (decision.state.leader, decision.state.leader_epoch, decision.state.isr) == (1, 4, (1,))


def test_an_unconfirmed_state_of_which_no_replica_has_records_stays_as_it_is() -> None:
    decision = elect_above(STATE, {}, ALL, ALL, "because", confirmed=False)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (1, (1, 2, 3))
    assert decision.state.leader_epoch == 4
    without_its_leader = elect_above(STATE, {}, ALL, (2, 3), "because", confirmed=False)
    assert isinstance(without_its_leader, Elected)
    assert (without_its_leader.state.leader, without_its_leader.state.isr) == (-1, (1, 2, 3))


@pytest.mark.parametrize("leader", [3, -1])
def test_a_newer_role_that_only_the_controllers_broker_was_told_of_is_awaited(leader: int) -> None:
    """The replicas that have answered were never told of epoch 7, in which 3 was the ISR."""
    reports = {1: held(6, leader=1, isr=(1, 2), end=9), 2: held(6, leader=1, end=9)}
    told = held(7, leader=leader, isr=(3,))
    decision = elect_above(STATE, reports, ALL, (1, 2), "because", confirmed=False, told=told)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (-1, (3,))
    assert decision.state.leader_epoch == 8
    reports[3] = held(7, end=8, log=7)  # it has restarted
    decision = elect_above(STATE, reports, ALL, ALL, "because", confirmed=False, told=told)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (3, (3,))


def test_what_was_written_back_under_the_same_leader_epoch_adds_no_member() -> None:
    known = replace(STATE, isr=(1, 2), proved_at={1: 7, 2: 9}, eligible=())
    older = replace(known, isr=(1,), proved_at={1: 5, 3: 5}, eligible=(3, 2), durable=True)
    assert without_unknown_members(known, replace(known, isr=(3, 1))).isr == (1,)
    assert without_unknown_members(known, replace(known, isr=(3,))).isr == (1, 2)
    found = without_unknown_members(known, older)
    assert (found.isr, found.eligible, found.durable) == ((1,), (2,), False)
    assert found.proved_at == {1: 7, 2: 9}


def test_a_leaders_own_write_and_a_later_leader_epoch_stay_as_they_are() -> None:
    known = replace(STATE, proved_at={1: 5, 2: 5, 3: 6}, partition_epoch=4)
    shrunk = replace(known, isr=(1,), eligible=(2, 3), eligible_under=8, partition_epoch=5)
    assert without_unknown_members(known, shrunk) == shrunk
    later = replace(known, isr=(1, 4), leader_epoch=4)
    assert without_unknown_members(known, later) == later
