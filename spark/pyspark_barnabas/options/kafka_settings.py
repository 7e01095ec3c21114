"""Options `kafka.*`: settings of Kafka's consumer, each taken or refused by name."""

from typing import Any

from barnabas_common.bootstrap_servers import parse_bootstrap_servers
from barnabas_common.errors import InvalidArgumentError

from pyspark_barnabas.options.values import (
    Given,
    OptionError,
    boolean,
    in_kafkas_words,
    integer,
    unknown_option,
)

PREFIX = "kafka."

_TEXTS = ("client.id", "client.rack", "isolation.level")
_SWITCHES = ("check.crcs",)
_NUMBERS = (
    "fetch.min.bytes",
    "fetch.max.wait.ms",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "metadata.max.age.ms",
)
# Read by others than the tasks' consumers.
_ELSEWHERE = ("bootstrap.servers", "group.id")
TAKEN = (*_ELSEWHERE, *_TEXTS, *_SWITCHES, *_NUMBERS)

# What they govern does not exist here: members of a group, a poll's count of records, sockets.
WITHOUT_EFFECT = (
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "exclude.internal.topics",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
)

_BYTES = "keys and values are binary columns: deserialize them with DataFrame operations"
REFUSED = {
    "auto.offset.reset": "startingOffsets says where a query starts, and Spark keeps its offsets",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "enable.auto.commit": "Spark keeps the offsets, and the source commits none by itself",
    "interceptor.classes": "what is read must not depend on an executor, and there is no Java here",
    "group.protocol": "a query is not a member of its group",
    "group.instance.id": "a query is not a member of its group",
    "metric.reporters": "there is no Java here",
}
_UNSECURED = ("sasl.", "ssl.", "security.")


def consumer_options(given: Given) -> dict[str, Any]:
    """Return the options of `barnabas.Consumer` that the `kafka.*` options name.

    Raises OptionError naming the option that is refused, unknown or has an invalid value.
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = key.removeprefix(PREFIX)
        if name == key or name in _ELSEWHERE or name in WITHOUT_EFFECT:
            continue
        if name == "security.protocol" and value.upper() == "PLAINTEXT":
            continue
        _check_offered(name)
        found[name.replace(".", "_")] = _value(given, name)
    if "isolation.level" in given:
        _check_same(given, "isolation.level")
        found["isolation_level"] = given["isolation.level"]
    return _checked(found)


def bootstrap_servers(given: Given) -> str:
    _check_same(given, "bootstrap.servers")
    servers = given.get("kafka.bootstrap.servers") or given.get("bootstrap.servers")
    if not servers:
        raise OptionError("the option kafka.bootstrap.servers is required: host:port,...")
    try:
        parse_bootstrap_servers(servers)
    except InvalidArgumentError as error:
        raise OptionError(f"kafka.bootstrap.servers: {error}") from None
    return servers


def _check_same(given: Given, name: str) -> None:
    short, full = given.get(name), given.get(PREFIX + name)
    if short is not None and full is not None and short != full:
        raise OptionError(f"{name} and kafka.{name} contradict one another: {short!r}, {full!r}")


def _check_offered(name: str) -> None:
    if name in TAKEN:
        return
    if name in REFUSED:
        raise OptionError(f"kafka.{name} is not supported: {REFUSED[name]}")
    if name.startswith(_UNSECURED):
        raise OptionError(f"kafka.{name} is not supported: Barnabas has plain-text listeners only")
    raise unknown_option(PREFIX + name, (PREFIX + known for known in (*TAKEN, *WITHOUT_EFFECT)))


def _value(given: Given, name: str) -> int | str:
    if name in _NUMBERS:
        return integer(given, PREFIX + name, 0)
    if name in _SWITCHES:
        return boolean(given, PREFIX + name, False)
    return given[PREFIX + name]


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    if not found:
        return found
    # Imported here: the step of Spark's planning that only checks options need not import clients.
    from barnabas.consumer import ConsumerConfig, ConsumerOptions

    try:
        ConsumerConfig.of(ConsumerOptions(**found))  # type: ignore[typeddict-item]
    except InvalidArgumentError as error:
        names = {name.replace(".", "_"): PREFIX + name for name in TAKEN}
        raise OptionError(in_kafkas_words(error, names)) from None
    return found
