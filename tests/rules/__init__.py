"""The opposite of each rule in `docs/rules-replication.md` and `docs/rules-controller.md`."""

from tests.rules import (
    controller_changes,
    controller_elections,
    controller_reassignment,
    controller_requests,
    controller_terms,
    controller_zookeeper,
    replication_followers,
    replication_isr,
    replication_leaders,
    replication_offsets,
)

SECTIONS = (
    *replication_offsets.SECTIONS,
    *replication_leaders.SECTIONS,
    *replication_isr.SECTIONS,
    *replication_followers.SECTIONS,
    *controller_terms.SECTIONS,
    *controller_elections.SECTIONS,
    *controller_requests.SECTIONS,
    *controller_changes.SECTIONS,
    *controller_reassignment.SECTIONS,
    *controller_zookeeper.SECTIONS,
)
