"""The checker's own mistakes are noticed: each edit below changes what is found in some history."""

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import barnabas_common.history
import pytest
from barnabas_common.history.lines import to_line

from tests.support.history_cases import CASES
from tests.support.history_model import history

SOURCE = Path(barnabas_common.history.__file__).parent

EDITS = [
    # file, what is there, what takes its place
    ("checks/seen.py", "elif before.value != value:", "elif False:"),
    ("checks/seen.py", "elif first != offset:", "elif False:"),
    ("checks/seen.py", "self.at[value] = min(first, offset)", "self.at[value] = offset"),
    ("checks/seen.py", "self.ended is not None and (", "("),
    ("checks/seen.py", "(not self.commit or self.stage is Stage.FAIL)", "not self.commit"),
    ("checks/seen.py", "self.commit and self.stage is Stage.OK", "self.commit"),
    ("checks/seen.py", "if read.read_committed and records:", "if records:"),
    ("checks/offsets.py", "read is not None and read.value != value", "False"),
    ("checks/offsets.py", "if first_value != value:", "if False:"),
    ("checks/offsets.py", "found in (None, sent.offset)", "True"),
    ("checks/offsets.py", "or value in repeated", ""),
    ("checks/losses.py", "if sent.stage is not Stage.OK:", "if sent.stage is Stage.FAIL:"),
    ("checks/losses.py", "if 0 <= sent.offset < log.begin:", "if False:"),
    ("checks/losses.py", "if 0 <= sent.offset <= log.highest_read:", "if False:"),
    ("checks/losses.py", "[sent.transaction].committed", "[sent.transaction].commit"),
    ("checks/losses.py", "< log.highest_committed", "<= 2**60"),
    ("checks/losses.py", "if there and gone:", "if False:"),
    ("checks/losses.py", "if transaction.committed or transaction.aborted:", "if False:"),
    ("checks/seen.py", "self.end is None or offset < self.begin", "self.end is None"),
    ("checks/seen.py", "self.end is None or offset < self.begin", "offset < self.begin"),
    ("checks/seen.py", "value != self.replaced.get(", "None is self.replaced.get("),
    ("checks/seen.py", "offset not in self.final or ", ""),
    ("checks/seen.py", "log.replaced[offset] = value", "pass"),
    ("checks/losses.py", "not sent.transaction or read.value in log.committed_reads", "True"),
    ("checks/reads.py", "if value not in log.sent:", "if False:"),
    ("checks/reads.py", "sent.stage is Stage.FAIL", "False"),
    ("checks/reads.py", "if transaction.aborted:", "if False:"),
    ("checks/reads.py", "read.time < transaction.ended", "read.time < 0"),
    ("checks/reads.py", "transaction.ended is None or ", "transaction.ended is not None and "),
    ("checks/polls.py", "offset <= last:", "offset < last:"),
    ("checks/polls.py", "offset > last + 1:", "offset > last + 2:"),
    ("checks/polls.py", "at.pop(partition, None)", "pass"),
    ("checks/polls.py", "or seen.is_visible(log, read.value):", "or True:"),
    ("checks/polls.py", "log.begin - 1", "-1"),
    ("checks/sends.py", "if not log.at:", "if False:"),
    ("checks/sends.py", "log.lacks(offset, value)", "False"),
    ("checks/sends.py", "log.lacks(offset, value)", "log.has_vanished(offset)"),
    ("checks/sends.py", "before[0] < offset", "True"),
    ("checks/sends.py", "sent.transaction and sent.transaction == ", "sent.transaction == "),
    ("checks/sends.py", "if between in log.read:", "if False:"),
    ("checks/cycles.py", "if before and writer and before != writer:", "if False:"),
    ("checks/cycles.py", "if len(members) > 1", "if len(members) > 2"),
    ("checks/cycles.py", "low[node] = min(low[node], index[other])", "pass"),
    ("checks/groups.py", "if offset > found.next:", "if offset > found.next + 1:"),
    ("checks/groups.py", "if not stored.failed", "if True"),
    ("checks/groups.py", "stored.done >= newest", "stored.done > newest + 10**9"),
    ("checks/groups.py", "stored.invoked < asked.answered", "True"),
    ("checks/groups.py", "or transaction.aborted", ""),
    ("checks/groups.py", "transaction.ended, ", "stored.invoked, "),
    ("checks/groups.py", "not log.begin <= offset < end", "not offset < end"),
    ("checks/groups.py", "if seen.is_visible(log, read.value):", "if True:"),
    ("checks/runs.py", "elif first == self._open[1] + 1:", "elif True:"),
    ("checks/runs.py", "max(found[-1][1], last)", "last"),
]  # fmt: skip


@pytest.fixture(scope="module")
def histories() -> list[list[str]]:
    """Every planted case, and valid histories, as lines."""
    told = [make().operations for make in CASES.values()]
    told += [history(seed, idempotent=seed % 2 == 0, transactions=seed < 8) for seed in range(12)]
    return [[to_line(operation) for operation in each] for each in told]


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Path]:
    sys.path.insert(0, str(tmp_path))
    yield tmp_path
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "changed_history"]:
        del sys.modules[name]


def copied(folder: Path, file: str = "", old: str = "", new: str = "") -> ModuleType:
    """Import a copy of the checker under another name, with one edit."""
    target = folder / "changed_history"
    shutil.copytree(SOURCE, target)
    for path in target.rglob("*.py"):
        text = path.read_text()
        if file and path == target / file:
            assert text.count(old) == 1, f"{file}: {text.count(old)} times: {old}"
            text = text.replace(old, new)
        path.write_text(text.replace("barnabas_common.history", "changed_history"))
    importlib.invalidate_caches()
    return importlib.import_module("changed_history.checker")


def found(checker: ModuleType, histories: list[list[str]]) -> Iterator[object]:
    """Yield the counts and the first proofs of each history."""
    decode = sys.modules[f"{checker.__package__}.lines"].from_line
    for lines in histories:
        findings = checker.check(decode(line) for line in lines).findings
        proofs = {str(a): each[0].operations for a, each in findings.examples.items()}
        yield {str(a): n for a, n in findings.counts.items()}, proofs


@pytest.fixture(scope="module")
def expected(histories: list[list[str]]) -> list[object]:
    return list(found(importlib.import_module("barnabas_common.history.checker"), histories))


def test_an_unchanged_copy_finds_the_same(
    copies: Path, histories: list[list[str]], expected: list[object]
) -> None:
    assert list(found(copied(copies), histories)) == expected


@pytest.mark.parametrize(("file", "old", "new"), EDITS, ids=[f"{f}: {o}" for f, o, _ in EDITS])
def test_an_edit_is_noticed(
    copies: Path,
    histories: list[list[str]],
    expected: list[object],
    file: str,
    old: str,
    new: str,
) -> None:
    changed = found(copied(copies, file, old, new), histories)
    assert any(one != other for one, other in zip(changed, expected, strict=True))
