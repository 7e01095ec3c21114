"""Kafka's own decoder reads the `__consumer_offsets` that a coordinator here has written."""

import re
from pathlib import Path

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    LeaveGroupRequest,
    MemberIdentity,
)
from barnabas_simulator.cluster import SimulatedCluster

from tests.kafka_tools.harness import dump_log_segments, run_java
from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.raw_groups import Coordinators, RawMember, settle

pytestmark = pytest.mark.kafka


def written(directory: Path) -> Path:
    """The log of the partition that holds group `g`, after all that can happen to a group."""

    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> bytes:
        broker_id = await coordinators.find("g")
        static = RawMember(coordinators, broker_id, "g", group_instance_id="i-1", client_id="c1")
        members = [static, RawMember(coordinators, broker_id, "g", client_id="c2")]
        await settle(members)
        assert await static.commit(ORDERS, 42, "where I am") is ErrorCode.NONE
        broker = cluster.broker(broker_id)
        partition = broker.groups._groups.partition_of(broker.groups._groups.all()[0])
        leaving = [MemberIdentity(member.member_id) for member in members[1:]]
        leaving.append(MemberIdentity("", "i-1"))
        await static.ask(LeaveGroupRequest("g", leaving))
        deleted = await static.ask(DeleteGroupsRequest(["g"]))
        assert deleted.results[0].error_code == ErrorCode.NONE
        folder = f"/data/{partition.topic}-{partition.partition}"
        return bytes(cluster.disks[broker_id].look_into(folder)[f"{0:020}.log"].data)

    log = directory / f"{0:020}.log"
    log.write_bytes(in_cluster(story))
    return log


def test_kafka_decodes_our_groups_and_offsets(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert dump_log_segments([log]).faults == []
    done = run_java(
        "kafka.tools.DumpLogSegments", "--offsets-decoder", "--print-data-log", "--files", str(log)
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| offset: ")]
    keys = [re.search(r" key: (.*?)(?= payload:|$)", line) for line in lines]
    assert all(keys), lines
    text = "\n".join(lines)
    for expected in (
        '"group":"g"',
        '"topic":"orders"',
        '"offset":42',
        '"metadata":"where I am"',
        '"protocolType":"consumer"',
        '"protocol":"range"',
        '"groupInstanceId":"i-1"',
        '"clientId":"c2"',
        '"generation":1',
    ):
        assert expected in text, f"{expected} is missing in\n{text}"
    assert text.count("payload: <DELETE>") == 2, "the tombstones of the offset and of the group"
