"""Which logs are complete: the proofs in the partition's state, and who is eligible by them."""

from dataclasses import replace

import pytest
from barnabas_controller.eligibility.eligible_leader_replicas import (
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
    assert found == LeaderEligibility(lost=(1,), once_eligible=(2,))


def test_a_replica_that_once_was_eligible_may_be_on_a_new_disk() -> None:
    held = state(NO_LEADER, (1,), eligible=(2, 3), eligible_under=5, proved_at={2: 18, 3: 19})
    here = {2: broker(2, 40, is_new=True), 3: broker(3, 19, is_new=True)}
    found = leader_eligibility(held, ALL, (2, 3), here, MIN_2)
    assert found == LeaderEligibility(once_eligible=(2, 3), new_disks=(2,), awaited=(1,))


# ---- the minimum ISR


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
