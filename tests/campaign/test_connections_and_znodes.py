"""Faults of single connections and of ZooKeeper's data, as the random campaign draws them."""

import asyncio
from dataclasses import replace

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.campaign.faults.faults import (
    OF_CONNECTIONS,
    OF_ZOOKEEPER,
    Fault,
    FaultKind,
    Znode,
)
from barnabas_simulator.campaign.faults.restored_copy import RestoredCopy
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.connections import of_connections
from barnabas_simulator.campaign.plans.disks import of_disks
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.plans.zookeeper import of_zookeeper
from barnabas_simulator.campaign.schedule import Outcome, run_schedule
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import control_rules
from barnabas_simulator.loop import run


def held(options: Options, faults: list[Fault]) -> Outcome:
    outcome = run_schedule(options, faults)
    assert outcome.violation is None
    return outcome


def test_each_kind_is_drawn_and_the_others_of_a_seed_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [Options.draw(seed) for seed in range(30)]
    whole = [plan(options) for options in drawn]
    kinds = {fault.kind for faults in whole for fault in faults}
    assert kinds >= {*OF_CONNECTIONS, *OF_ZOOKEEPER}
    for name in ("of_connections", "of_zookeeper", "of_disks"):
        monkeypatch.setattr(f"barnabas_simulator.campaign.plans.plan.{name}", lambda _: [])
    for options, faults in zip(drawn, whole, strict=True):
        own = {*of_connections(options), *of_zookeeper(options), *of_disks(options)}
        assert plan(options) == [fault for fault in faults if fault not in own]


def test_states_are_set_back_only_where_a_lone_member_exposes_nothing() -> None:
    """`docs/failures.md` says what consumers lose of it elsewhere."""
    set_back = {
        options.has_gate
        for options in map(Options.draw, range(200))
        for fault in of_zookeeper(options)
        if fault.kind is FaultKind.SET_BACK_EPOCH and fault.target == Znode.STATE
    }
    assert set_back == {True}


@pytest.mark.parametrize("way", ["to", "from", "both"])
def test_a_leader_that_is_cut_from_the_controller_leads_on(way: str) -> None:
    """It is broker 2, broker 1 is the controller, and broker 3 stands still meanwhile."""
    faults = [
        Fault(2.0, FaultKind.CUT_CONTROLLER, "leader", way, 16.0),
        Fault(2.5, FaultKind.PAUSE, "3", seconds=13.0),
    ]
    options = Options(3, session_timeout_ms=30_000, lag_max_ms=1_000, chaos_seconds=20.0)
    options = replace(options, has_admin=False, partitions=1)
    counts = held(options, faults).counts
    assert counts["fault: cut-controller"] == 1
    assert counts[f"event: {EventKind.CONTROLLER_UNREACHABLE}"]
    assert counts[f"event: {EventKind.CONTROLLER_REACHABLE}"]


@pytest.mark.parametrize("sender", ["controller", "follower", "producer-0", "order-producer-0"])
def test_late_frames_of_an_abandoned_connection_harm_no_one(sender: str) -> None:
    """A producer's receiver leads, or coordinates its transactions."""
    receiver = "transactions" if sender.startswith("order") else "leader"
    faults = [
        Fault(1.5 * n, FaultKind.LATE_FRAMES, sender, receiver, 0.8 + 0.3 * n) for n in range(8)
    ]
    faults += [Fault(0.4 + 3.0 * n, FaultKind.EXPIRE, "leader") for n in range(4)]
    faults.sort(key=lambda fault: fault.at)
    options = Options(seed=6, chaos_seconds=14.0, order_producers=1, transaction_pause=0.05)
    counts = held(options, faults).counts
    assert counts["fault: late-frames"] >= 4


@pytest.mark.parametrize("target", ["leader", "controller", "follower"])
def test_a_server_of_zookeeper_that_lags_harms_no_one(target: str) -> None:
    """Elections and changes of the ISR rest on old data, again and again."""
    faults = [Fault(6.0 * n, FaultKind.LAG_ZOOKEEPER, target, "2.5", 5.9) for n in range(4)]
    faults += [Fault(1.0 + 6.0 * n, FaultKind.EXPIRE, "controller") for n in range(4)]
    faults += [Fault(3.0 + 6.0 * n, FaultKind.KILL, "leader", seconds=1.0) for n in range(4)]
    faults.sort(key=lambda fault: fault.at)
    counts = held(Options(seed=8, chaos_seconds=24.0), faults).counts
    assert counts["fault: lag-zookeeper"] >= 3


@pytest.mark.parametrize("znode", Znode)
def test_what_was_damaged_heals(znode: Znode) -> None:
    """Controllers and leaders change meanwhile."""
    whose = iter(["leader", "controller", "follower"])
    faults: list[Fault] = []
    for start in (0.0, 8.0, 16.0):
        other = next(whose) if znode is Znode.REGISTRATION else ""
        faults.append(Fault(start + 1.0, FaultKind.DAMAGE_ZNODE, znode, other, 5.0))
        faults.append(Fault(start + 2.0, FaultKind.EXPIRE, "controller"))
        faults.append(Fault(start + 3.0, FaultKind.KILL, "leader", seconds=2.0))
    counts = held(Options(seed=5, chaos_seconds=24.0), faults).counts
    assert counts["fault: damage-znode"] >= 2
    if znode is not Znode.TOPIC_CONFIG:
        assert counts[f"event: {EventKind.ZNODE_MALFORMED}"]


@pytest.mark.parametrize("znode", [Znode.REGISTRATION, Znode.CONTROLLER])
def test_an_ephemeral_znode_that_was_deleted_comes_back(znode: Znode) -> None:
    faults = [
        Fault(3.0 * n, FaultKind.DELETE_ZNODE, znode, whose)
        for n, whose in enumerate(["leader", "controller", "follower", "leader"])
    ]
    counts = held(Options(seed=5, chaos_seconds=14.0), faults).counts
    assert counts["fault: delete-znode"] >= 3


@pytest.mark.parametrize("znode", [Znode.STATE, Znode.CONTROLLER_EPOCH])
def test_an_epoch_that_was_set_back_is_raised(znode: Znode) -> None:
    faults: list[Fault] = []
    for start in (0.0, 10.0, 20.0):
        faults.append(Fault(start + 1.0, FaultKind.KILL, "leader", seconds=1.0))
        faults.append(Fault(start + 4.0, FaultKind.EXPIRE, "controller"))
        faults.append(Fault(start + 6.0, FaultKind.SET_BACK_EPOCH, znode, seconds=2.0))
    counts = held(Options(seed=5, chaos_seconds=30.0), faults).counts
    assert counts["fault: set-back-epoch"] >= 1
    if znode is Znode.STATE:
        assert counts[f"event: {EventKind.EPOCH_RAISED}"]


def test_only_what_was_set_back_may_have_a_leader_from_outside_the_isr() -> None:
    before, after = LeaderAndIsr(2, 4, (1, 2), 7), LeaderAndIsr(3, 6, (3, 1, 2), 7)
    broken = control_rules.leader_in_isr.broken
    assert broken(before, after, [1, 2, 3], 5) is None
    assert "nor eligible" in (broken(before, after, [1, 2, 3], 4) or "")
    assert "nor eligible" in (broken(before, after, [1, 2, 3], 6) or "")
    assert "more than the replicas" in (broken(before, after, [1, 2], 5) or "")


@pytest.mark.parametrize("later", [0.5, 15.0], ids=["at once", "after the sessions"])
def test_all_brokers_restarted_together_with_an_older_copy_lose_nothing(later: float) -> None:
    """Leaders, ISRs and controllers have changed since the copy."""
    faults = [Fault(1.0 + 2.5 * n, FaultKind.KILL, "leader", seconds=1.0) for n in range(5)]
    faults.append(Fault(5.0, FaultKind.EXPIRE, "controller"))
    faults.append(Fault(16.0, FaultKind.RESTORE_ZOOKEEPER, other="14", seconds=later))
    faults += [Fault(17.0 + n, FaultKind.KILL, "leader", seconds=1.0) for n in range(2)]
    faults.sort(key=lambda fault: fault.at)
    counts = held(Options(seed=9, chaos_seconds=30.0, has_admin=False), faults).counts
    assert counts["fault: restore-zookeeper"] == 1
    if later > 1.0:
        assert counts[f"event: {EventKind.ZOOKEEPER_BEHIND}"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_copy_is_restored_only_where_there_are_eligible_replicas(kept: bool) -> None:
    """`docs/failures.md` promises nothing without them."""
    drawn = (replace(Options.draw(seed, Mode.SAFETY), has_gate=kept) for seed in range(60))
    kinds = {fault.kind for options in drawn for fault in plan(options)}
    assert (FaultKind.RESTORE_ZOOKEEPER in kinds) is kept


@pytest.mark.parametrize("covers", [True, False])
def test_no_copy_is_restored_that_lacks_a_member_with_all_records(covers: bool) -> None:
    """Or the partitions of now, or their replicas."""
    options = Options(seed=9, chaos_seconds=2.0, has_admin=False)
    cluster = SimulatedCluster(seed=9)
    fault = Fault(2.0, FaultKind.RESTORE_ZOOKEEPER, other="1.0", seconds=1.0)
    restored = RestoredCopy(cluster, options.min_isr, has_damage=lambda: False)

    async def story() -> bool:
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            restored.schedule([fault])
            await asyncio.sleep(0 if covers else 1.5)
            await admin.create_topic("flights", options.partitions, 3)
        return await restored.until_covered(fault)

    assert run(story(), seed=9, max_time=60.0) is covers


def test_no_copy_is_restored_that_needs_a_damaged_log() -> None:
    """The restart finds the damage, and with a minimum ISR of 1 its records may be nowhere else."""
    options = Options(seed=9, chaos_seconds=16.0, has_admin=False, min_isr=1)
    rotten = Fault(8.0, FaultKind.ROT, "follower")
    restoring = Fault(14.0, FaultKind.RESTORE_ZOOKEEPER, other="2.0", seconds=1.0)
    counts = held(options, [rotten, restoring]).counts
    assert counts["fault: rot"] == 1
    assert not counts["fault: restore-zookeeper"]


@pytest.mark.parametrize(
    "damage",
    [
        Fault(1.0, FaultKind.DAMAGE_ZNODE, Znode.CONTROLLER_EPOCH.value, seconds=2.0),
        Fault(1.0, FaultKind.DAMAGE_ZNODE, Znode.TOPIC.value, seconds=2.0),
        Fault(1.0, FaultKind.SPOIL_SETTINGS, seconds=2.0),
    ],
    ids=["controller epoch", "topic", "settings"],
)
def test_no_copy_is_restored_that_was_taken_while_it_was_damaged(damage: Fault) -> None:
    """No controller would be elected, or no leader, or no role taken, with whatever restart."""
    restoring = Fault(4.0, FaultKind.RESTORE_ZOOKEEPER, other="2.0", seconds=1.0)
    options = Options(seed=9, chaos_seconds=6.0, has_admin=False)
    counts = held(options, [damage, restoring]).counts
    assert counts[f"fault: {damage.kind.value}"] == 1
    assert not counts["fault: restore-zookeeper"]
