"""`/admin/reassign_partitions`: requests for reassignments from before KIP-455.

    {"version":1,"partitions":[{"topic":"flights","partition":0,"replicas":[4,5,6]}]}

A tool creates the znode. The controller removes each partition from it that is complete or refused,
and then deletes the znode.
"""

from collections.abc import Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.znode_json import JsonReader, encode
from barnabas_controller.store.znodes import REASSIGN_PARTITIONS

Targets = dict[TopicPartition, tuple[int, ...]]


def encode_reassignments(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    partitions = [
        {"topic": p.topic, "partition": p.partition, "replicas": list(replicas)}
        for p, replicas in targets.items()
    ]
    return encode({"version": 1, "partitions": partitions})


def decode_reassignments(data: bytes) -> Targets:
    """The targets by partition; raises MalformedZnode, also for a partition named twice."""
    content = JsonReader(REASSIGN_PARTITIONS, data)
    targets: Targets = {}
    for item in content.objects("partitions"):
        partition = TopicPartition(item.string("topic"), item.integer("partition"))
        if partition in targets:
            raise content.malformed(f"{partition} is named twice")
        targets[partition] = item.ints("replicas")
    return targets


async def remove_from_znode(
    store: FencedStore, done: Mapping[TopicPartition, tuple[int, ...] | None]
) -> None:
    """Remove the partitions in `done` from the znode, if it requests this target for them.

    A target of None stands for any target. The znode is deleted with its last partition.
    """
    found = await store.store.get(REASSIGN_PARTITIONS)
    if found is None:
        return
    try:
        targets = decode_reassignments(found[0])
    except MalformedZnode:
        return  # the watch on the znode handles it
    staying = {
        partition: target
        for partition, target in targets.items()
        if not (partition in done and done[partition] in (None, target))
    }
    if not staying:
        await store.delete_tree(REASSIGN_PARTITIONS)
    elif staying != targets:
        await store.write_node(REASSIGN_PARTITIONS, encode_reassignments(staying))
