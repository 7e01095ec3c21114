"""The minimum ISR of topics, read when a decision needs it, and the accounts that depend on it.

Not cached: a setting that was lowered must not let a replica count as eligible any more.
"""

from collections.abc import Iterable, Mapping

from barnabas.topic_partition import TopicPartition

from barnabas_controller.eligible import account, without_account
from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.reign import Reign

MIN_ISR_KEY = "min.insync.replicas"


async def minimum_isrs(
    reign: Reign, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The effective minimum of each: never more than there are replicas.

    A topic whose settings cannot be understood is left out: who counts as eligible by a minimum
    that is not the topic's may miss records.
    """
    wanted = list(partitions)
    topics = list(dict.fromkeys(partition.topic for partition in wanted))
    configs = await reign.store.store.topic_configs(topics)
    return {
        partition: min(
            _number(configs[partition.topic].get(MIN_ISR_KEY), reign.config.min_insync_replicas),
            len(reign.context.replicas(partition)),
        )
        for partition in wanted
        if partition.topic in configs
    }


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else default


async def accounted(
    reign: Reign, changes: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, LeaderAndIsr]:
    """The states to be written, each with its account of who has everything; see `eligible.py`."""
    context = reign.context
    if not reign.config.eligible_leader_replicas_enable:
        return {partition: without_account(new) for partition, new in changes.items()}
    thinned = [p for p, new in changes.items() if len(new.isr) < len(context.replicas(p))]
    minima = await minimum_isrs(reign, thinned)
    return {
        partition: account(
            context.leadership[partition],
            new,
            context.replicas(partition),
            minima.get(partition, 0),
            context.brokers,
        )
        for partition, new in changes.items()
    }
