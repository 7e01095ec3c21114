"""The leadership of one partition: what its state znode holds, and what every election changes.

Plain data. The znode's version is the partition epoch, used for compare-and-set; it is not part of
the JSON. Who changes it: the elections (`election.py`), ISR removal, and AlterPartition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from barnabas.topic_partition import TopicPartition

NO_LEADER = -1
LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
NO_EPOCH = -1

RECOVERED = 0
RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Who leads, since which epoch, and who is in sync; `controller_epoch` is the decider's.

    The ISR is never empty: its last member stays even when it dies, for only it has all the data.

    Three fields are not Kafka's (`eligible.py` keeps them): `eligible` are replicas outside the ISR
    that have every committed record; `proved_at` is the broker epoch with which each of the ISR and
    of those last showed that it has them; `durable`: the only member has flushed all that counts.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int = 0
    recovery_state: int = RECOVERED
    eligible: tuple[int, ...] = ()
    proved_at: Mapping[int, int] = field(default_factory=dict)
    durable: bool = False

    def with_leader(self, leader: int, isr: Sequence[int]) -> "LeaderAndIsr":
        """The next state: another leader or ISR under the next leader epoch.

        The epoch grows even when only the ISR changes, for brokers ignore a LeaderAndIsr whose
        leader epoch they already know.
        """
        return replace(self, leader=leader, isr=tuple(isr), leader_epoch=self.leader_epoch + 1)

    def same_but_for_partition_epoch(self, other: "LeaderAndIsr") -> bool:
        """Whether both say the same, whatever the versions of their znodes and their writers."""
        return (self.leader, self.leader_epoch, self.isr, self.recovery_state) == (
            other.leader,
            other.leader_epoch,
            other.isr,
            other.recovery_state,
        )


def describe_change(
    partition: TopicPartition, old: LeaderAndIsr, new: LeaderAndIsr, reason: str
) -> str:
    """One line for the log: what changed, from what to what, and why."""
    return (
        f"{partition}: leader {old.leader} -> {new.leader}, "
        f"epoch {old.leader_epoch} -> {new.leader_epoch}, "
        f"ISR {list(old.isr)} -> {list(new.isr)}: {reason}"
    )
