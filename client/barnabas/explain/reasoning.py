"""From the states and events of the brokers to sentences: no clock, no network, no guess.

Each section answers one question from the view alone, and says so if the answer is unknown.
"""

from barnabas.explain.around import also, brokers, unknowns
from barnabas.explain.explanation import Explanation
from barnabas.explain.in_sync import in_sync
from barnabas.explain.leading import leading
from barnabas.explain.offsets import high_watermark, refused, truncations
from barnabas.explain.transactions import last_stable_offset
from barnabas.explain.view import PartitionView


def explain(view: PartitionView) -> Explanation:
    """The facts of a partition, and why they are so."""
    leader, isr = view.leader, view.isr
    replicas = list(view.metadata.replicas)
    return Explanation(
        topic=view.topic_partition.topic,
        partition=view.topic_partition.partition,
        leader=view.leader_id,
        leader_epoch=view.leader_epoch,
        replicas=replicas,
        in_sync_replicas=isr,
        out_of_sync=[broker for broker in replicas if broker not in isr],
        min_in_sync_replicas=leader.min_in_sync_replicas if leader else -1,
        high_watermark=leader.high_watermark if leader else -1,
        last_stable_offset=leader.last_stable_offset if leader else -1,
        log_end_offset=leader.log_end_offset if leader else -1,
        held_back_by=list(leader.held_back_by) if leader else [],
        unreachable=sorted({*view.errors, *(b for b in replicas if b not in view.live)}),
        sentences=[
            *leading(view),
            *in_sync(view),
            *high_watermark(view),
            *last_stable_offset(view),
            *truncations(view),
            *refused(view),
            *brokers(view),
            *also(view),
            *unknowns(view),
        ],
    )
