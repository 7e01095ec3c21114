"""The options of the sink: those of Spark's own Kafka sink, and delivery exactly once.

Spark passes option keys in lower case, whatever the user wrote.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# A batch of Kafka's 16 KiB holds few records of a table; Spark sends many at a time.
_BATCH_SIZE = 262_144
DECISIONS_TOPIC = "barnabas-spark-decisions"
AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"

_NAMES = (
    "kafka.bootstrap.servers",
    "bootstrap.servers",
    "topic",
    "includeHeaders",
    "delivery",
    "transactionalIdPrefix",
    "decisionsTopic",
    "jobId",
    # Spark's own, which it passes on.
    "checkpointLocation",
    "path",
    "queryName",
)
# Settings of Kafka's producer, with the client's name for each.
_INTEGERS = {
    "linger.ms": "linger_ms",
    "batch.size": "batch_size",
    "buffer.memory": "buffer_memory",
    "retries": "retries",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "max.block.ms": "max_block_ms",
    "max.request.size": "max_request_size",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "max.in.flight.requests.per.connection": "max_in_flight",
}
_WORDS = {"acks": "acks", "compression.type": "compression_type", "client.id": "client_id"}
_BOOLEANS = {"enable.idempotence": "enable_idempotence"}
_NOT_FOR_USERS = {
    "key.serializer": "keys are strings or binary: convert the column",
    "value.serializer": "values are strings or binary: convert the column",
    "interceptor.classes": "there are no interceptors",
    "partitioner.class": "use the column 'partition'",
    "transactional.id": "the sink chooses it: use delivery=exactly-once, transactionalIdPrefix",
    "transaction.timeout.ms": "transactions of the sink have no timeout, as they are prepared",
    "transaction.two.phase.commit.enable": "delivery=exactly-once sets it",
}
_NOT_OFFERED = re.compile(r"(security|sasl|ssl|metric\w*|reconnect|socket)\..*")
_PREFIX = re.compile(r"[A-Za-z0-9._-]+")


class WriteOptionError(ValueError):
    """An option of the sink that does not exist, contradicts another, or has an invalid value."""


@dataclass(frozen=True)
class WriteOptions:
    """`topic` None: each row names its own. `producer`: the settings of every task's producer.

    `job_id`: a batch job that is run again with the same one adds nothing twice.
    """

    bootstrap_servers: str
    topic: str | None = None
    exactly_once: bool = False
    prefix: str = "spark"
    decisions_topic: str = DECISIONS_TOPIC
    job_id: str | None = None
    producer: Mapping[str, Any] = field(default_factory=dict)


def parse_write_options(options: Mapping[str, str], streaming: bool) -> WriteOptions:
    """Check the options; raises WriteOptionError naming the invalid one."""
    given = {key.lower(): value for key, value in options.items()}
    _check_names(given)
    bootstrap = given.get("kafka.bootstrap.servers") or given.get("bootstrap.servers")
    if not bootstrap:
        raise WriteOptionError("the option kafka.bootstrap.servers is required: host:port,...")
    exactly_once = _delivery(given) == EXACTLY_ONCE
    if not exactly_once:
        for name in ("transactionalIdPrefix", "decisionsTopic", "jobId"):
            if name.lower() in given:
                raise WriteOptionError(f"{name} needs delivery={EXACTLY_ONCE}")
    if streaming and "jobid" in given:
        raise WriteOptionError("jobId is for batch jobs: a stream has the id of its query")
    for name in ("transactionalIdPrefix", "jobId"):
        if name.lower() in given and not _PREFIX.fullmatch(given[name.lower()]):
            raise WriteOptionError(f"{name} may have letters, digits, '.', '_' and '-' only")
    return WriteOptions(
        bootstrap_servers=bootstrap,
        topic=given.get("topic"),
        exactly_once=exactly_once,
        prefix=given.get("transactionalidprefix", "spark"),
        decisions_topic=given.get("decisionstopic", DECISIONS_TOPIC),
        job_id=given.get("jobid"),
        producer=_producer(given, exactly_once),
    )


def _delivery(given: Mapping[str, str]) -> str:
    delivery = given.get("delivery", AT_LEAST_ONCE).lower()
    if delivery not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise WriteOptionError(f"delivery must be {AT_LEAST_ONCE} or {EXACTLY_ONCE}: {delivery!r}")
    return delivery


def _check_names(given: Mapping[str, str]) -> None:
    settings = [*_INTEGERS, *_WORDS, *_BOOLEANS]
    known = {name.lower(): name for name in _NAMES} | {f"kafka.{s}": f"kafka.{s}" for s in settings}
    for key in sorted(given):
        if key in known:
            continue
        setting = key.removeprefix("kafka.")
        if key.startswith("kafka.") and setting in _NOT_FOR_USERS:
            raise WriteOptionError(f"{key} cannot be set: {_NOT_FOR_USERS[setting]}")
        if key.startswith("kafka.") and _NOT_OFFERED.fullmatch(setting):
            raise WriteOptionError(f"{key} is not supported: Barnabas has nothing of the kind")
        close = difflib.get_close_matches(key, known, 1, 0.7)
        hint = f"; did you mean {known[close[0]]!r}?" if close else ""
        raise WriteOptionError(f"unknown option {key!r}{hint}")


def _producer(given: Mapping[str, str], exactly_once: bool) -> dict[str, Any]:
    """Kafka's settings as options of the client, which checks their values."""
    found: dict[str, Any] = {"batch_size": _BATCH_SIZE}
    for setting, name in (_INTEGERS | _WORDS | _BOOLEANS).items():
        value = given.get(f"kafka.{setting}")
        if value is None:
            continue
        if setting in _INTEGERS:
            found[name] = _integer(setting, value)
        elif setting in _BOOLEANS:
            found[name] = value.lower() == "true"
        else:
            found[name] = value
    if exactly_once and str(found.get("acks", "all")) not in ("all", "-1"):
        raise WriteOptionError(f"kafka.acks={found['acks']} contradicts delivery={EXACTLY_ONCE}")
    return found


def _integer(setting: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise WriteOptionError(f"kafka.{setting} must be a whole number, not {value!r}") from None
