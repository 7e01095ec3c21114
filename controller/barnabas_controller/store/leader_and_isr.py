"""The state of one partition, as in its state znode: plain data.

The znode's version is the partition epoch, which writes expect; it is not part of the JSON.
Elections, the removal of offline replicas from the ISR, and AlterPartition change the state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from barnabas_common.messages.sentinels import NO_LEADER as NO_LEADER

RECOVERED = 0
RECOVERING = 1

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Leader, leader epoch and ISR; `controller_epoch` is that of the controller that decided.

    The ISR is never empty: its last member stays even if it fails, because only it has all records.

    Four fields are not Kafka's (`eligible_leader_replicas.py` maintains them): `eligible` are
    replicas outside the ISR that have every committed record, by the minimum ISR of the version
    `eligible_under` (`min_isr.py`), or UNKNOWN; `proved_at` is the broker epoch in
    which each of them and each member of the ISR last proved that; `durable`: the only member has
    flushed all its records.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    partition_epoch: int = 0
    recovery_state: int = RECOVERED
    eligible: tuple[int, ...] = ()
    eligible_under: int = UNKNOWN
    proved_at: Mapping[int, int] = field(default_factory=dict)
    durable: bool = False

    def with_leader(self, leader: int, isr: Sequence[int]) -> "LeaderAndIsr":
        """The next state, with another leader or ISR and the next leader epoch.

        The epoch grows even if only the ISR changes, because brokers ignore a LeaderAndIsr with a
        leader epoch that they have.
        """
        return replace(self, leader=leader, isr=tuple(isr), leader_epoch=self.leader_epoch + 1)

    def same_but_for_partition_epoch(self, other: "LeaderAndIsr") -> bool:
        """Whether both are equal except for partition epoch and controller epoch."""
        return (self.leader, self.leader_epoch, self.isr, self.recovery_state) == (
            other.leader,
            other.leader_epoch,
            other.isr,
            other.recovery_state,
        )
