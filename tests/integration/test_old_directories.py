"""A cluster directory written by 0.1.0, before `common/` and `tools/` existed, still serves.

The archive has the folders of ZooKeeper and of three brokers. Topic `flights` has three partitions
and 500 records. Broker 2 was killed and restarted while records were produced; topic settings were
altered; broker 3 was killed, then the others were stopped.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin, Producer, TopicPartition
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.layout import LAYOUT_FILE
from barnabas_tools.local.ports import free_ports

from tests.support.cluster_state import wait_until_in_sync
from tests.support.real_cluster import assert_no_traceback
from tests.support.workload import read_all

pytestmark = pytest.mark.integration

ARCHIVE = Path(__file__).parent / "data" / "cluster-0.1.0.tar.xz"
TOPIC = "flights"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(3)]
RECORDS = Counter(f"record {number}".encode() for number in range(1, 501))


@pytest.fixture(scope="module")
def old_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The archived cluster, unpacked in another folder and on other ports."""
    folder = tmp_path_factory.mktemp("old")
    shutil.unpack_archive(ARCHIVE, folder)
    layout = folder / "cluster" / LAYOUT_FILE
    content = json.loads(layout.read_text())
    ports = free_ports(7)
    content |= {
        "client_ports": ports[:3],
        "internal_ports": ports[3:6],
        "zookeeper_port": ports[6],
    }
    layout.write_text(json.dumps(content))
    with LocalCluster.find(folder / "cluster") as cluster:
        yield cluster
    assert_no_traceback(cluster)


async def test_every_record_of_the_old_cluster_is_there(old_cluster: LocalCluster) -> None:
    await wait_until_in_sync(old_cluster.bootstrap, TOPIC)
    found = await read_all(old_cluster.bootstrap, PARTITIONS)
    assert Counter(value for records in found.values() for _, value in records) == RECORDS


async def test_its_settings_are_there(old_cluster: LocalCluster) -> None:
    async with Admin(bootstrap_servers=old_cluster.bootstrap) as admin:
        configs = await admin.describe_configs(TOPIC)
    values = {config.name: config.value for config in configs}
    assert values["retention.ms"] == "-1"
    assert values["max.message.bytes"] == "1000000"


async def test_it_takes_more_records(old_cluster: LocalCluster) -> None:
    async with Producer(old_cluster.bootstrap) as producer:
        for tp in PARTITIONS:
            await producer.send_and_wait(TOPIC, b"new", partition=tp.partition)
    found = await read_all(old_cluster.bootstrap, PARTITIONS)
    for tp in PARTITIONS:
        offsets = [offset for offset, _ in found[tp]]
        assert offsets == list(range(len(offsets)))
        assert found[tp][-1][1] == b"new"
