"""Real brokers are held at each pause point: what has happened there, and what has not."""

import asyncio
from collections.abc import Iterator

import pytest
from barnabas import Admin, Producer
from barnabas_common.runtime import PausePoint
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.layout import pause_directory

from tests.support.cluster_state import controller_id, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.replicas import replicas, until_replicas

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "60000",
        "pause.directory": str(pause_directory(directory)),
    }
    with real_cluster(directory, config, brokers=2) as running:
        yield running


@pytest.fixture(autouse=True)
def _nobody_stays_held(cluster: LocalCluster) -> Iterator[None]:
    yield
    cluster.pauses.release_all()


async def _topic_led_by(cluster: LocalCluster, leader: int, name: str) -> TopicPartition:
    follower = 3 - leader
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(name, assignments={0: [leader, follower]})
    await wait_until_in_sync(cluster.bootstrap, name, replicas=2)
    return TopicPartition(name, 0)


async def test_the_leader_knows_of_a_commit_one_round_before_its_follower(
    cluster: LocalCluster,
) -> None:
    """The leader is held between a fetch's effect and its answer; the high watermarks differ."""
    key = await _topic_led_by(cluster, 1, "one-round")
    async with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        await producer.send_and_wait(key.topic, b"m1", partition=0)
        await until_replicas(
            cluster.bootstrap, key, lambda r: {r[1].high_watermark, r[2].high_watermark} == {1}
        )
        cluster.pauses.hold(2, PausePoint.FOLLOWER_BEFORE_FETCH)
        await cluster.pauses.reached(2, PausePoint.FOLLOWER_BEFORE_FETCH)
        sent = await producer.send(key.topic, b"m2", partition=0)
        appended = await until_replicas(cluster.bootstrap, key, lambda r: r[1].log_end_offset == 2)
        assert (appended[1].high_watermark, appended[2].log_end_offset) == (1, 1)

        cluster.pauses.hold(2, PausePoint.FOLLOWER_BEFORE_APPLY, peer=1)
        cluster.pauses.release(2, PausePoint.FOLLOWER_BEFORE_FETCH)
        await cluster.pauses.reached(2, PausePoint.FOLLOWER_BEFORE_APPLY, peer=1)
        assert not sent.done()
        assert (await replicas(cluster.bootstrap, key))[2].log_end_offset == 1

        cluster.pauses.hold(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, peer=2)
        cluster.pauses.release(2, PausePoint.FOLLOWER_BEFORE_APPLY, peer=1)
        assert (await sent).offset == 1  # the second fetch has had its effect
        await cluster.pauses.reached(1, PausePoint.LEADER_BEFORE_FETCH_ANSWER, peer=2)
        now = await replicas(cluster.bootstrap, key)
        assert (now[1].high_watermark, now[2].high_watermark) == (2, 1)
        assert (now[1].log_end_offset, now[2].log_end_offset) == (2, 2)

        cluster.pauses.release_all()
        await until_replicas(cluster.bootstrap, key, lambda r: r[2].high_watermark == 2)


@pytest.mark.parametrize(
    "point", [PausePoint.CONTROLLER_BEFORE_LEADER_AND_ISR, PausePoint.ROLE_BEFORE_CHANGE]
)
async def test_a_replica_exists_only_when_its_broker_was_told_and_did_it(
    cluster: LocalCluster, point: PausePoint
) -> None:
    controller = await controller_id(cluster.bootstrap)
    told = 3 - controller
    at_controller = point is PausePoint.CONTROLLER_BEFORE_LEADER_AND_ISR
    place = (controller, point, told) if at_controller else (told, point, None)
    cluster.pauses.hold(*place)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        creating = asyncio.create_task(
            admin.create_topic(point.value, assignments={0: [controller, told]})
        )
        await cluster.pauses.reached(*place)
        key = TopicPartition(point.value, 0)
        found = await until_replicas(cluster.bootstrap, key, lambda r: controller in r)
        assert found[controller].is_leader and told not in found
        cluster.pauses.release(*place)
        await creating  # every broker knows it now
    await until_replicas(cluster.bootstrap, key, lambda r: told in r)
