"""One change of state, who saw it, and why it came about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from barnabas.topic_partition import TopicPartition

# What JSON can say, so that an event travels and is printed as it is.
Value = str | int | float | bool | None | Sequence["Value"]


class EventKind(StrEnum):
    """What happened. Sorted by subject."""

    # the process
    BROKER_STARTED = "broker-started"
    BROKER_STOPPING = "broker-stopping"
    SESSION_LOST = "session-lost"
    SESSION_REGAINED = "session-regained"
    REGISTERED_ANEW = "registered-anew"
    LOG_DIRECTORY_FAILED = "log-directory-failed"
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
    ISR_CHANGE_PROPOSED = "isr-change-proposed"
    ISR_CHANGED = "isr-changed"
    ISR_CHANGE_REFUSED = "isr-change-refused"
    OFFSETS_MOVED = "offsets-moved"
    LAST_REPLICA_FLUSHING = "last-replica-flushing"
    LAST_REPLICA_DURABLE = "last-replica-durable"
    LAST_REPLICA_RELIEVED = "last-replica-relieved"
    REQUEST_FENCED = "request-fenced"
    FETCH_FAILED = "fetch-failed"
    FETCH_RESUMED = "fetch-resumed"

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


@dataclass(frozen=True, slots=True)
class Event:
    """`sequence` counts the events of one life of broker `broker_id`, from 1. `time_ms` is wall
    clock. `cause` completes the sentence "... because ...". `details` are JSON values."""

    sequence: int
    time_ms: int
    broker_id: int
    kind: EventKind
    cause: str
    topic_partition: TopicPartition | None = None
    details: Mapping[str, Value] = field(default_factory=dict)
