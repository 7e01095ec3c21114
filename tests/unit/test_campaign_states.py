"""The states that a campaign has reached are counted, and those that it has not are named."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.faults.nemesis import Nemesis
from barnabas_simulator.campaign.judge import coverage
from barnabas_simulator.campaign.judge.states import (
    EPOCHS,
    REQUESTS,
    RoleChange,
    States,
    isr_of,
    pair,
    role_changes,
    tables,
    wanted,
)
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.loop import run as run_virtually

FLIGHTS = TopicPartition("flights", 0)


def replica(epoch: int, end: int, leads: bool = False, epochs: int = 1) -> Replica:
    known = tuple((number, number) for number in range(epochs))
    return Replica(1, "broker-1/1", epoch, 0, 0, 0, end, known, epoch if leads else None, None)


class Run:
    """What a run reports; `faults` and `requests` are those of the moment."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[FaultKind] = []
        self.requests: list[int] = []
        self.states = States(self.counts, "flights", lambda: self.faults, lambda: self.requests)

    def replica_is(self, *looks: Replica) -> dict[str, int]:
        before = None
        for look in looks:
            self.states.replica_changed(before, look)
            before = look
        return dict(self.counts)

    def znode_is(self, *states: LeaderAndIsr, replicas: Sequence[int] = (1, 2, 3)) -> None:
        before = None
        for state in states:
            self.states.state_changed(FLIGHTS, before, state, replicas)
            before = state


@pytest.fixture
def run() -> Run:
    return Run()


# ---- role changes under faults


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (None, replica(4, 10), [RoleChange.BECAME_FOLLOWER]),
        (None, replica(4, 10, leads=True), [RoleChange.BECAME_LEADER]),
        (replica(4, 10), replica(4, 12), []),
        (replica(4, 10), replica(4, 8), [RoleChange.TRUNCATED]),
        (replica(4, 10), replica(5, 10), [RoleChange.BECAME_FOLLOWER]),
        (replica(4, 10), replica(5, 10, leads=True), [RoleChange.BECAME_LEADER]),
        (replica(4, 10, leads=True), replica(5, 10, leads=True), [RoleChange.BECAME_LEADER]),
        (replica(4, 10, leads=True), replica(4, 11, leads=True), []),
        (
            replica(4, 10, leads=True),
            replica(5, 7),
            [RoleChange.BECAME_FOLLOWER, RoleChange.TRUNCATED],
        ),
    ],
)
def test_a_role_changes_with_the_leader_epoch_and_a_log_is_truncated_under_any(
    before: Replica | None, after: Replica, found: list[RoleChange]
) -> None:
    assert role_changes(before, after) == found


def test_each_fault_of_the_moment_is_counted_with_each_change(run: Run) -> None:
    run.faults = [FaultKind.PAUSE, FaultKind.CUT]
    run.replica_is(replica(4, 10, leads=True))
    run.faults = [FaultKind.CUT]
    run.states.replica_changed(replica(4, 10, leads=True), replica(5, 7))
    run.states.replica_changed(replica(5, 7), replica(5, 9))
    under = {name: count for name, count in run.counts.items() if " under " in name}
    assert under == {
        pair(FaultKind.PAUSE, RoleChange.BECAME_LEADER): 1,
        pair(FaultKind.CUT, RoleChange.BECAME_LEADER): 1,
        pair(FaultKind.CUT, RoleChange.BECAME_FOLLOWER): 1,
        pair(FaultKind.CUT, RoleChange.TRUNCATED): 1,
    }


# ---- logs, ISRs and producers


def test_a_log_is_counted_whenever_it_has_another_number_of_epochs(run: Run) -> None:
    looks = [replica(9, 10, epochs=n) for n in (1, 1, 2, 3, 4, 4, 5, 9, 1)]
    one, two, few, many = EPOCHS.names
    assert run.replica_is(*looks) == {one: 2, two: 1, few: 2, many: 2}


def test_an_empty_log_has_no_epochs_to_count(run: Run) -> None:
    assert run.replica_is(replica(9, 0, epochs=0)) == {}


def test_an_isr_is_counted_when_its_members_change(run: Run) -> None:
    three, two, other = (LeaderAndIsr(1, 1, isr, 1) for isr in ((1, 2, 3), (1, 2), (1, 3)))
    moved = LeaderAndIsr(3, 2, (3, 1), 1)
    run.znode_is(three, two, other, moved, three)
    assert run.counts[isr_of(3, 3)] == 2
    assert run.counts[isr_of(2, 3)] == 2
    assert run.counts[isr_of(1, 3)] == 0


def test_requests_are_counted_for_each_producer_when_another_leader_is_elected(run: Run) -> None:
    run.requests = [0, 1, 7]
    first, none, second = (LeaderAndIsr(b, 1, (1, 2), 1) for b in (1, NO_LEADER, 2))
    run.znode_is(first, first, none, second)
    assert {name: run.counts[name] for name in REQUESTS.names} == dict(
        zip(REQUESTS.names, (1, 1, 0, 1), strict=True)
    )


def test_a_partition_that_no_producer_sends_to_says_nothing_of_their_requests(run: Run) -> None:
    run.requests = [2]
    one, two = (LeaderAndIsr(b, 1, (1, 2), 1) for b in (1, 2))
    run.states.state_changed(TopicPartition("scratch", 0), one, two, (1, 2))
    assert not run.counts


# ---- the faults of the moment


def test_a_fault_is_present_while_it_lasts_and_a_few_seconds_after_its_begin_and_its_end() -> None:
    async def main() -> dict[float, list[FaultKind]]:
        nemesis = Nemesis(SimulatedCluster(brokers=0), [], lambda _: lambda: None, lambda _: None)
        playing = asyncio.create_task(
            nemesis.play(
                [
                    Fault(1.0, FaultKind.KILL_CLIENT, seconds=20.0),
                    Fault(2.0, FaultKind.LEAVE_GROUP),
                ]
            )
        )
        seen, loop = {}, asyncio.get_running_loop()
        for at in (0.5, 2.5, 15.0, 22.0, 30.0):
            await asyncio.sleep(at - loop.time())
            seen[at] = sorted(nemesis.present())
        await playing
        nemesis.close()
        return seen

    assert run_virtually(main()) == {
        0.5: [],
        2.5: [FaultKind.KILL_CLIENT, FaultKind.LEAVE_GROUP],
        15.0: [FaultKind.KILL_CLIENT],
        22.0: [FaultKind.KILL_CLIENT],
        30.0: [],
    }


# ---- what a campaign says


def test_a_long_campaign_names_the_states_that_it_has_not_reached() -> None:
    counts = Counter(dict.fromkeys(coverage.wanted(coverage.MANY_RUNS), 1))
    assert coverage.missing(counts, coverage.MANY_RUNS) == []
    absent = [pair(FaultKind.WIPE, RoleChange.TRUNCATED), isr_of(1, 4), EPOCHS.names[-1]]
    for name in absent:
        del counts[name]
    assert coverage.missing(counts, coverage.MANY_RUNS) == absent
    assert coverage.missing(counts, coverage.MANY_RUNS - 1) == []


def test_every_state_has_its_place_in_the_tables() -> None:
    counts = Counter({name: 10_000 + number for number, name in enumerate(wanted())})
    printed = "\n".join(tables(counts)).split()
    assert [str(count) for count in counts.values() if str(count) not in printed] == []
    lines = coverage.table(counts)
    assert not any("state: " in line for line in lines)
    assert all(len(line) <= 120 for line in lines)
