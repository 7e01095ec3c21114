"""Apache Kafka's own tools and classes, run on Barnabas's files.

Maven fetches the jars once into `.cache/kafka-tools` (or KAFKA_TOOLS_DIR). `Unavailable` says which
of Java, its compiler, Maven or a network is missing.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
JARS = "libs"
# The lines that DumpLogSegments prints for a file without faults. Any other line is a fault.
_HARMLESS = re.compile(
    r"Dumping .*|Log starting offset: \d+|.* passed sanity check\.|.*index is empty\.|"
)
_OFFSET_ENTRY = re.compile(r"offset: (\d+) position: (\d+)")
_TIME_ENTRY = re.compile(r"timestamp: (-?\d+) offset: (\d+)")
_FIELD = re.compile(r"(\w+): (\S+)")


class Unavailable(Exception):
    """Kafka's classes cannot be run here; the message says why."""


@dataclass
class Dump:
    """The output of DumpLogSegments. Batches and records are its `name: value` fields, as text."""

    batches: list[dict[str, str]] = field(default_factory=list)
    records: list[dict[str, str]] = field(default_factory=list)
    offset_entries: list[tuple[int, int]] = field(default_factory=list)  # offset, position
    time_entries: list[tuple[int, int]] = field(default_factory=list)  # timestamp, offset
    faults: list[str] = field(default_factory=list)


def kafka_jars() -> Path:
    """Return the folder with Kafka's jars, fetched if necessary; raises Unavailable."""
    cache = Path(os.environ.get("KAFKA_TOOLS_DIR") or HERE.parents[1] / ".cache" / "kafka-tools")
    jars = cache / JARS
    if jars.is_dir():
        return jars
    for command in ("java", "javac", "mvn"):
        if shutil.which(command) is None:
            raise Unavailable(f"Kafka's own tools need {command}")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        shutil.copy(HERE / "pom.xml", work)
        goal = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        done = subprocess.run(goal, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"Maven cannot fetch Kafka's jars: {done.stdout[-500:]}")
        if not jars.is_dir():
            (Path(work) / JARS).rename(jars)
    return jars


def run_java(what: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a class of Kafka, or a source file in `java/`, with Kafka on the class path.

    `given` is its standard input.
    """
    command = java_command(what, *arguments)
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def java_command(what: str, *arguments: str) -> list[str]:
    """The command of `run_java`."""
    source = HERE / "java" / f"{what}.java"
    return [
        "java",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-Dlog4j.configuration=file:{HERE / 'log4j.properties'}",
        "-cp",
        f"{kafka_jars()}/*",
        str(source) if source.exists() else what,
        *arguments,
    ]


def read_leader_epochs(directory: Path) -> list[tuple[int, int]]:
    """Return what Kafka's LeaderEpochCheckpointFile reads: pairs of epoch and start offset."""
    done = run_java("ReadLeaderEpochs", str(directory))
    if done.returncode:
        raise AssertionError(f"Kafka cannot read the leader-epoch-checkpoint:\n{done.stderr}")
    return [(int(epoch), int(offset)) for epoch, offset in map(str.split, done.stdout.splitlines())]


def write_segments(directory: Path) -> None:
    """Let Kafka write a partition's log; see `java/WriteSegments.java` for its contents."""
    done = run_java("WriteSegments", str(directory))
    if done.returncode:
        raise AssertionError(f"Kafka could not write the segments:\n{done.stderr}")


def compact_log(directory: Path, segment_bytes: int, passes: int, map_bytes: int) -> int:
    """Let Kafka's cleaner compact a cleanly closed log; returns the milliseconds that it took."""
    numbers = map(str, (segment_bytes, passes, map_bytes))
    done = run_java("CompactLog", str(directory), *numbers)
    if done.returncode:
        raise AssertionError(f"Kafka could not compact the log:\n{done.stderr}{done.stdout}")
    return int(done.stdout.split()[-1])


def assign_groups(questions: Iterable[str]) -> list[str]:
    """The answers of Kafka's assignors, line by line; see `java/AssignGroups.java`."""
    done = run_java("AssignGroups", given="".join(f"{question}\n" for question in questions))
    if done.returncode:
        raise AssertionError(f"Kafka's assignors failed:\n{done.stderr[-2000:]}")
    return done.stdout.splitlines()


def dump_log_segments(files: Iterable[Path], *options: str) -> Dump:
    """Run Kafka's DumpLogSegments on log and index files, with deep iteration over the records."""
    names = ",".join(map(str, files))
    done = run_java("kafka.tools.DumpLogSegments", "--deep-iteration", *options, "--files", names)
    dump = parse_dump(done.stdout)
    dump.faults += [line for line in done.stderr.splitlines() if line.strip()]
    if done.returncode:
        dump.faults.append(f"DumpLogSegments ended with exit code {done.returncode}")
    return dump


def parse_dump(text: str) -> Dump:
    """Sort the tool's lines; a line that is not known to be harmless is a fault."""
    dump = Dump()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("baseOffset: "):
            batch = dict(_FIELD.findall(line))
            dump.batches.append(batch)
            if batch["isvalid"] != "true":
                dump.faults.append(line)
        elif line.startswith("| offset: "):
            dump.records.append(dict(_FIELD.findall(line)))
        elif entry := _OFFSET_ENTRY.fullmatch(line):
            dump.offset_entries.append((int(entry[1]), int(entry[2])))
        elif entry := _TIME_ENTRY.fullmatch(line):
            dump.time_entries.append((int(entry[1]), int(entry[2])))
        elif not _HARMLESS.fullmatch(line):
            dump.faults.append(line)
    return dump
