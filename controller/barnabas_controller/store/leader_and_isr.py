"""The state of one partition, as in its state znode: plain data.

The partition epoch is the znode's version, which writes expect; it is not part of the JSON.
Elections, removals of offline replicas from the ISR, and AlterPartition change the state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from barnabas_common.messages.sentinels import NO_LEADER as NO_LEADER

# Kafka's LeaderRecoveryState (KIP-704).
RECOVERED = 0
RECOVERING = 1

# The value of `eligible_under` where the version of the settings is not known, and of
# `newest_proof`.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Leader, leader epoch and ISR; `controller_epoch` is that of the controller that decided.

    The ISR is never empty. Its last member stays even if it fails, because only that replica is
    known to have every committed record. `leader` may be NO_LEADER.

    Five fields are not Kafka's (`eligible_leader_replicas.py` maintains them). `eligible` are the
    replicas outside the ISR that have every committed record, by the minimum ISR of the version
    `eligible_under` (`min_isr.py`), which may be UNKNOWN. `proved_at` has, by broker id, the broker
    epoch in which each of them and each member of the ISR last proved that. `newest_proof` is that
    of the newest proof of replicas that have left the ISR since, UNKNOWN if a later one is in
    `proved_at`. `durable` says that the only member of the ISR has flushed all its records.
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
    newest_proof: int = UNKNOWN
    durable: bool = False

    def with_leader(self, leader: int, isr: Sequence[int]) -> "LeaderAndIsr":
        """The next state, with another leader or ISR and the next leader epoch.

        The epoch grows even if only the ISR changes, because brokers ignore a LeaderAndIsr with the
        leader epoch that they have already.
        """
        return replace(self, leader=leader, isr=tuple(isr), leader_epoch=self.leader_epoch + 1)

    def same_but_for_partition_epoch(self, other: "LeaderAndIsr") -> bool:
        """Whether leader, leader epoch, ISR and recovery state are the same."""
        return (self.leader, self.leader_epoch, self.isr, self.recovery_state) == (
            other.leader,
            other.leader_epoch,
            other.isr,
            other.recovery_state,
        )


# Stands for the state of a partition that has none.
NOT_CREATED = LeaderAndIsr(NO_LEADER, -1, (), -1)
