"""Elections as plain decisions: Kafka's own cases, then properties of all inputs."""

import pytest
from barnabas_controller.election.controlled_shutdown import elect_for_controlled_shutdown
from barnabas_controller.election.decision import Elected, Refused, Unchanged
from barnabas_controller.election.isr_removal import remove_from_isr
from barnabas_controller.election.offline import elect_offline, first_leader
from barnabas_controller.election.preferred import elect_preferred
from barnabas_controller.election.reassign import elect_for_reassignment
from barnabas_controller.eligibility.elections import (
    eligible_for_controlled_shutdown,
    eligible_for_reassignment,
    eligible_offline,
    eligible_preferred,
    eligible_removal,
    handle_unclean_shutdown,
)
from barnabas_controller.eligibility.eligible_leader_replicas import LeaderEligibility
from barnabas_controller.partitions.election_report import passed_over
from barnabas_controller.store.leader_and_isr import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    LeaderAndIsr,
)
from hypothesis import given
from hypothesis import strategies as st


def state(leader: int, isr: list[int], epoch: int = 7, recovery: int = RECOVERED) -> LeaderAndIsr:
    return LeaderAndIsr(leader, epoch, tuple(isr), 3, 11, recovery)


# Kafka's PartitionLeaderElectionAlgorithmsTest, case by case.
OFFLINE_CASES = [
    # assignment, isr, online, unclean, leader
    ([2, 4], [2, 4], [4], False, 4),
    ([2, 4], [2], [4], False, None),
    ([2, 4], [2], [4], True, 4),
    ([2, 4], [2], [], True, None),
    ([1, 2, 3], [3, 2], [1, 2, 3], False, 2),  # assignment order, not ISR order
    ([1, 2, 3], [1, 2, 3], [1, 2, 3], False, 1),
]


@pytest.mark.parametrize(("assignment", "isr", "online", "unclean", "leader"), OFFLINE_CASES)
def test_offline_election_takes_the_first_online_in_sync_replica(
    assignment: list[int], isr: list[int], online: list[int], unclean: bool, leader: int | None
) -> None:
    decision = elect_offline(state(9, isr), assignment, online, unclean, "broker 9 died")
    if leader is None:
        assert isinstance(decision, Refused)
        assert "broker 9 died" in decision.reason
    else:
        assert isinstance(decision, Elected)
        assert decision.state.leader == leader
        assert decision.state.leader_epoch == 8


def test_offline_election_keeps_the_online_members_of_the_isr() -> None:
    decision = elect_offline(state(1, [1, 3, 2]), [1, 2, 3], [2, 3], False, "broker 1 died")
    assert isinstance(decision, Elected)
    assert decision.state.isr == (3, 2)
    assert decision.recipients == (2, 3)
    assert decision.state.partition_epoch == 11, "the version to write on top of is kept"
    assert decision.reason == "broker 1 died"


@pytest.mark.parametrize("unclean", [True, False])
@pytest.mark.parametrize(
    "leader_eligibility",
    [
        LeaderEligibility(suspected=(1,)),
        LeaderEligibility(eligible_leader_replicas=(2,), suspected=(1,)),
        LeaderEligibility(lost=(2,), suspected=(1,)),
    ],
)
def test_a_suspect_of_the_isr_keeps_all_but_its_sound_members_from_leading(
    unclean: bool, leader_eligibility: LeaderEligibility
) -> None:
    isr = [1, 2] if leader_eligibility.lost else [1]
    refused = eligible_offline(state(1, isr), [1, 2], [2], unclean, "evidence", leader_eligibility)
    assert isinstance(refused, Refused)
    assert "[1] are suspected only" in refused.reason
    elected = eligible_offline(
        state(1, [1, 3]), [1, 2, 3], [2, 3], unclean, "evidence", leader_eligibility
    )
    assert isinstance(elected, Elected)
    assert elected.state.leader == 3


def test_a_suspected_leader_whom_no_one_can_replace_goes_on_leading() -> None:
    suspected = LeaderEligibility(suspected=(1, 2))
    assert isinstance(eligible_removal(state(1, [1]), 1, [1], "evidence", suspected), Unchanged)
    gone = remove_from_isr(state(1, [1]), 1, [1], "its session ended")
    assert isinstance(gone, Elected) and gone.state.leader == NO_LEADER
    follower = eligible_removal(state(1, [1, 2]), 2, [1, 2], "evidence", suspected)
    assert isinstance(follower, Elected) and follower.state.isr == (1,)


def test_unclean_election_starts_an_isr_of_its_own_and_says_that_data_may_be_lost() -> None:
    decision = elect_offline(state(1, [1]), [1, 2, 3], [3, 2], True, "broker 1 died")
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (2, (2,))
    assert decision.state.recovery_state == RECOVERING
    assert "UNCLEAN" in decision.reason


def test_a_refusal_names_who_was_online_and_who_was_needed() -> None:
    decision = elect_offline(state(1, [1]), [1, 2, 3], [2, 3], False, "broker 1 died")
    assert isinstance(decision, Refused)
    assert "[2, 3]" in decision.reason and "[1]" in decision.reason


@pytest.mark.parametrize(
    ("target", "isr", "online", "leader", "new_isr"),
    [
        ([2, 4], [2, 4], [4], 4, (2, 4)),
        ([2, 4], [2], [4], None, ()),
        ([2, 4], [2], [], None, ()),
        ([2, 4], [1, 2, 4], [1, 2, 4], 2, (2, 4)),
        ([2, 1], [1, 2, 4], [1, 2, 4], 1, (1, 2)),
    ],
)
def test_a_reassignment_takes_leader_and_isr_from_the_target_and_keeps_a_leader_that_is_in_it(
    target: list[int],
    isr: list[int],
    online: list[int],
    leader: int | None,
    new_isr: tuple[int, ...],
) -> None:
    decision = elect_for_reassignment(state(1, isr), target, online, "reassigned")
    if leader is None:
        assert isinstance(decision, Refused)
    else:
        assert isinstance(decision, Elected)
        assert (decision.state.leader, decision.state.isr) == (leader, new_isr)
        assert decision.recipients == tuple(target)


def test_a_reassignment_gives_no_lead_to_who_is_unfit() -> None:
    one, both = LeaderEligibility(lost=(2,)), LeaderEligibility(lost=(2,), suspected=(4,))
    decision = eligible_for_reassignment(state(1, [1, 2, 4]), [2, 4], [2, 4], "reassigned", one)
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (4, (2, 4))
    refused = eligible_for_reassignment(state(2, [1, 2, 4]), [2, 4], [2, 4], "reassigned", both)
    assert isinstance(refused, Refused)


@pytest.mark.parametrize(
    ("assignment", "isr", "online", "kind"),
    [
        ([2, 4], [2, 4], [2, 4], Elected),
        ([2, 4], [4], [2, 4], Refused),
        ([2, 4], [2, 4], [4], Refused),
        ([2, 4], [4], [4], Refused),
        ([4, 2], [2, 4], [2, 4], Unchanged),
    ],
)
def test_preferred_election_wants_the_head_of_the_assignment_online_and_in_sync(
    assignment: list[int], isr: list[int], online: list[int], kind: type
) -> None:
    decision = elect_preferred(state(4, isr), assignment, online, "rebalance")
    assert isinstance(decision, kind)
    if isinstance(decision, Elected):
        assert (decision.state.leader, decision.state.isr) == (2, tuple(isr))
        assert decision.recipients == (2, 4)


@pytest.mark.parametrize(
    ("isr", "registered", "shutting_down", "leader", "new_isr"),
    [
        ([2, 4], [2, 4], [2], 4, (4,)),
        ([2], [2, 4], [2], None, None),
        ([2, 4], [2, 4], [2, 4], None, None),
        ([2, 6, 4], [2, 6], [2], 6, (6, 4)),
    ],
)
def test_controlled_shutdown_moves_leadership_to_an_in_sync_replica_that_stays(
    isr: list[int],
    registered: list[int],
    shutting_down: list[int],
    leader: int | None,
    new_isr: tuple[int, ...] | None,
) -> None:
    decision = elect_for_controlled_shutdown(
        state(2, isr), [2, 4, 6], registered, shutting_down, "broker 2 is shutting down"
    )
    if leader is None:
        assert isinstance(decision, Refused)
    else:
        assert isinstance(decision, Elected)
        assert (decision.state.leader, decision.state.isr) == (leader, new_isr)
        assert decision.recipients == tuple(r for r in [2, 4, 6] if r in registered)


def test_a_reassignment_ends_with_a_leader_that_can_be_reached_if_there_is_one() -> None:
    isr = [1, 2, 4]
    for target, unreachable, leader in (
        ([2, 4], (2,), 4),
        ([2, 4], (2, 4), 2),  # it must end nevertheless
        ([2, 1], (1,), 1),  # the leader stays
    ):
        decision = eligible_for_reassignment(
            state(1, isr), target, target, "reassigned", LeaderEligibility(unreachable=unreachable)
        )
        assert isinstance(decision, Elected)
        assert decision.state.leader == leader
        assert decision.recipients == tuple(target)


def test_who_cannot_be_reached_is_handed_nothing_and_told_all_the_same() -> None:
    cut_off = LeaderEligibility(unreachable=(4,))
    decision = eligible_for_controlled_shutdown(
        state(2, [2, 4, 6]), [2, 4, 6], [2, 4, 6], [2], "broker 2 is shutting down", cut_off
    )
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (6, (4, 6))
    assert decision.recipients == (2, 4, 6)
    refused = eligible_for_controlled_shutdown(
        state(2, [2, 4]), [2, 4, 6], [2, 4, 6], [2], "broker 2 is shutting down", cut_off
    )
    assert isinstance(refused, Refused)
    assert refused.why == "of the ISR [2, 4] the controller cannot reach [4]"
    preferred = eligible_preferred(state(2, [2, 4]), [4, 2], [2, 4], "rebalance", cut_off)
    assert isinstance(preferred, Refused)
    assert preferred.why == "the controller cannot reach the preferred replica 4"


def test_the_first_leader_of_a_partition_has_every_live_replica_in_its_isr() -> None:
    assert first_leader([1, 2, 3], [3, 2], 5) == LeaderAndIsr(2, 0, (2, 3), 5)
    assert isinstance(first_leader([1, 2, 3], [4], 5), Refused)


def test_a_dead_follower_leaves_the_isr_and_the_leader_epoch_grows() -> None:
    decision = remove_from_isr(state(1, [1, 2, 3]), 2, [1, 2, 3], "broker 2 died")
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (1, (1, 3))
    assert decision.state.leader_epoch == 8
    assert decision.recipients == (1, 3)


def test_the_last_member_of_the_isr_stays_though_it_no_longer_leads() -> None:
    decision = remove_from_isr(state(1, [1]), 1, [1, 2, 3], "broker 1 died")
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (NO_LEADER, (1,))
    again = remove_from_isr(decision.state, 1, [1, 2, 3], "still dead")
    assert isinstance(again, Unchanged), "no epoch is burnt on a replica that is gone already"


def test_a_replica_out_of_the_isr_changes_nothing() -> None:
    assert isinstance(remove_from_isr(state(1, [1, 3]), 2, [1, 2, 3], ""), Unchanged)


replicas = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)


@given(replicas, replicas, st.sets(st.integers(0, 6)), st.booleans())
def test_a_clean_leader_was_always_online_and_in_sync(
    assignment: list[int], isr: list[int], online: set[int], unclean: bool
) -> None:
    before = state(9, isr)
    decision = elect_offline(before, assignment, online, unclean, "why")
    clean = any(r in isr and r in online for r in assignment)
    if isinstance(decision, Refused):
        assert not clean
        return
    after = decision.state
    assert after.leader in online and after.leader in assignment
    assert after.leader in after.isr
    assert after.leader_epoch == before.leader_epoch + 1
    assert (after.leader in isr) == clean, "a clean candidate is never passed over"
    if clean:
        assert set(after.isr) == set(isr) & online, "nobody enters an ISR by an election"
    else:
        assert unclean and after.isr == (after.leader,)


@given(replicas, replicas, st.integers(0, 6))
def test_an_isr_is_never_emptied(assignment: list[int], isr: list[int], gone: int) -> None:
    decision = remove_from_isr(state(isr[0], isr), gone, assignment, "why")
    if isinstance(decision, Elected):
        assert decision.state.isr
        assert set(decision.state.isr) <= set(isr)
        assert decision.state.leader != gone


@pytest.mark.parametrize(
    ("leader", "isr", "online", "since", "expected"),
    [
        (1, [1, 2, 3], [1, 2, 3], [1], (2, (2, 3))),  # a restarted leader
        (2, [1, 2, 3], [1, 2, 3], [1], (2, (2, 3))),  # a restarted follower
        (1, [1, 2, 3], [1, 3], [1], (3, (2, 3))),  # a dead broker leaves in the usual way
        (1, [1, 2, 3], [1, 2, 3], [1, 2, 3], None),  # no replica has more than another
        (1, [1, 2], [1, 3], [1], None),  # only 1 can serve
        (1, [1, 2], [1, 2, 3], [3], None),  # no member
    ],
)
def test_who_restarted_since_the_state_was_written_gives_its_place_to_those_who_did_not(
    leader: int,
    isr: list[int],
    online: list[int],
    since: list[int],
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    decision = handle_unclean_shutdown(state(leader, isr), [1, 2, 3], online, since, "failover")
    if expected is None:
        assert isinstance(decision, Unchanged)
    else:
        assert isinstance(decision, Elected)
        assert (decision.state.leader, decision.state.isr) == expected
        assert decision.state.leader_epoch == 8


def test_the_report_says_of_each_candidate_why_it_does_not_lead() -> None:
    offline = {1: "is shutting down"}
    assert passed_over([1, 2, 3, 4], 3, [1, 3, 4], offline) == [
        "broker 1 is shutting down",
        "broker 2 is not in the ISR",
    ]
    assert len(passed_over([1, 2], -1, [1], offline)) == 2
