"""All labs, in the order in which to play them."""

from barnabas_tools.labs.framework.lab import Lab
from barnabas_tools.labs.scenarios import (
    all_replicas_down,
    broker_failover,
    compaction,
    controller_failover,
    create_delete_topic,
    data_loss,
    divergence,
    hw_advance,
    isr_shrink,
    last_replica_standing,
    leader_epoch,
    preferred_leader,
    reassign,
    split_brain,
    unclean_election,
)
from barnabas_tools.labs.scenarios.groups import (
    at_least_once,
    at_most_once,
    coordinator_failover,
    rebalance,
)
from barnabas_tools.labs.scenarios.producers import acks, idempotence
from barnabas_tools.labs.scenarios.transactions import (
    aborted_transaction,
    exactly_once,
    hanging_transaction,
    zombie_fencing,
)
from barnabas_tools.labs.scenarios.transactions import (
    coordinator_failover as transaction_coordinator_failover,
)

LABS: dict[str, Lab] = {
    lab.name: lab
    for lab in (
        hw_advance.LAB,
        isr_shrink.LAB,
        acks.LAB,
        idempotence.LAB,
        broker_failover.LAB,
        leader_epoch.LAB,
        data_loss.LAB,
        divergence.LAB,
        split_brain.LAB,
        last_replica_standing.LAB,
        controller_failover.LAB,
        create_delete_topic.LAB,
        unclean_election.LAB,
        all_replicas_down.LAB,
        preferred_leader.LAB,
        reassign.LAB,
        compaction.LAB,
        at_most_once.LAB,
        at_least_once.LAB,
        rebalance.LAB,
        coordinator_failover.LAB,
        aborted_transaction.LAB,
        exactly_once.LAB,
        zombie_fencing.LAB,
        hanging_transaction.LAB,
        transaction_coordinator_failover.LAB,
    )
}
