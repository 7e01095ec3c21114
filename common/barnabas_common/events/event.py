"""One change of state: which broker saw it, and its cause."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas_common.topic_partition import TopicPartition

# A JSON value, so that an event can be sent and printed as it is.
Value = str | int | float | bool | None | Sequence["Value"]


class EventKind(StrEnum):
    """The kinds of events, by subject."""

    # the process
    BROKER_STARTED = "broker-started"
    BROKER_STOPPING = "broker-stopping"
    SESSION_LOST = "session-lost"
    SESSION_REGAINED = "session-regained"
    REGISTERED_ANEW = "registered-anew"
    ZOOKEEPER_UNREACHABLE = "zookeeper-unreachable"
    ZOOKEEPER_BEHIND = "zookeeper-behind"
    ZOOKEEPER_REACHABLE = "zookeeper-reachable"
    LOG_DIRECTORY_FAILED = "log-directory-failed"
    DESCRIPTORS_EXHAUSTED = "descriptors-exhausted"
    DESCRIPTORS_FREED = "descriptors-freed"
    CONNECTION_LIMIT_REACHED = "connection-limit-reached"
    CONNECTION_LIMIT_RELIEVED = "connection-limit-relieved"
    LOG_DIRECTORY_OUTDATED = "log-directory-outdated"
    LOG_RECOVERED = "log-recovered"
    CHECKPOINT_DAMAGED = "checkpoint-damaged"

    # settings and znodes
    CONFIG_CHANGED = "config-changed"
    CONFIG_REFUSED = "config-refused"
    ZNODE_MALFORMED = "znode-malformed"

    # a replica
    BECAME_LEADER = "became-leader"
    BECAME_FOLLOWER = "became-follower"
    ROLE_REFUSED = "role-refused"
    REPLICA_STOPPED = "replica-stopped"
    REPLICA_DELETED = "replica-deleted"
    REPLICA_OFFLINE = "replica-offline"
    REPLICA_LOST = "replica-lost"
    REPLICA_STRAY = "replica-stray"
    LOG_TRUNCATED = "log-truncated"
    LOG_DAMAGED = "log-damaged"
    LOG_COMPACTED = "log-compacted"
    LOG_NOT_COMPACTED = "log-not-compacted"
    COMMITTED_RECORDS_TRUNCATED = "committed-records-truncated"
    ISR_CHANGE_PROPOSED = "isr-change-proposed"
    ISR_CHANGED = "isr-changed"
    ISR_CHANGE_REFUSED = "isr-change-refused"
    OFFSETS_MOVED = "offsets-moved"
    LAST_REPLICA_FLUSHING = "last-replica-flushing"
    LAST_REPLICA_DURABLE = "last-replica-durable"
    LAST_REPLICA_RELIEVED = "last-replica-relieved"
    CONTROLLER_UNREACHABLE = "controller-unreachable"
    CONTROLLER_REACHABLE = "controller-reachable"
    REQUEST_FENCED = "request-fenced"
    FETCH_FAILED = "fetch-failed"
    FETCH_RESUMED = "fetch-resumed"

    # consumer groups
    COORDINATOR_LOADED = "coordinator-loaded"
    COORDINATOR_LOAD_FAILED = "coordinator-load-failed"
    COORDINATOR_UNLOADED = "coordinator-unloaded"
    COORDINATOR_RECORD_UNREADABLE = "coordinator-record-unreadable"
    OFFSETS_TOPIC_REFUSED = "offsets-topic-refused"
    GROUP_MEMBER_JOINED = "group-member-joined"
    GROUP_MEMBER_LEFT = "group-member-left"
    GROUP_MEMBER_EXPIRED = "group-member-expired"
    GROUP_REBALANCING = "group-rebalancing"
    GROUP_GENERATION = "group-generation"
    GROUP_STABLE = "group-stable"
    GROUP_GONE = "group-gone"
    GROUP_OFFSETS_REMOVED = "group-offsets-removed"

    # transactions
    TRANSACTION_TOPIC_REFUSED = "transaction-topic-refused"
    TRANSACTION_INITIALIZED = "transaction-initialized"
    TRANSACTION_FENCED = "transaction-fenced"
    TRANSACTION_RESUMED = "transaction-resumed"
    TRANSACTION_MARKERS_REFUSED = "transaction-markers-refused"

    # the controller
    CONTROLLER_ELECTED = "controller-elected"
    CONTROLLER_RESIGNED = "controller-resigned"
    CONTROLLER_DEPOSED = "controller-deposed"
    CONTROLLER_STANDS_ASIDE = "controller-stands-aside"
    BROKER_REGISTERED = "broker-registered"
    BROKER_RESTARTED = "broker-restarted"
    BROKER_GONE = "broker-gone"
    BROKER_SUSPECTED = "broker-suspected"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    LEADER_ELECTED = "leader-elected"
    ELECTION_REFUSED = "election-refused"
    EPOCH_RAISED = "epoch-raised"
    STATE_UNCONFIRMED = "state-unconfirmed"
    ISR_CHANGE_ACCEPTED = "isr-change-accepted"
    PREFERRED_REBALANCE = "preferred-rebalance"
    REASSIGNMENT_STARTED = "reassignment-started"
    REASSIGNMENT_CATCHING_UP = "reassignment-catching-up"
    REASSIGNMENT_WAITS = "reassignment-waits"
    REASSIGNMENT_COMPLETED = "reassignment-completed"
    REASSIGNMENT_CANCELLED = "reassignment-cancelled"
    REASSIGNMENT_REFUSED = "reassignment-refused"
    REPLICAS_REMOVED = "replicas-removed"
    TOPIC_CREATED = "topic-created"
    TOPIC_GROWN = "topic-grown"
    TOPIC_DELETION_STARTED = "topic-deletion-started"
    TOPIC_DELETION_REFUSED = "topic-deletion-refused"
    TOPIC_DELETION_WAITS = "topic-deletion-waits"
    TOPIC_DELETED = "topic-deleted"


LOG_LEVELS: Mapping[EventKind, int] = {
    **dict.fromkeys(EventKind, logging.INFO),
    EventKind.OFFSETS_MOVED: logging.NOTSET,
    EventKind.SESSION_LOST: logging.WARNING,
    EventKind.REGISTERED_ANEW: logging.WARNING,
    EventKind.ZOOKEEPER_UNREACHABLE: logging.WARNING,
    EventKind.REPLICA_OFFLINE: logging.WARNING,
    EventKind.REPLICA_STRAY: logging.WARNING,
    EventKind.ISR_CHANGE_REFUSED: logging.WARNING,
    EventKind.CONTROLLER_UNREACHABLE: logging.WARNING,
    EventKind.FETCH_FAILED: logging.WARNING,
    EventKind.OFFSETS_TOPIC_REFUSED: logging.WARNING,
    EventKind.GROUP_MEMBER_EXPIRED: logging.WARNING,
    EventKind.TRANSACTION_TOPIC_REFUSED: logging.WARNING,
    EventKind.TRANSACTION_FENCED: logging.WARNING,
    EventKind.TRANSACTION_MARKERS_REFUSED: logging.WARNING,
    EventKind.CONTROLLER_RESIGNED: logging.WARNING,
    EventKind.CONTROLLER_DEPOSED: logging.WARNING,
    EventKind.CONTROLLER_STANDS_ASIDE: logging.WARNING,
    EventKind.BROKER_GONE: logging.WARNING,
    EventKind.BROKER_SUSPECTED: logging.WARNING,
    EventKind.ELECTION_REFUSED: logging.WARNING,
    EventKind.EPOCH_RAISED: logging.WARNING,
    EventKind.STATE_UNCONFIRMED: logging.WARNING,
    EventKind.REASSIGNMENT_WAITS: logging.WARNING,
    EventKind.REASSIGNMENT_REFUSED: logging.WARNING,
    EventKind.TOPIC_DELETION_REFUSED: logging.WARNING,
    EventKind.TOPIC_DELETION_WAITS: logging.WARNING,
    EventKind.CONNECTION_LIMIT_REACHED: logging.WARNING,
    EventKind.LOG_DIRECTORY_FAILED: logging.ERROR,
    EventKind.DESCRIPTORS_EXHAUSTED: logging.ERROR,
    EventKind.ZOOKEEPER_BEHIND: logging.ERROR,
    EventKind.LOG_DIRECTORY_OUTDATED: logging.ERROR,
    EventKind.COMMITTED_RECORDS_TRUNCATED: logging.ERROR,
    EventKind.CHECKPOINT_DAMAGED: logging.ERROR,
    EventKind.CONFIG_REFUSED: logging.ERROR,
    EventKind.ZNODE_MALFORMED: logging.ERROR,
    EventKind.ROLE_REFUSED: logging.ERROR,
    EventKind.REPLICA_LOST: logging.ERROR,
    EventKind.LOG_DAMAGED: logging.ERROR,
    EventKind.LOG_NOT_COMPACTED: logging.ERROR,
    EventKind.COORDINATOR_LOAD_FAILED: logging.ERROR,
    EventKind.COORDINATOR_RECORD_UNREADABLE: logging.ERROR,
}
"""The level at which each kind of event is logged; NOTSET is never logged."""


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded change of state.

    `sequence` counts the events of one incarnation of broker `broker_id`, from 1. `time_ms` is the
    wall clock. `cause` completes the sentence "... because ...". `topic_partition` is None if the
    event is about no partition. `details` are JSON values.
    """

    sequence: int
    time_ms: int
    broker_id: int
    kind: EventKind
    cause: str
    topic_partition: TopicPartition | None = None
    details: Mapping[str, Value] = field(default_factory=dict)


def in_order(events: Iterable[Event]) -> list[Event]:
    """The events of several brokers by time; those of one broker stay in their order."""
    return sorted(events, key=lambda event: (event.time_ms, event.broker_id, event.sequence))
