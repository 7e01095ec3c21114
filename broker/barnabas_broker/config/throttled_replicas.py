"""Which replicas of a topic are throttled (KIP-73): `0:1,0:2` is partition 0 on brokers 1 and 2."""

from dataclasses import dataclass

ALL = "*"


@dataclass(frozen=True)
class ThrottledReplicas:
    """The value of `leader.` and `follower.replication.throttled.replicas`."""

    everything: bool = False
    replicas: frozenset[tuple[int, int]] = frozenset()

    def covers(self, partition: int, broker_id: int) -> bool:
        """Whether the replica of this partition on this broker is named."""
        return self.everything or (partition, broker_id) in self.replicas

    def __str__(self) -> str:
        if self.everything:
            return ALL
        return ",".join(f"{partition}:{broker}" for partition, broker in sorted(self.replicas))


NO_REPLICAS = ThrottledReplicas()


def throttled_replicas(text: str) -> ThrottledReplicas:
    """Parse the list; raises ValueError."""
    if text.strip() == ALL:
        return ThrottledReplicas(everything=True)
    words = [word.strip() for word in text.split(",") if word.strip()]
    return ThrottledReplicas(replicas=frozenset(_replica(word) for word in words))


def _replica(word: str) -> tuple[int, int]:
    partition, separator, broker = word.partition(":")
    if not (separator and partition.isdecimal() and broker.isdecimal()):
        raise ValueError("must be * or a list of partition:broker")
    return int(partition), int(broker)
