"""Values of options: Spark passes all of them as text."""

import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

# Option keys in lower case, and what the user gave.
Given = Mapping[str, str]

_DURATION = re.compile(r"(\d+)\s*([a-z]*)")
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


def boolean(given: Given, name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def integer(given: Given, name: str, default: int, minimum: int = 0) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or int(text) < minimum:
        raise OptionError(f"{name} must be a whole number, {minimum} or more, not {text!r}")
    return int(text)


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


def by_partition(name: str, text: str) -> dict[str, dict[int, int]]:
    """Parse JSON like {"topic": {"0": 23}}. Raises ValueError for anything else."""
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ValueError(name)
    found = {}
    for topic, numbers in parsed.items():
        if topic.startswith("@"):
            continue  # offsets as a stream's progress reports them: the topics' ids
        if not isinstance(numbers, dict):
            raise ValueError(name)
        found[topic] = {_partition(key): whole(number) for key, number in numbers.items()}
    return found


def _partition(text: str) -> int:
    """Raises ValueError for "1_0", " 1" and "01", which `int` takes."""
    number = int(text)
    if str(number) != text:
        raise ValueError(text)
    return number


def whole(number: object) -> int:
    """Return the number. Raises ValueError for 1.5 and true, which JSON has too."""
    if type(number) is not int:
        raise ValueError(number)
    return number
