"""Each fault takes effect, is seen to, and is healed; an injector that cannot work says so."""

import time
from collections.abc import Iterator

import pytest
from barnabas.sync import Admin, Producer
from barnabas_tools.chaos.faults.compose_cluster import (
    PROJECT_FILES,
    ComposeCluster,
    docker,
    wait_until,
)
from barnabas_tools.chaos.faults.disks import FullDisk, Wiped
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect, ToolMissing
from barnabas_tools.chaos.faults.fault import Fault, Together
from barnabas_tools.chaos.faults.network import Isolated, OneWayCut, SlowLink, link_cut, ring
from barnabas_tools.chaos.faults.probe import bytes_per_second, passes
from barnabas_tools.chaos.faults.processes import Killed, Paused, Restarted, Stopped
from barnabas_tools.chaos.faults.scenarios import (
    LeaderCutFromController,
    RollingRestart,
    chase_the_controller,
    chase_the_leader,
)
from barnabas_tools.chaos.faults.toolbox import Toolbox
from barnabas_tools.chaos.faults.zookeeper import (
    SessionEnded,
    ZnodeDeleted,
    registration,
    zookeeper_killed,
)

from tests.support.compose import BOOTSTRAP, running

pytestmark = pytest.mark.docker

TOPIC = "faults"
WHOLE_SECONDS = 120.0
FAST_BYTES_PER_SECOND = 1_000_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[ComposeCluster]:
    with running(PROJECT_FILES) as cluster:
        with Admin(bootstrap_servers=BOOTSTRAP) as admin:
            admin.create_topic(TOPIC, 3, 3, configs={"min.insync.replicas": "2"})
        yield cluster


@pytest.fixture
def tools(cluster: ComposeCluster) -> Toolbox:
    return Toolbox(cluster)


begun: list[Fault] = []


def make_whole(cluster: ComposeCluster) -> None:
    """Heal what has begun, and start what does not run: after a test that failed in between."""
    faults = [*begun]
    begun.clear()
    Together("all", faults).heal()
    for service in (*cluster.zookeepers, *cluster.brokers):
        if cluster.state(service) != "running":
            cluster.start(service)


def each_leads(cluster: ComposeCluster) -> bool:
    leaders = {each.leader_id for each in cluster.partitions(TOPIC).values()}
    return len(leaders) == len(cluster.brokers)


@pytest.fixture(autouse=True)
def whole(cluster: ComposeCluster) -> Iterator[None]:
    """Every broker runs, every replica is in sync, and the three brokers lead a partition each.

    The tests before may have left all of them to one, which may be the controller too."""
    wait_until("every replica is in sync", cluster.in_sync, WHOLE_SECONDS)
    with Admin(bootstrap_servers=BOOTSTRAP) as admin:
        admin.elect_leaders("preferred")
    wait_until("each broker leads a partition", lambda: each_leads(cluster), WHOLE_SECONDS)
    yield
    make_whole(cluster)


def begins(fault: Fault) -> None:
    """Inject a fault that can be seen only when it is there; print what was seen."""
    with pytest.raises(NotInEffect):
        fault.verify()
    begun.append(fault)
    fault.inject()
    print(f"{fault.name}: {fault.verify()}")


def ends(fault: Fault) -> None:
    """Heal, twice, because a run may heal what has healed; it is no longer in effect."""
    fault.heal()
    fault.heal()
    begun.remove(fault)
    with pytest.raises(NotInEffect):
        fault.verify()


def produce(value: bytes) -> None:
    with Producer(bootstrap_servers=BOOTSTRAP, acks="all") as producer:
        producer.send_and_wait(TOPIC, value)


def test_what_a_failed_test_leaves_broken_is_healed(
    cluster: ComposeCluster, tools: Toolbox
) -> None:
    for fault in (
        zookeeper_killed(cluster),
        Paused(cluster, "broker1"),
        SlowLink(tools, "broker2"),
        FullDisk(tools, "broker3"),
    ):
        begins(fault)
    Killed(cluster, "broker2").inject()
    make_whole(cluster)
    wait_until("every replica is in sync", cluster.in_sync, WHOLE_SECONDS)


# ---- processes


@pytest.mark.parametrize("kind", [Killed, Stopped, Paused])
def test_a_process_that_is_killed_stopped_or_paused(
    cluster: ComposeCluster, kind: type[Killed] | type[Stopped] | type[Paused]
) -> None:
    fault = kind(cluster, "broker2")
    begins(fault)
    produce(b"without broker 2")
    ends(fault)


def test_a_restart_at_once(cluster: ComposeCluster) -> None:
    fault = Restarted(cluster, "broker2")
    begins(fault)
    assert cluster.state("broker2") == "running"
    fault.heal()


# ---- network


def test_a_one_way_cut_leaves_the_other_direction(tools: Toolbox) -> None:
    fault = OneWayCut(tools, "broker1", "broker2")
    begins(fault)
    assert passes(tools, "broker2", "broker1")
    assert passes(tools, "broker3", "broker2")
    ends(fault)


def test_a_link_that_is_cut_leaves_the_others(tools: Toolbox) -> None:
    fault = link_cut(tools, "broker1", "broker2")
    begins(fault)
    assert passes(tools, "broker1", "broker3") and passes(tools, "broker3", "broker2")
    ends(fault)


def test_an_isolated_broker_reaches_no_other_and_leads_nothing(
    cluster: ComposeCluster, tools: Toolbox
) -> None:
    leader = cluster.leader(TOPIC, 0)
    assert leader is not None
    fault = Isolated(tools, leader)
    begins(fault)
    wait_until("another leads", lambda: cluster.leader(TOPIC, 0) not in (None, leader), 60)
    ends(fault)


def test_a_ring_cuts_each_broker_from_the_next(cluster: ComposeCluster, tools: Toolbox) -> None:
    fault = ring(tools, cluster)
    begins(fault)
    assert passes(tools, "broker1", "broker2") and passes(tools, "zookeeper", "broker1")
    ends(fault)


def test_a_slow_link(tools: Toolbox) -> None:
    fault = SlowLink(tools, "broker2")
    begins(fault)
    ends(fault)
    assert bytes_per_second(tools, "broker2", "broker1") > FAST_BYTES_PER_SECOND


def test_rules_that_a_restart_has_removed_are_healed(
    cluster: ComposeCluster, tools: Toolbox
) -> None:
    fault = OneWayCut(tools, "broker1", "broker3")
    begins(fault)
    Restarted(cluster, "broker3").inject()
    ends(fault)


def test_a_leader_that_is_cut_from_the_controller(cluster: ComposeCluster, tools: Toolbox) -> None:
    fault = LeaderCutFromController(tools, TOPIC)
    begins(fault)
    ends(fault)


# ---- disks


def test_a_wiped_follower_comes_back_in_sync(cluster: ComposeCluster, tools: Toolbox) -> None:
    produce(b"before the disk is lost")
    leader = cluster.leader(TOPIC, 0)
    follower = next(each for each in cluster.brokers if each != leader)
    fault = Wiped(tools, follower)
    begins(fault)
    ends(fault)


def test_a_full_disk_and_room_again(cluster: ComposeCluster, tools: Toolbox) -> None:
    fault = FullDisk(tools, "broker3")
    begins(fault)
    produce(b"without room on broker 3")
    ends(fault)


# ---- ZooKeeper


def test_zookeeper_is_killed(cluster: ComposeCluster) -> None:
    fault = zookeeper_killed(cluster)
    begins(fault)
    produce(b"without ZooKeeper")
    ends(fault)


def test_a_session_that_ends(cluster: ComposeCluster) -> None:
    fault = SessionEnded(cluster, "broker2")
    begins(fault)
    ends(fault)


@pytest.mark.parametrize("path", ["/controller", registration("broker2")])
def test_a_znode_that_is_deleted(cluster: ComposeCluster, path: str) -> None:
    fault = ZnodeDeleted(cluster, path)
    begins(fault)
    ends(fault)


# ---- scenarios


def test_the_leader_is_chased(cluster: ComposeCluster) -> None:
    fault = chase_the_leader(cluster, TOPIC, rounds=2)
    begins(fault)
    fault.heal()


def test_the_controller_is_chased(cluster: ComposeCluster) -> None:
    fault = chase_the_controller(cluster, rounds=2)
    begins(fault)
    fault.heal()


def test_every_broker_is_restarted_in_turn(cluster: ComposeCluster) -> None:
    fault = RollingRestart(cluster)
    begins(fault)
    fault.heal()


# ---- what cannot be injected


def test_a_tool_that_the_image_lacks_is_named(cluster: ComposeCluster) -> None:
    bare = Toolbox(cluster, image="debian:bookworm-slim")
    with pytest.raises(ToolMissing, match="^iptables is missing in the image debian:bookworm-slim"):
        OneWayCut(bare, "broker1", "broker2").inject()
    with pytest.raises(ToolMissing, match="^tc is missing in the image debian:bookworm-slim"):
        SlowLink(bare, "broker1").inject()


def test_an_image_that_is_not_built_is_named(cluster: ComposeCluster) -> None:
    absent = Toolbox(cluster, image="barnabas-faults-absent")
    with pytest.raises(ToolMissing, match=r"^there is no image .* build disks$"):
        SlowLink(absent, "broker1").inject()


def test_a_program_that_a_container_lacks_is_named(cluster: ComposeCluster) -> None:
    with pytest.raises(ToolMissing, match="^strace is missing in the container of broker1"):
        cluster.execute("broker1", "strace")


def test_a_container_without_a_network_is_named(cluster: ComposeCluster, tools: Toolbox) -> None:
    killed = Killed(cluster, "broker2")
    killed.inject()
    with pytest.raises(FaultError, match="^broker2 has no network: it is exited"):
        SlowLink(tools, "broker2").inject()
    killed.heal()


def test_a_service_that_is_not_there_is_named(cluster: ComposeCluster) -> None:
    with pytest.raises(FaultError, match="^there is no container of broker9"):
        Killed(cluster, "broker9").inject()


def test_a_volume_without_a_size_is_never_filled(cluster: ComposeCluster, tools: Toolbox) -> None:
    name = f"unlimited-{time.monotonic_ns()}"
    labels = [f"com.docker.compose.project={name}", "com.docker.compose.service=broker1"]
    options = [part for label in labels for part in ("--label", label)]
    docker("create", *options, "--volume", f"{name}:/var/lib/barnabas", "barnabas-broker")
    other = ComposeCluster(name, tools.cluster.folder)
    try:
        with pytest.raises(FaultError, match="no size of its own"):
            FullDisk(Toolbox(other), "broker1").inject()
    finally:
        docker("rm", "--force", other.container("broker1"))
        docker("volume", "rm", name)
