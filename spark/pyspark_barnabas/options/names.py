"""Every name that an option may have, and a word about those that it may not."""

from pyspark_barnabas.options.kafka_settings import PREFIX, TAKEN
from pyspark_barnabas.options.values import Given, OptionError, unknown_option

SOURCES = ("assign", "subscribe", "subscribePattern")
BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
NAMES = (
    *SOURCES,
    *BATCH_ONLY,
    *STREAM_ONLY,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
    "maxRecordsPerPartition",
    "minPartitions",
)
# Names that the source had before it had Kafka's, and the argument of `load`, which says nothing.
ALSO = ("bootstrap.servers", "isolation.level", "pollTimeoutMs", "path")

_OF_WRITING = "it is an option of writing"
REFUSED = {
    "topic": f"{_OF_WRITING}; subscribe says what to read",
    "delivery": _OF_WRITING,
}


def check_names(given: Given) -> None:
    """Raise OptionError for a name that is none, with the name that was probably meant."""
    known = {name.lower() for name in (*NAMES, *ALSO)}
    for key in sorted(given):
        if key in known or key.startswith(PREFIX):
            continue
        if key in REFUSED:
            raise OptionError(f"{key!r} is not an option of reading: {REFUSED[key]}")
        raise unknown_option(key, (*NAMES, *(PREFIX + name for name in TAKEN)))
