"""The options of the sink: those of Spark's own Kafka sink, and delivery exactly once.

Spark passes option keys in lower case, whatever the user wrote.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.producer import ProducerConfig, ProducerOptions
from barnabas_common.errors import InvalidArgumentError
from barnabas_common.topic_name import INTERNAL_TOPICS

from pyspark_barnabas.options.kafka_settings import PREFIX, bootstrap_servers
from pyspark_barnabas.options.values import (
    Given,
    OptionError,
    boolean,
    check_topic,
    in_kafkas_words,
    integer,
    unknown_option,
)

# A batch of Kafka's 16 KiB holds few records of a table; Spark sends many at a time.
_BATCH_SIZE = 262_144
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
_SETTINGS = _INTEGERS | _WORDS | _BOOLEANS
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
_IN_AN_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class WriteOptions:
    """`topic` None: each row names its own. `producer`: the settings of every task's producer.

    `job_id`: a batch job that is run again with the same one adds nothing twice.
    """

    bootstrap_servers: str
    topic: str | None = None
    exactly_once: bool = False
    prefix: str = "spark"
    decisions_topic: str = "barnabas-spark-decisions"
    job_id: str | None = None
    producer: Mapping[str, Any] = field(default_factory=dict)


def parse_write_options(options: Mapping[str, str], streaming: bool) -> WriteOptions:
    """Check the options; raises OptionError naming the invalid one."""
    given = {key.lower(): value for key, value in options.items()}
    _check_names(given)
    bootstrap = bootstrap_servers(given)
    exactly_once = _delivery(given) == EXACTLY_ONCE
    if not exactly_once:
        for name in ("transactionalIdPrefix", "decisionsTopic", "jobId"):
            if name.lower() in given:
                raise OptionError(f"{name} needs delivery={EXACTLY_ONCE}")
    if streaming and "jobid" in given:
        raise OptionError("jobId is for batch jobs: a stream has the id of its query")
    for name in ("transactionalIdPrefix", "jobId"):
        if name.lower() in given and not _IN_AN_ID.fullmatch(given[name.lower()]):
            raise OptionError(f"{name} may have letters, digits, '.', '_' and '-' only")
    for name in ("topic", "decisionsTopic"):
        if name.lower() in given:
            check_topic(name, given[name.lower()])
    decisions_topic = given.get("decisionstopic", WriteOptions.decisions_topic)
    if exactly_once and (
        decisions_topic == given.get("topic") or decisions_topic in INTERNAL_TOPICS
    ):
        raise OptionError(f"decisionsTopic must be a topic of its own, not {decisions_topic!r}")
    return WriteOptions(
        bootstrap_servers=bootstrap,
        topic=given.get("topic"),
        exactly_once=exactly_once,
        prefix=given.get("transactionalidprefix", WriteOptions.prefix),
        decisions_topic=decisions_topic,
        job_id=given.get("jobid"),
        producer=_producer(given, exactly_once),
    )


def _delivery(given: Given) -> str:
    delivery = given.get("delivery", AT_LEAST_ONCE).lower()
    if delivery not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise OptionError(f"delivery must be {AT_LEAST_ONCE} or {EXACTLY_ONCE}: {delivery!r}")
    return delivery


def _check_names(given: Given) -> None:
    names = (*_NAMES, *(PREFIX + setting for setting in _SETTINGS))
    known = {name.lower() for name in names}
    for key in sorted(given.keys() - known):
        setting = key.removeprefix(PREFIX)
        if setting != key and setting in _NOT_FOR_USERS:
            raise OptionError(f"{key} cannot be set: {_NOT_FOR_USERS[setting]}")
        if setting != key and _NOT_OFFERED.fullmatch(setting):
            raise OptionError(f"{key} is not supported: Barnabas has nothing of the kind")
        raise unknown_option(key, names)


def _producer(given: Given, exactly_once: bool) -> dict[str, Any]:
    """Kafka's settings as options of the client, which checks their values."""
    found: dict[str, Any] = {"batch_size": _BATCH_SIZE}
    for setting, name in _SETTINGS.items():
        key = PREFIX + setting
        if key not in given:
            continue
        if setting in _INTEGERS:
            found[name] = integer(given, key, 0)
        elif setting in _BOOLEANS:
            found[name] = boolean(given, key, False)
        else:
            found[name] = given[key]
    _check_client(found, "")
    if exactly_once:
        _check_client(found | {"transactional_id": "any"}, f"contradicts delivery={EXACTLY_ONCE}: ")
    return found


def _check_client(found: dict[str, Any], what: str) -> None:
    try:
        ProducerConfig.of(ProducerOptions(**found))  # type: ignore[typeddict-item]
    except InvalidArgumentError as error:
        names = {name: PREFIX + setting for setting, name in _SETTINGS.items()}
        raise OptionError(what + in_kafkas_words(error, names)) from None
