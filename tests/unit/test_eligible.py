"""Which logs are complete: the proofs in the partition's state, and elections that use them."""

from dataclasses import replace

import pytest
from barnabas_controller.election.decision import Elected, Refused, Unchanged
from barnabas_controller.eligibility.elections import (
    eligible_offline,
    eligible_preferred,
    eligible_removal,
    handle_unclean_shutdown,
)
from barnabas_controller.eligibility.eligible_leader_replicas import (
    NO_LOG,
    LeaderEligibility,
    leader_eligibility,
    may_have_lost_records,
    with_elr,
    with_initial_elr,
    without_elr,
)
from barnabas_controller.eligibility.min_isr import NO_MINIMUM, MinimumIsr, minimum_isr
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, UNKNOWN, LeaderAndIsr
from barnabas_controller.store.znodes import Broker
from hypothesis import given
from hypothesis import strategies as st

ALL = (1, 2, 3)
MIN_1, MIN_2 = MinimumIsr(1, 0), MinimumIsr(2, 0)


def broker(broker_id: int, epoch: int, unbroken_since: int = -1, is_new: bool = False) -> Broker:
    return Broker(broker_id, (), None, epoch, unbroken_since, is_new)


def brokers(*epochs: int) -> dict[int, Broker]:
    """Return brokers 1, 2, ... that lost nothing since they registered; epoch 0: not registered."""
    return {b: broker(b, epoch) for b, epoch in enumerate(epochs, 1) if epoch}


def state(leader: int, isr: tuple[int, ...], **fields: object) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 7, isr, 3, 11, **fields)  # type: ignore[arg-type]


# ---- lost_something


@pytest.mark.parametrize(
    ("proved_at", "epoch", "unbroken_since", "lost"),
    [
        (17, 17, -1, False),  # the same incarnation
        (17, 40, 17, False),  # killed, and back with everything
        (17, 40, 5, False),
        (17, 40, -1, True),  # lost power, and back
        (17, 60, 40, True),  # lost power, back, and then killed: what was lost stays lost
        (None, 40, -1, False),  # Kafka wrote the state: nothing is known
    ],
)
def test_who_lost_something_since_it_proved_what_it_holds(
    proved_at: int | None, epoch: int, unbroken_since: int, lost: bool
) -> None:
    proofs = {} if proved_at is None else {1: proved_at}
    held = state(1, (1, 2), proved_at=proofs)
    assert may_have_lost_records(held, broker(1, epoch, unbroken_since)) is lost


@pytest.mark.parametrize(
    ("isr", "durable", "is_new", "lost"),
    [
        ((1,), True, False, False),
        ((1,), False, False, True),
        ((1,), True, True, True),  # it was durable on a disk that is no longer there
        ((1, 2), True, False, True),
    ],
)
def test_a_last_member_that_had_flushed_all_lost_nothing(
    isr: tuple[int, ...], durable: bool, is_new: bool, lost: bool
) -> None:
    held = state(NO_LEADER, isr, proved_at={1: 17}, durable=durable)
    assert may_have_lost_records(held, broker(1, 40, is_new=is_new)) is lost


# ---- account


@pytest.mark.parametrize(
    ("old_isr", "old_eligible", "new_isr", "min_isr", "eligible"),
    [
        ((1, 2, 3), (), (1, 2), 2, ()),  # the high watermark moves on without 3
        ((1, 2), (), (1,), 2, (2,)),  # it does not move: 2 has everything committed
        ((1, 2, 3), (), (1,), 2, (2, 3)),
        ((1,), (2, 3), (1, 2), 2, ()),
        ((1,), (2, 3), (2,), 2, (3, 1)),  # an eligible replica leads
        ((1, 2, 3), (), (1, 2), 3, (3,)),
        ((1, 2), (), (1,), 1, ()),
        ((1, 9), (), (1,), 2, ()),  # 9 is no longer assigned
    ],
)
def test_who_is_eligible(
    old_isr: tuple[int, ...],
    old_eligible: tuple[int, ...],
    new_isr: tuple[int, ...],
    min_isr: int,
    eligible: tuple[int, ...],
) -> None:
    old = state(1, old_isr, eligible=old_eligible)
    new = old.with_leader(new_isr[0], new_isr)
    assert with_elr(old, new, ALL, MinimumIsr(min_isr, 0), brokers(17, 18, 19)).eligible == eligible


def test_after_an_unclean_election_no_one_is_eligible() -> None:
    old = state(1, (1,), eligible=(2,))
    new = LeaderAndIsr(3, 8, (3,), 3, 11, RECOVERING)
    assert with_elr(old, new, ALL, MIN_2, brokers(17, 18, 19)).eligible == ()


def test_a_proof_is_as_old_as_the_place() -> None:
    """Members that stay keep theirs. A new member, or a new leader, proves again what it holds."""
    old = with_initial_elr(state(1, (1, 2)), brokers(17, 18, 19))
    assert old.proved_at == {1: 17, 2: 18}
    now = brokers(27, 28, 29)
    grown = with_elr(old, LeaderAndIsr(1, 7, (1, 2, 3), 3, 12), ALL, MIN_2, now)
    assert grown.proved_at == {1: 17, 2: 18, 3: 29}
    moved = with_elr(grown, grown.with_leader(2, (2, 3)), ALL, MIN_2, now)
    assert moved.proved_at == {2: 28, 3: 29} and moved.newest_proof == UNKNOWN
    thin = with_elr(moved, moved.with_leader(2, (2,)), ALL, MIN_2, now)
    assert (thin.eligible, thin.proved_at) == ((3,), {2: 28, 3: 29})
    orphan = with_elr(thin, thin.with_leader(NO_LEADER, (2,)), ALL, MIN_2, brokers(27, 38, 29))
    assert orphan.proved_at == {2: 28, 3: 29}, "a seat without a leader proves nothing new"


def test_the_newest_proof_stays_when_its_replica_leaves() -> None:
    now = brokers(27, 28, 29)
    whole = state(1, (1, 2, 3), proved_at={1: 17, 2: 18, 3: 19})
    thin = with_elr(whole, replace(whole, isr=(1,)), ALL, MIN_1, now)
    assert (thin.proved_at, thin.newest_proof) == ({1: 17}, 19)
    still = with_elr(thin, thin.with_leader(NO_LEADER, (1,)), ALL, MIN_1, now)
    assert (still.proved_at, still.newest_proof) == ({1: 17}, 19)
    grown = with_elr(still, replace(still, isr=(1, 2)), ALL, MIN_1, now)
    assert (grown.proved_at, grown.newest_proof) == ({1: 17, 2: 28}, UNKNOWN)


@pytest.mark.parametrize(
    ("new_leader", "new_isr", "durable"),
    [(NO_LEADER, (1,), True), (1, (1,), True), (1, (1, 2), False), (2, (2,), False)],
)
def test_durable_ends_with_the_isr_it_was_said_of(
    new_leader: int, new_isr: tuple[int, ...], durable: bool
) -> None:
    old = state(1, (1,), durable=True)
    new = old.with_leader(new_leader, new_isr)
    assert with_elr(old, new, ALL, MIN_2, brokers(17, 18)).durable is durable


def test_an_account_that_is_not_kept_up_is_dropped() -> None:
    kept = state(1, (1,), eligible=(2,), proved_at={1: 17, 2: 18}, durable=True)
    assert without_elr(kept) == state(1, (1,))


# ---- doubts


def test_the_eligibility_names_every_replica_that_matters() -> None:
    held = state(
        NO_LEADER, (1,), eligible=(2, 3, 4, 5), proved_at={1: 17, 2: 18, 3: 19, 4: 20, 5: 21}
    )
    here = {1: broker(1, 40), 2: broker(2, 41, 18), 3: broker(3, 42), 5: broker(5, 21)}
    found = leader_eligibility(held, (1, 2, 3, 4, 5), (1, 2, 3), here, MIN_2)
    assert found.lost == (1,)
    assert found.eligible_leader_replicas == (2,), "3 lost power, 4 and 5 are away"
    assert found.lost_eligible == (3,)
    assert found.new_disks == ()
    assert found.awaited == (4, 5)
    here[3] = broker(3, 42, is_new=True)
    assert leader_eligibility(held, (1, 2, 3), (1, 2, 3), here, MIN_2).new_disks == (3,)


@pytest.mark.parametrize(("version", "replacements"), [(0, (2,)), (UNKNOWN, ())])
def test_absent_members_are_replaced_only_under_the_minimum_that_is_known(
    version: int, replacements: tuple[int, ...]
) -> None:
    """Under another one the absent members alone may have committed records."""
    held = state(1, (1,), eligible=(2,), eligible_under=version, proved_at={1: 17, 2: 18})
    found = leader_eligibility(held, ALL, (2, 3), {2: broker(2, 18), 3: broker(3, 19)}, MIN_2)
    assert found.eligible_leader_replicas == (2,)
    assert found.replacements == replacements


def test_over_the_minimum_no_one_is_eligible() -> None:
    """`min.insync.replicas` was lowered: the high watermark may have moved without them."""
    held = state(NO_LEADER, (1,), eligible=(2,), proved_at={1: 17, 2: 18})
    found = leader_eligibility(held, ALL, ALL, {1: broker(1, 40), 2: broker(2, 18)}, NO_MINIMUM)
    assert found == LeaderEligibility(lost=(1,))


# ---- elections

WAIT = "wait"


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


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, 2),
        ({"min.insync.replicas": "1"}, 1),
        ({"min.insync.replicas": " +1 "}, 1),
        ({"min.insync.replicas": "7"}, 3),
    ],
)
def test_the_minimum_isr_is_read_as_brokers_read_it(
    overrides: dict[str, str], expected: int
) -> None:
    """Otherwise a replica would be eligible by another minimum than the leader commits with."""
    assert minimum_isr(overrides, 2, 3) == expected


@pytest.mark.parametrize("text", ["", "two", "0", "-1"])
def test_a_minimum_isr_that_no_broker_accepts_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        minimum_isr({"min.insync.replicas": text}, 2, 3)
