"""Where a query starts and ends: offsets or timestamps, for all partitions or for each.

Of several options the more specific comes first, as in Spark's Kafka source: `startingTimestamp`,
then `startingOffsetsByTimestamp`, then `startingOffsets`.
"""

from dataclasses import dataclass

from pyspark_barnabas.options.values import Given, OptionError, by_partition, decimal

EARLIEST = -2
LATEST = -1

# {"topic": {partition: offset or timestamp}}
ByPartition = dict[str, dict[int, int]]
# By partition, or one of the two words for every partition.
Offsets = ByPartition | int

_STRATEGY = "startingOffsetsByTimestampStrategy"


@dataclass(frozen=True)
class Limit:
    """`option` says it: `offsets`, or `timestamps` (ms) where those are not None.

    `latest_if_unmatched`: where no record has such a timestamp or a later one, take the latest
    offset; otherwise that is an error.
    """

    option: str
    offsets: Offsets = EARLIEST
    timestamps: ByPartition | int | None = None
    latest_if_unmatched: bool = False


FROM_EARLIEST = Limit("startingOffsets", EARLIEST)
TO_LATEST = Limit("endingOffsets", LATEST)


def starting_limit(given: Given, batch: bool) -> Limit:
    strategy = given.get(_STRATEGY.lower(), "error").lower()
    if strategy not in ("error", "latest"):
        raise OptionError(f'{_STRATEGY} must be "error" or "latest", not {strategy!r}')
    by_time = _by_timestamp(given, "starting", strategy == "latest")
    if by_time is not None:
        return by_time
    offsets = _offsets(given, "startingOffsets", EARLIEST if batch else LATEST)
    if batch:
        _refuse("startingOffsets", offsets, LATEST, "latest")
    return Limit("startingOffsets", offsets)


def ending_limit(given: Given) -> Limit:
    by_time = _by_timestamp(given, "ending", latest_if_unmatched=True)
    if by_time is not None:
        return by_time
    offsets = _offsets(given, "endingOffsets", LATEST)
    _refuse("endingOffsets", offsets, EARLIEST, "earliest")
    return Limit("endingOffsets", offsets)


def _by_timestamp(given: Given, which: str, latest_if_unmatched: bool) -> Limit | None:
    name = f"{which}Timestamp"
    text = given.get(name.lower())
    if text is not None:
        time = decimal(text)
        if time is None:
            raise OptionError(f"{name} must be a time in ms since 1970, not {text!r:.50}")
        return Limit(name, timestamps=time, latest_if_unmatched=latest_if_unmatched)
    name = f"{which}OffsetsByTimestamp"
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        timestamps = by_partition(text)
        if any(time < 0 for times in timestamps.values() for time in times.values()):
            raise ValueError(text)
    except ValueError:
        raise OptionError(
            f'{name} is not JSON like {{"topic": {{"0": 1000}}}}, times in ms: {text!r}'
        ) from None
    return Limit(name, timestamps=timestamps, latest_if_unmatched=latest_if_unmatched)


def _offsets(given: Given, name: str, default: int) -> Offsets:
    words = {"earliest": EARLIEST, "latest": LATEST}
    text = given.get(name.lower())
    if text is None:
        return default
    word = text.strip().lower()
    if word in words:
        return words[word]
    try:
        offsets = by_partition(text)
        if any(o < EARLIEST for by_p in offsets.values() for o in by_p.values()):
            raise ValueError(text)
    except ValueError:
        raise OptionError(
            f'{name} is neither "earliest" nor "latest" nor JSON like {{"topic": {{"0": 23}}}}:'
            f" {text!r}"
        ) from None
    return offsets


def _refuse(name: str, offsets: Offsets, refused: int, word: str) -> None:
    if offsets == refused:
        raise OptionError(f"{name} of a batch cannot be {word!r}")
    if isinstance(offsets, dict) and any(refused in by_p.values() for by_p in offsets.values()):
        raise OptionError(f"{name} of a batch cannot be {word} ({refused})")
