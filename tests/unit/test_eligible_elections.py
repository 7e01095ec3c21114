"""Elections by who has every committed record: members that lost records, eligible replicas."""

import pytest
from barnabas_controller.election.decision import Elected, Refused, Unchanged
from barnabas_controller.eligibility.elections import (
    eligible_offline,
    eligible_preferred,
    eligible_removal,
    handle_unclean_shutdown,
)
from barnabas_controller.eligibility.eligible_leader_replicas import NO_LOG, LeaderEligibility
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr
from hypothesis import given
from hypothesis import strategies as st

ALL = (1, 2, 3)
WAIT = "wait"


def state(leader: int, isr: tuple[int, ...], **fields: object) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 7, isr, 3, 11, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("isr", "online", "held_against", "unclean", "leader", "new_isr"),
    [
        # no replica lost anything: as in Kafka
        ((1, 2), (1, 2), LeaderEligibility(), False, 1, (1, 2)),
        # the sound member leads, whatever its place; members that lost something have to catch up
        ((1, 2), (1, 2), LeaderEligibility(lost=(1,)), False, 2, (2,)),
        ((1, 2, 3), (1, 2, 3), LeaderEligibility(lost=(2,)), False, 1, (1, 3)),
        # no sound member: an eligible replica
        ((1,), (1, 3), LeaderEligibility(lost=(1,), eligible_leader_replicas=(3,)), False, 3, (3,)),
        (
            (1, 2),
            (1, 3),
            LeaderEligibility(lost=(1,), eligible_leader_replicas=(3,), awaited=(2,)),
            False,
            3,
            (3,),
        ),
        # no eligible replica either: wait for one, then take what is there
        ((1,), (1,), LeaderEligibility(lost=(1,), awaited=(2,)), False, WAIT, ()),
        ((1,), (1,), LeaderEligibility(lost=(1,)), False, 1, (1,)),
        (
            (1, 2),
            (1, 2),
            LeaderEligibility(lost=(1, 2), logs={1: (4, 9), 2: (4, 9)}),
            False,
            1,
            (1,),
        ),  # the other has to catch up, too
        # where unclean elections are allowed there is no wait
        ((1,), (1,), LeaderEligibility(lost=(1,), awaited=(2,)), True, 1, (1,)),
        # an eligible replica neither waits for a sound member nor replaces it
        ((1,), (1, 2), LeaderEligibility(eligible_leader_replicas=(2,)), False, 1, (1,)),
        # the last member is away: wait, as Kafka does, or take the one that has everything
        ((1,), (2, 3), LeaderEligibility(eligible_leader_replicas=(3,)), False, None, ()),
        ((1,), (2, 3), LeaderEligibility(eligible_leader_replicas=(3,)), True, 3, (3,)),
        # it is back without its log and refuses to lead, so there is nothing to wait for
        ((1,), (2, 3), LeaderEligibility(lost=(1,), eligible_leader_replicas=(3,)), False, 3, (3,)),
        (
            (1, 2),
            (3,),
            LeaderEligibility(lost=(1,), eligible_leader_replicas=(3,)),
            False,
            None,
            (),
        ),
    ],
)
def test_who_leads_when_something_was_lost(
    isr: tuple[int, ...],
    online: tuple[int, ...],
    held_against: LeaderEligibility,
    unclean: bool,
    leader: int | str | None,
    new_isr: tuple[int, ...],
) -> None:
    decision = eligible_offline(
        state(9, isr), ALL, online, unclean, "broker 9 died", eligibility=held_against
    )
    if isinstance(decision, Refused):
        assert leader == (WAIT if decision.awaits else None)
        assert decision.awaits == (held_against.awaited if decision.awaits else ())
    else:
        assert (decision.state.leader, decision.state.isr) == (leader, new_isr)
        assert decision.state.recovery_state != RECOVERING
        assert "broker 9" in decision.reason


some = st.lists(st.integers(1, 3), max_size=3, unique=True).map(tuple)


LOGS = {1: (4, 9), 2: (4, 10), 3: (5, 3)}


@pytest.mark.parametrize(
    ("lost", "new_disks", "logs", "leader"),
    [
        # the newest log: by the leader epoch of its last record, then by its end
        ((1, 2, 3), (), LOGS, 3),
        ((1, 2), (), LOGS, 2),
        ((2, 1), (), {1: (4, 9), 2: (4, 9)}, 1),
        # one whose disk is new may also lack what was flushed
        ((1, 2, 3), (3,), LOGS, 2),
        ((1, 2), (1, 2), LOGS, 2),
        # it is unknown what one of them has
        ((1, 2), (), {1: (4, 9)}, None),
        ((1, 2), (), {}, None),
        # ... and is not told in time
        ((1, 2), (), {1: NO_LOG, 2: (4, 9)}, 2),
        ((1, 2), (), {1: NO_LOG, 2: NO_LOG}, 1),
        # there is no choice
        ((2,), (), {}, 2),
    ],
)
@pytest.mark.parametrize("unclean", [False, True])
def test_of_those_that_lost_something_the_newest_log_leads(
    lost: tuple[int, ...],
    new_disks: tuple[int, ...],
    logs: dict[int, tuple[int, int]],
    leader: int | None,
    unclean: bool,
) -> None:
    over = LeaderEligibility(lost, new_disks, logs=logs)
    decision = eligible_offline(state(9, lost), ALL, lost, unclean, "why", eligibility=over)
    if isinstance(decision, Refused):
        assert leader is None
        assert decision.queries == tuple(m for m in lost if m not in logs)
        assert not decision.awaits
    else:
        assert (decision.state.leader, decision.state.isr) == (leader, (leader,))


@pytest.mark.parametrize(
    ("new_disks", "logs", "leader"),
    [
        ((), {1: (4, 9), 2: (4, 10), 3: (4, 8)}, 2),
        ((), {1: (4, 9), 2: (4, 9), 3: (4, 9)}, 1),  # the member, if none has more
        ((2,), {1: (4, 9), 2: (4, 11), 3: (4, 10)}, 3),
        # one that is not in the ISR never leads with less than a member has
        ((1,), {1: (4, 9), 2: (4, 8), 3: (3, 12)}, 1),
        ((1,), {1: (4, 9), 2: (4, 10), 3: (4, 8)}, 2),
        ((1, 2), {1: (-1, 0), 2: (5, 100), 3: (-1, 0)}, 2),
        ((1, 2), {1: (4, 9), 2: (5, 100), 3: (3, 8)}, 2),
        ((), {1: (4, 9), 3: (4, 8)}, None),
        ((), {}, None),
    ],
)
def test_eligible_replicas_that_lost_something_are_asked_for_their_logs_too(
    new_disks: tuple[int, ...], logs: dict[int, tuple[int, int]], leader: int | None
) -> None:
    """They left the ISR with every committed record: all brokers lost power, and this one's session
    was the last to end."""
    over = LeaderEligibility((1,), new_disks, lost_eligible=(2, 3), logs=logs)
    held = state(NO_LEADER, (1,), eligible=(2, 3))
    decision = eligible_offline(held, ALL, ALL, False, "why", eligibility=over)
    if isinstance(decision, Refused):
        assert leader is None
        assert decision.queries == tuple(r for r in ALL if r not in logs)
    else:
        assert (decision.state.leader, decision.state.isr) == (leader, (leader,))
        assert "[1, 2, 3] lost unflushed records since in sync" in decision.reason


def test_logs_are_asked_for_while_another_replica_is_awaited() -> None:
    over = LeaderEligibility((1, 2), awaited=(3,), logs={1: (4, 9)})
    decision = eligible_offline(state(9, ALL), ALL, (1, 2), False, "why", eligibility=over)
    assert isinstance(decision, Refused)
    assert (decision.awaits, decision.queries) == ((3,), (2,))
    assert decision.why == (
        "[1, 2] lost unflushed records since in sync; waiting for [3]; asking what the logs of [2]"
        " hold"
    )


@given(some.filter(bool), some, some, some)
def test_a_member_that_is_online_leads_sooner_or_later(
    isr: tuple[int, ...],
    online: tuple[int, ...],
    lost: tuple[int, ...],
    eligible_leader_replicas: tuple[int, ...],
) -> None:
    """The losses of replicas decide which one leads, never whether one does."""
    over = LeaderEligibility(
        lost,
        tuple(r for r in eligible_leader_replicas if r in online and r not in isr),
        logs=dict.fromkeys(lost, NO_LOG),
    )
    decision = eligible_offline(state(9, isr), ALL, online, False, "why", eligibility=over)
    hopeless = bool(over.eligible_leader_replicas) and all(member in lost for member in isr)
    assert isinstance(decision, Elected) is (any(m in online for m in isr) or hopeless)


@pytest.mark.parametrize(
    ("online", "lost", "leader", "isr"),
    [
        # the controller (1) died, 3 restarted, 2 lost power: 3 leads
        ((2, 3), (2,), 3, (1, 3)),
        ((2, 3), (3,), 2, (1, 2)),
        ((1, 2, 3), (2,), 1, (1, 3)),
    ],
)
def test_a_failover_takes_places_from_those_that_lost_something(
    online: tuple[int, ...], lost: tuple[int, ...], leader: int, isr: tuple[int, ...]
) -> None:
    decision = handle_unclean_shutdown(state(1, (1, 2, 3)), ALL, online, lost, "failover", lost)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (leader, isr)


def test_who_may_never_have_been_a_member_is_not_eligible_either() -> None:
    """With `from_outdated` the state that is replaced makes no replica eligible."""
    present = state(1, (1, 2, 3))
    decision = handle_unclean_shutdown(present, ALL, ALL, (), "failover", unknown=(2, 3))
    assert isinstance(decision, Elected) and decision.from_outdated
    assert (decision.state.leader, decision.state.isr) == (1, (1,))
    decision = handle_unclean_shutdown(present, ALL, ALL, (2,), "failover")
    assert isinstance(decision, Elected) and not decision.from_outdated
    assert isinstance(
        handle_unclean_shutdown(present, ALL, (2, 3), (), "failover", unknown=(2, 3)), Unchanged
    )


def test_a_leader_that_lost_something_has_to_stand_for_election_again() -> None:
    decision = handle_unclean_shutdown(state(1, (1,)), ALL, (1, 2), (1,), "failover", lost=(1,))
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (NO_LEADER, (1,))


def test_leadership_is_not_handed_back_to_who_lost_something() -> None:
    decision = eligible_preferred(state(2, (1, 2)), ALL, ALL, "rebalance", LeaderEligibility((1,)))
    assert isinstance(decision, Refused) and "lost" in decision.reason


@pytest.mark.parametrize(
    ("isr", "gone", "lost", "left"),
    [
        ((1, 2, 3), 3, (), (1, 2)),
        ((1, 2, 3), 3, (1,), (1, 2)),
        ((1, 2, 3), 3, (1, 2), (1, 2, 3)),  # the last that has everything stays in the ISR
        ((1, 3), 3, (1,), (1, 3)),
        ((3,), 3, (), (3,)),
    ],
)
def test_the_last_member_that_lost_nothing_keeps_its_place(
    isr: tuple[int, ...], gone: int, lost: tuple[int, ...], left: tuple[int, ...]
) -> None:
    decision = eligible_removal(state(gone, isr), gone, ALL, "it died", LeaderEligibility(lost))
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (NO_LEADER, left)
