"""The opposite of each rule in `docs/rules-*.md`: of replication, of the controller, of groups."""

from tests.rules import (
    controller_changes,
    controller_elections,
    controller_reassignment,
    controller_requests,
    controller_terms,
    controller_zookeeper,
    groups_coordinators,
    groups_membership,
    groups_offsets,
    groups_rebalances,
    replication_followers,
    replication_isr,
    replication_leaders,
    replication_offsets,
    replication_transactions,
)

SECTIONS = (
    *replication_offsets.SECTIONS,
    *replication_leaders.SECTIONS,
    *replication_isr.SECTIONS,
    *replication_followers.SECTIONS,
    *replication_transactions.SECTIONS,
    *controller_terms.SECTIONS,
    *controller_elections.SECTIONS,
    *controller_requests.SECTIONS,
    *controller_changes.SECTIONS,
    *controller_reassignment.SECTIONS,
    *controller_zookeeper.SECTIONS,
    *groups_membership.SECTIONS,
    *groups_rebalances.SECTIONS,
    *groups_offsets.SECTIONS,
    *groups_coordinators.SECTIONS,
)
