"""`/admin/reassign_partitions`: the way to ask for reassignments before KIP-455, still honoured.

    {"version":1,"partitions":[{"topic":"flights","partition":0,"replicas":[4,5,6]}]}

A tool creates the znode; the controller takes out what is done or refused, and deletes the znode
when nothing is left in it.
"""

import logging
from collections.abc import Mapping

from barnabas.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.fenced_store import FencedStore
from barnabas_controller.znode_json import JsonReader, encode
from barnabas_controller.znodes import REASSIGN_PARTITIONS

logger = logging.getLogger(__name__)

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


async def forget_reassignments(
    store: FencedStore, done: Mapping[TopicPartition, tuple[int, ...] | None]
) -> None:
    """Take partitions out of the znode: those with this target, or with any if it is None."""
    found = await store.store.get(REASSIGN_PARTITIONS)
    if found is None:
        return
    try:
        targets = decode_reassignments(found[0])
    except MalformedZnode:
        return  # whoever watches the znode deals with it
    staying = {
        partition: target
        for partition, target in targets.items()
        if not (partition in done and done[partition] in (None, target))
    }
    if not staying:
        await store.delete_tree(REASSIGN_PARTITIONS)
    elif staying != targets:
        await store.write_node(REASSIGN_PARTITIONS, encode_reassignments(staying))
