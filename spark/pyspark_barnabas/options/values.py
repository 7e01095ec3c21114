"""Values of options: Spark passes all of them as text."""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from barnabas_common.errors import InvalidTopicError
from barnabas_common.topic_name import validate_topic_name

# Option keys in lower case, and what the user gave.
Given = Mapping[str, str]

# The largest long and the largest int of Java and of the protocol.
MOST = 2**63 - 1
MOST_INT = 2**31 - 1
_DIGITS = re.compile(r"[0-9]{1,19}")
_DURATION = re.compile(r"([0-9]{1,12})\s*([a-z]*)")
_MILLISECONDS = {
    "": 1,
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


class OptionError(ValueError):
    """An option that does not exist, is missing, contradicts another, or has an invalid value."""


def unknown_option(key: str, names: Iterable[str]) -> OptionError:
    """Return the error for a name that is none of these, with the one that was probably meant."""
    spelt = {name.lower(): name for name in names}
    near = get_close_matches(key, spelt, n=1, cutoff=0.7)
    hint = f"; did you mean {spelt[near[0]]!r}?" if near else ""
    return OptionError(f"there is no option {key!r}{hint}")


def in_kafkas_words(error: Exception, names: Mapping[str, str]) -> str:
    """Return what the client says, with the option's name for each name of the client."""
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), str(error))


def check_topic(name: str, topic: str) -> None:
    """Raise OptionError unless a topic may have this name."""
    try:
        validate_topic_name(topic)
    except InvalidTopicError as error:
        raise OptionError(f"{name}: {error}") from None


def boolean(given: Given, name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def integer(given: Given, name: str, default: int, minimum: int = 0, maximum: int = MOST) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    number = decimal(text)
    if number is None or number < minimum:
        raise OptionError(f"{name} must be a whole number, {minimum} or more, not {text!r:.50}")
    if number > maximum:
        raise OptionError(f"{name} must be {maximum} or less, not {number}")
    return number


def decimal(text: str) -> int | None:
    """The number in decimal digits; None for anything else, and for more than 64 bits."""
    found = _DIGITS.fullmatch(text.strip())
    return int(text) if found and int(text) <= MOST else None


def optional_integer(given: Given, name: str, minimum: int = 1) -> int | None:
    return integer(given, name, 0, minimum) if name.lower() in given else None


def duration_ms(given: Given, name: str, default: int) -> int:
    """Return a time such as "15m", "30s", "500ms" or "500" in milliseconds."""
    if name.lower() not in given:
        return default
    text = given[name.lower()].strip().lower()
    found = _DURATION.fullmatch(text)
    if found is None or found[2] not in _MILLISECONDS:
        raise OptionError(f"{name} must be a time like 500ms, 30s, 15m or 2h, not {text!r}")
    return int(found[1]) * _MILLISECONDS[found[2]]


def by_partition(text: str) -> dict[str, dict[int, int]]:
    """Parse JSON like {"topic": {"0": 23}}. Raises ValueError for anything else."""
    return numbers_of(json_of(text))


def numbers_of(parsed: object) -> dict[str, dict[int, int]]:
    """The numbers by topic and partition; raises ValueError for JSON of another form."""
    if not isinstance(parsed, dict):
        raise ValueError(parsed)
    found = {}
    for topic, numbers in parsed.items():
        if topic.startswith("@"):
            continue  # offsets as a stream's progress reports them: the topics' ids
        if not isinstance(numbers, dict):
            raise ValueError(numbers)
        found[topic] = {_partition(key): whole(number) for key, number in numbers.items()}
    return found


def json_of(text: str) -> Any:
    """Parse JSON. Raises ValueError for other text, and for an object that has a name twice."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _partition(text: str) -> int:
    """Raises ValueError for "1_0", " 1" and "01", which `int` takes."""
    number = partition_number(int(text))
    if str(number) != text:
        raise ValueError(text)
    return number


def partition_number(number: object) -> int:
    found = whole(number)
    if not 0 <= found <= MOST_INT:
        raise ValueError(number)
    return found


def whole(number: object) -> int:
    """Return the number. Raises ValueError for 1.5 and true, which JSON has too, and for more than
    64 bits."""
    if type(number) is not int or not -(2**63) <= number <= MOST:
        raise ValueError(number)
    return number
