"""The znodes: their paths, and how their data are encoded and decoded.

The JSON is compact and has Kafka's fields in Kafka's order, so that Kafka's tools can read it.
Decoding looks at fields, never at `version`, so that znodes that an operator or an older Kafka
wrote are read too. Every `decode` function raises `MalformedZnode` for malformed data.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from barnabas_common.runtime import Address
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.leader_and_isr import RECOVERED, UNKNOWN, LeaderAndIsr
from barnabas_controller.store.znode_json import MAX_INT, MAX_LONG, JsonReader, encode

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
DELETE_TOPICS = "/admin/delete_topics"
TOPIC_CONFIGS = "/config/topics"
CONFIG_CHANGES = "/config/changes"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"

UNBROKEN_SINCE_REGISTRATION = -1
AHEAD_SINCE_REGISTRATION = -1

PRODUCER_ID_BLOCK = "/latest_producer_id_block"
LOG_DIR_STAMPS = "/barnabas/log_dir_stamps"  # not Kafka's; one child for each broker
PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    LOG_DIR_STAMPS,
)


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(partition: TopicPartition) -> str:
    return f"{partitions_path(partition.topic)}/{partition.partition}"


def state_path(partition: TopicPartition) -> str:
    return f"{partition_path(partition)}/state"


class Endpoint(NamedTuple):
    """One advertised listener: its name, address and security protocol."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True)
class Broker:
    """A registered broker; `epoch` is the czxid of its znode, -1 before it is registered.

    `unbroken_since` is the broker epoch, possibly of an earlier incarnation, since which its logs
    have lost nothing; UNBROKEN_SINCE_REGISTRATION stands for the present epoch. `is_new` says that
    a log directory has nothing of an earlier incarnation. `ahead_since` is the broker epoch with
    which it first registered after ZooKeeper had been restored from an older copy than its logs;
    AHEAD_SINCE_REGISTRATION stands for the present epoch, None for no such restore.
    `running_since` is the broker epoch of its process's first registration, None for the present
    one.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    unbroken_since: int = UNBROKEN_SINCE_REGISTRATION
    is_new: bool = False
    ahead_since: int | None = None
    running_since: int | None = None

    @property
    def lost_nothing_since(self) -> int:
        """The broker epoch since which its logs have lost nothing."""
        return self.epoch if self.unbroken_since < 0 else self.unbroken_since

    def has_restarted_since(self, zxid: int) -> bool:
        """Whether its process began to run after this transaction."""
        return (self.epoch if self.running_since is None else self.running_since) > zxid

    @property
    def ahead_of_zookeeper_since(self) -> int | None:
        """The broker epoch of its first registration in a restored ZooKeeper."""
        return self.epoch if self.ahead_since == AHEAD_SINCE_REGISTRATION else self.ahead_since

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of this listener, if the broker has it."""
        return next((e for e in self.endpoints if e.listener == listener), None)

    def registered(self, epoch: int) -> "Broker":
        """The same broker with the broker epoch of its registration."""
        return replace(self, epoch=epoch)


def encode_broker(broker: Broker, timestamp_ms: int) -> bytes:
    """The data of a registration, version 5; only Kafka's tools read the timestamp."""
    plaintext = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    content: dict[str, Any] = {
        "features": {},
        "listener_security_protocol_map": {
            e.listener: e.security_protocol for e in broker.endpoints
        },
        "endpoints": [str(e) for e in broker.endpoints],
        "jmx_port": -1,
        "port": plaintext.port if plaintext else -1,
        "host": plaintext.host if plaintext else None,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if broker.rack is not None:
        content["rack"] = broker.rack
    if broker.unbroken_since >= 0:
        content["unbroken_since"] = broker.unbroken_since
    if broker.is_new:
        content["is_new"] = True
    if broker.ahead_since is not None:
        content["ahead_since"] = broker.ahead_since
    if broker.running_since is not None:
        content["running_since"] = broker.running_since
    return encode(content)


def decode_broker(broker_id: int, data: bytes, epoch: int = -1) -> Broker:
    """A registration; `epoch` is the czxid of its znode."""
    content = JsonReader(broker_path(broker_id), data)
    protocols = content.mapping("listener_security_protocol_map", default={})
    if content.has("endpoints"):
        endpoints = tuple(
            _endpoint(content, text, protocols) for text in content.array("endpoints")
        )
    else:  # version 1 has one listener
        endpoints = (Endpoint("PLAINTEXT", content.string("host"), content.integer("port")),)
    rack = content.string("rack") if content.has("rack") else None
    return Broker(
        broker_id,
        endpoints,
        rack,
        epoch,
        content.long("unbroken_since", default=UNBROKEN_SINCE_REGISTRATION),
        content.boolean("is_new", default=False),
        content.long("ahead_since") if content.has("ahead_since") else None,
        content.long("running_since") if content.has("running_since") else None,
    )


def _endpoint(content: "JsonReader", text: Any, protocols: Mapping[str, Any]) -> Endpoint:
    listener, separator, rest = content.as_string("an endpoint", text).partition("://")
    try:
        address = Address.parse(rest)
    except ValueError as error:
        raise content.malformed(f"endpoint {text!r}: {error}") from None
    if not separator or not listener:
        raise content.malformed(f"endpoint {text!r} names no listener")
    return Endpoint(listener, *address, str(protocols.get(listener, listener)))


@dataclass(frozen=True)
class ReplicaAssignment:
    """The brokers of one partition, the preferred replica first.

    While the partition is being reassigned, `adding` and `removing` are the brokers among them that
    are added and removed; otherwise both are empty.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True)
class TopicZnode:
    """A topic's partitions by number; `topic_id` is None in a znode from before Kafka 2.8."""

    topic_id: str | None
    partitions: Mapping[int, ReplicaAssignment] = field(default_factory=dict)


def encode_topic(topic: TopicZnode) -> bytes:
    def chosen(replicas_of: Any, keep_empty: bool) -> dict[str, list[int]]:
        return {
            str(number): list(replicas_of(assignment))
            for number, assignment in sorted(topic.partitions.items())
            if keep_empty or replicas_of(assignment)
        }

    content: dict[str, Any] = {
        "removing_replicas": chosen(lambda a: a.removing, False),
        "partitions": chosen(lambda a: a.replicas, True),
    }
    if topic.topic_id is not None:
        content["topic_id"] = topic.topic_id
    content |= {"adding_replicas": chosen(lambda a: a.adding, False), "version": 3}
    return encode(content)


# Kafka's ids are 22 characters of URL-safe base64; the id becomes a line of a file.
_TOPIC_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def decode_topic(topic: str, data: bytes) -> TopicZnode:
    """A topic's partitions; malformed if an assignment is not a legal one (KIP-455)."""
    content = JsonReader(topic_path(topic), data)
    adding = content.replica_lists("adding_replicas", default={})
    removing = content.replica_lists("removing_replicas", default={})
    partitions = {
        number: ReplicaAssignment(replicas, adding.get(number, ()), removing.get(number, ()))
        for number, replicas in sorted(content.replica_lists("partitions").items())
    }
    for number, assignment in partitions.items():
        if not assignment.replicas:
            raise content.malformed(f"partition {number} has no replicas")
        moving = {*assignment.adding, *assignment.removing}
        if not moving <= set(assignment.replicas) or len(moving) != (
            len(assignment.adding) + len(assignment.removing)
        ):
            raise content.malformed(
                f"partition {number} adds or removes brokers that it does not have"
            )
        if set(assignment.removing) == set(assignment.replicas):
            raise content.malformed(f"partition {number} removes every replica")
    topic_id = content.string("topic_id") if content.has("topic_id") else None
    if topic_id is not None and not _TOPIC_ID.fullmatch(topic_id):
        raise content.malformed(f"not a topic id: {topic_id!r}")
    return TopicZnode(topic_id, partitions)


def encode_state(state: LeaderAndIsr) -> bytes:
    """A partition's state; fields that Kafka does not have are left out where they are empty."""
    content: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
    }
    if state.recovery_state != RECOVERED:
        content["leader_recovery_state"] = state.recovery_state
    if state.eligible:
        content["eligible"] = list(state.eligible)
        if state.eligible_under != UNKNOWN:
            content["eligible_under"] = state.eligible_under
    if state.proved_at:
        content["proved_at"] = {str(b): epoch for b, epoch in sorted(state.proved_at.items())}
    if state.newest_proof != UNKNOWN:
        content["newest_proof"] = state.newest_proof
    if state.durable:
        content["durable"] = True
    return encode(content)


def decode_state(
    partition: TopicPartition, data: bytes, version: int, written_at: int = MAX_LONG
) -> LeaderAndIsr:
    """A partition's state; `version` is the version of its znode, which is the partition epoch, and
    `written_at` the zxid of its last write. A later `newest_proof` is of another ZooKeeper."""
    content = JsonReader(state_path(partition), data)
    isr = content.ints("isr")
    if not isr:
        raise content.malformed("the ISR is empty")
    newest_proof = content.long("newest_proof", default=UNKNOWN)
    return LeaderAndIsr(
        leader=content.integer("leader"),
        leader_epoch=content.integer("leader_epoch"),
        isr=isr,
        controller_epoch=content.integer("controller_epoch"),
        partition_epoch=version,
        recovery_state=content.integer("leader_recovery_state", default=RECOVERED),
        eligible=content.ints("eligible") if content.has("eligible") else (),
        eligible_under=content.long("eligible_under", default=UNKNOWN),
        proved_at=content.integers_by_number("proved_at"),
        newest_proof=newest_proof if newest_proof <= written_at else UNKNOWN,
        durable=content.boolean("durable", default=False),
    )


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return encode(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """The broker id in `/controller`."""
    return JsonReader(CONTROLLER, data).integer("brokerid")


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """The controller epoch; the next one must have 32 bits as well."""
    text = data.decode("ascii", "replace")
    if not text.isdigit() or len(text) > 10 or int(text) >= MAX_INT:
        raise MalformedZnode(CONTROLLER_EPOCH, f"not a decimal number of 32 bits: {text[:40]!r}")
    return int(text)


def encode_config(overrides: Mapping[str, str], minimum_since: int | None = None) -> bytes:
    """`minimum_since` is the zxid of the last change of the minimum ISR, if this is not one."""
    content: dict[str, Any] = {"version": 1, "config": dict(overrides)}
    if minimum_since is not None:
        content["minimum_since"] = minimum_since
    return encode(content)


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """The overrides in a znode under `/config`; none if the data are empty."""
    if not data:
        return {}
    content = JsonReader(path, data)
    return {
        content.as_string("a name", name): content.as_string(name, value)
        for name, value in content.mapping("config").items()
    }


def decode_minimum_since(path: str, data: bytes, written_at: int) -> int:
    """The zxid of the last change of the minimum ISR in a znode under `/config`.

    It is `written_at`, the zxid of the last write, if that was Kafka's or may have been a change of
    the minimum. A later one is of another ZooKeeper.
    """
    with suppress(MalformedZnode):
        return min(JsonReader(path, data).long("minimum_since", default=written_at), written_at)
    return written_at


def encode_isr_change(partitions: Iterable[TopicPartition]) -> bytes:
    """A leader's notification that it wrote the states of these partitions itself."""
    items = [{"topic": p.topic, "partition": p.partition} for p in partitions]
    return encode({"version": 1, "partitions": items})


def encode_log_dir_event(broker_id: int) -> bytes:
    """A broker's notification that a log directory failed, or that replicas can be used again."""
    return encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """The id of the broker whose log directories changed."""
    return JsonReader(path, data).integer("broker")


def log_dir_stamp_path(broker_id: int) -> str:
    return f"{LOG_DIR_STAMPS}/{broker_id}"


class LogDirStamp(NamedTuple):
    """The number that a broker last wrote into its log directories (`log_dir_stamps.py`), and since
    which broker epoch they are newer than a restored ZooKeeper, if they are."""

    stamp: int
    ahead_since: int | None = None


def encode_log_dir_stamp(stamp: LogDirStamp) -> bytes:
    content = {"version": 1, "stamp": stamp.stamp}
    if stamp.ahead_since is not None:
        content["ahead_since"] = stamp.ahead_since
    return encode(content)


def decode_log_dir_stamp(path: str, data: bytes) -> LogDirStamp:
    content = JsonReader(path, data)
    ahead_since = content.long("ahead_since") if content.has("ahead_since") else None
    return LogDirStamp(content.integer("stamp"), ahead_since)


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return JsonReader(CLUSTER_ID, data).string("id")
