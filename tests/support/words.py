"""Words that this project does not use, each with what to write instead.

This is the only list: `tests/unit/test_words.py` checks source and documents against it. To see
what a longer list would find, run `python -m tests.support.words`.
"""

import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.references import PACKAGES, ROOT

# Nowhere: neither in documents nor in the source, names of classes and functions included.
EVERYWHERE = {
    r"vouch\w*": "report as durable",
    r"in so many words": "with an explicit error",
    r"whomever": "name the actor",
    r"in so far": "as far as",
    r"lives? of (?:a|the|one) broker": "incarnation",
    r"reigns?": "controller term",
    r"lifelines?": "failure detector",
    r"seats?": "place in the ISR",
    r"appoint\w*": "make leader or follower",
    r"stand(?:s|ing)?[- ]ins?": "eligible leader replica",
    r"(?:earlier|next|another|other|this|its|last|each) (?:life|lives)": "incarnation",
    r"anew": "again, from scratch",
    r"knock\w*": "probe",
    r"obey\w*": "accept the requests of",
    r"who(?:so)?ever": "name the actor",
    r"(?:no|some|every)body(?:'s)?": "name the actor",
    r"for ever": "forever",
    r"well again": "recovered",
    r"in office|takes? office|taking office": "elected",
    r"the dead(?! broker| controller)": "brokers that do not run",
    r"stands? aside": "waits before the next election",
    r"(?:hears?|heard) of": "has received, knows",
    r"in good order": "cleanly",
    r"twins?": "counterpart",
    r"as good as": "the same as",
    r"one of both": "one of the two",
}

# In no text: documents, comments, docstrings, messages. Names in the source may still have them.
TEXTS = {
    r"outsiders?": "follower outside the ISR",
    r"verdicts?": "outcome",
    r"nonsense": "malformed data",
    r"spoil\w*|spoilt": "damage",
}

# Names on disk, on the wire, in events and in the counts of a campaign keep their first spelling.
NAMES = (
    "registered-anew",
    "REGISTERED_ANEW",
    "controller-stands-aside",
    "CONTROLLER_STANDS_ASIDE",
    "appointed_because",
    "spoil-checkpoint",
    "spoil-settings",
    'b"nonsense',
    '"for ever: ',
)

_OPTIONS = re.IGNORECASE


# A changelog is history.
SKIPPED = ("CHANGELOG.md",)


def documents() -> list[Path]:
    """Return the Markdown pages whose words are checked."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(page for page in pages if page.name not in SKIPPED)


def source() -> list[Path]:
    """Return the Python and protobuf files of the packages."""
    python = [file for package in PACKAGES for file in package.rglob("*.py")]
    return sorted([*python, *(ROOT / "proto" / "barnabas").rglob("*.proto")])


def findings(
    files: Iterable[Path], banned: dict[str, str], only_texts: bool = False
) -> Iterator[str]:
    """Yield a line for each banned word in the files: where, which, and what to write instead.

    `only_texts` leaves the names in Python source out.
    """
    rules = [
        (re.compile(rf"(?<![\w-])(?:{word})(?![\w])", _OPTIONS), instead)
        for word, instead in banned.items()
    ]
    for file in files:
        lines = file.read_text().splitlines()
        if only_texts and file.suffix == ".py":
            lines = _without_names(lines)
        for number, line in enumerate(lines, 1):
            for name in NAMES:
                line = line.replace(name, "")
            for rule, instead in rules:
                for found in rule.findall(line):
                    yield f"{file.relative_to(ROOT)}:{number}: {found!r}: write {instead!r}"


def names_of_tests(banned: dict[str, str]) -> Iterator[str]:
    """Yield the names of tests that have a banned word."""
    rules = [re.compile(rf"\b(?:{word})\b", _OPTIONS) for word in banned]
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in (file.stem, *re.findall(r"def (test_\w+)", file.read_text())):
            if any(rule.search(name.replace("_", " ")) for rule in rules):
                yield f"{file.relative_to(ROOT)}: {name}"


def _without_names(lines: list[str]) -> list[str]:
    """Return the lines of Python source with blanks in place of all names."""
    left = lines.copy()
    following = iter([f"{line}\n" for line in lines])
    for token in tokenize.generate_tokens(lambda: next(following, "")):
        if token.type == tokenize.NAME:
            (row, start), (_, end) = token.start, token.end
            line = left[row - 1]
            left[row - 1] = line[:start] + " " * (end - start) + line[end:]
    return left


def main() -> None:
    for line in findings([*documents(), *source()], EVERYWHERE):
        print(line)
    for line in findings([*documents(), *source()], TEXTS, only_texts=True):
        print(line)


if __name__ == "__main__":
    main()
