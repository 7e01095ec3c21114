"""`barnabas log verify` finds planted faults, and none in valid files."""

import json
import struct
from pathlib import Path

import pytest
from barnabas_common.record.batch import parse_header, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.transactional import marker_batch
from barnabas_tools.cli.arguments import hoist_global_options
from barnabas_tools.cli.log.log import batch_row
from barnabas_tools.cli.log.segment_check import check_partition
from barnabas_tools.cli.main import app
from typer.testing import CliRunner

BASE_TIME = 1_700_000_000_000


def batch(offset: int, records: int, epoch: int, timestamp: int = BASE_TIME) -> bytes:
    builder = BatchBuilder()
    for number in range(records):
        builder.append(timestamp + number, b"k", b"value")
    data = bytes(builder.build())
    return stamp(offset, epoch, len(data) - 12) + data[16:]


def test_a_dump_shows_headers_nulls_and_what_is_no_text(tmp_path: Path) -> None:
    builder = BatchBuilder()
    builder.append(BASE_TIME, None, b"\xff\x1b[2J", [("trace", b"a"), ("none", None)])
    builder.append(BASE_TIME, b"k\n", None)
    file = tmp_path / "00000000000000000000.log"
    data = bytes(builder.build())
    file.write_bytes(stamp(0, 0, len(data) - 12) + data[16:])
    shown = CliRunner().invoke(app, ["log", "dump", str(file), "--records"]).stdout.splitlines()
    first = "| offset: 0 timestamp: 1700000000000 headers: [trace=a,none=null] key: null"
    assert shown[-2] == rf"{first} payload: \xff\x1b[2J"
    second = "| offset: 1 timestamp: 1700000000000 headers: []"
    assert shown[-1] == rf"{second} key: k\n payload: null"
    arguments = ["log", "dump", str(file), "--records", "-o", "json"]
    lines = CliRunner().invoke(app, hoist_global_options(arguments)).stdout.splitlines()
    one, two = map(json.loads, lines[1:])
    assert one["headers"] == [["trace", "a"], ["none", None]] and one["key"] is None
    assert one["payload"] == {"base64": "/xtbMko="}
    assert (two["key"], two["payload"], two["headers"]) == ("k\n", None, [])


class Partition:
    """A partition's folder with two segments, in which a test can damage every part."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "t-0"
        self.first = [batch(0, 10, 0), batch(10, 5, 0, BASE_TIME + 100), batch(15, 5, 2)]
        self.second = [batch(20, 1, 2, BASE_TIME + 500)]
        position = len(self.first[0])
        self.index = struct.pack(">ii", 14, position)
        self.time_index = struct.pack(">qi", BASE_TIME + 104, 14)
        self.epochs = "0\n2\n0 0\n2 15\n"

    def faults(self) -> list[str]:
        self.directory.mkdir(exist_ok=True)
        files = {
            "00000000000000000000.log": b"".join(self.first),
            "00000000000000000000.index": self.index,
            "00000000000000000000.timeindex": self.time_index,
            "00000000000000000020.log": b"".join(self.second),
            "00000000000000000020.index": bytes(8 * 16),
            "00000000000000000020.timeindex": bytes(12 * 16),
            "leader-epoch-checkpoint": self.epochs.encode(),
        }
        for name, content in files.items():
            (self.directory / name).write_bytes(content)
        return check_partition(self.directory).faults


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path)


def test_sound_files_have_no_fault(partition: Partition) -> None:
    assert partition.faults() == []
    check = check_partition(partition.directory)
    assert (check.segments, check.batches, check.records) == (2, 4, 21)
    assert (check.log_start_offset, check.log_end_offset) == (0, 21)


def test_a_flipped_bit_is_found(partition: Partition) -> None:
    spoiled = bytearray(partition.first[1])
    spoiled[70] ^= 1
    partition.first[1] = bytes(spoiled)
    (fault,) = partition.faults()
    assert "00000000000000000000.log" in fault
    assert str(len(partition.first[0])) in fault


def test_a_torn_tail_is_found(partition: Partition) -> None:
    partition.second[0] = partition.second[0][:-3]
    assert any("lacks 3 bytes" in fault for fault in partition.faults())


def test_zeroes_at_the_end_are_found(partition: Partition) -> None:
    partition.second.append(bytes(200))
    assert len(partition.faults()) == 1


def test_missing_offsets_are_found(partition: Partition) -> None:
    partition.second = [batch(25, 1, 2)]
    assert any("20 to 24 are missing" in fault for fault in partition.faults())


def test_missing_offsets_of_a_compacted_log_are_no_fault(partition: Partition) -> None:
    del partition.first[1]
    partition.index = partition.time_index = b""
    (partition.directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    assert partition.faults() == []
    (partition.directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 1 20\n")
    assert any("missing" in fault for fault in partition.faults())


def test_nor_are_they_in_a_folder_of_it_that_was_set_aside(partition: Partition) -> None:
    del partition.first[1]
    partition.index = partition.time_index = b""
    (partition.directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    assert partition.faults() == []
    aside = partition.directory.rename(f"{partition.directory}.{'0a' * 16}-stray")
    assert check_partition(aside).faults == []


def test_repeated_offsets_are_found(partition: Partition) -> None:
    partition.first[2] = batch(12, 8, 2)
    assert any("offset 12 after 14" in fault for fault in partition.faults())


def test_a_falling_epoch_is_found(partition: Partition) -> None:
    partition.second = [batch(20, 1, 1)]
    assert any("epoch 1" in fault for fault in partition.faults())


def test_an_epoch_that_the_checkpoint_lacks_is_found(partition: Partition) -> None:
    partition.epochs = "0\n1\n0 0\n"
    assert any("epoch 2, from offset 15" in fault for fault in partition.faults())


def test_an_epoch_with_a_wrong_start_is_found(partition: Partition) -> None:
    partition.epochs = "0\n2\n0 0\n2 10\n"
    assert any("epoch 2 starts at offset 10" in fault for fault in partition.faults())


def test_an_epoch_whose_first_records_were_retained_away_is_no_fault(partition: Partition) -> None:
    partition.faults()
    for path in partition.directory.glob("00000000000000000000.*"):
        path.unlink()
    (partition.directory / "leader-epoch-checkpoint").write_text("0\n1\n2 15\n")
    assert check_partition(partition.directory).faults == []


def test_an_unreadable_checkpoint_is_found(partition: Partition) -> None:
    partition.epochs = "0\n7\n0 0\n"
    assert any("7 entries announced" in fault for fault in partition.faults())


@pytest.mark.parametrize(
    "entry, expected",
    [
        ((14, 5), "no batch begins at position 5"),
        ((13, None), "ends with 14"),
    ],
)
def test_a_wrong_index_entry_is_found(
    partition: Partition, entry: tuple[int, int | None], expected: str
) -> None:
    relative, position = entry
    partition.index = struct.pack(
        ">ii", relative, len(partition.first[0]) if position is None else position
    )
    assert any(expected in fault for fault in partition.faults())


@pytest.mark.parametrize(
    "timestamp, relative, expected",
    [(BASE_TIME + 103, 14, "timestamp"), (BASE_TIME + 104, 99, "no batch holds offset 99")],
)
def test_a_wrong_time_index_entry_is_found(
    partition: Partition, timestamp: int, relative: int, expected: str
) -> None:
    partition.time_index = struct.pack(">qi", timestamp, relative)
    assert any(expected in fault for fault in partition.faults())


@pytest.mark.parametrize("command", ["verify", "dump"])
def test_a_file_that_is_no_segment_is_not_called_sound(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "broker-1"
    folder.mkdir()
    (folder / "broker.log").write_text("INFO started\n")
    (folder / "00000000000000000000.index").write_bytes(bytes(8))
    for path in (tmp_path, folder, *folder.iterdir()):
        result = CliRunner().invoke(app, ["log", command, str(path)])
        assert result.exit_code == 1, path
        assert str(path) in result.stderr


def test_a_dumped_header_has_kafkas_names() -> None:
    row = batch_row(7, parse_header(batch(10, 5, 3)), valid=True)
    assert row["baseOffset"] == 10 and row["lastOffset"] == 14 and row["count"] == 5
    assert row["partitionLeaderEpoch"] == 3 and row["position"] == 7
    assert row["compresscodec"] == "none" and row["isvalid"] is True
    assert row["CreateTime"] == BASE_TIME + 4


def test_a_dump_says_what_compaction_would_keep_and_why(partition: Partition) -> None:
    partition.faults()
    dumped = CliRunner().invoke(
        app, ["--output", "json", "log", "dump", str(partition.directory), "--compaction"]
    )
    rows = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert [row["offset"] for row in rows] == list(range(20)), "the active segment is left out"
    assert [row["stays"] for row in rows] == [False] * 19 + [True]
    assert rows[0]["because"] == "a later record has its key"
    assert rows[19] == {"offset": 19, "key": "k", "stays": True, "because": "the newest of its key"}


ABORTED = struct.Struct(">hqqqq")


def with_transaction(partition: Partition) -> Path:
    """Add an aborted transaction of producer id 7 with its marker; returns the index's path."""
    partition.faults()
    log = partition.directory / "00000000000000000020.log"
    marker = marker_batch(7, 0, False, 0, BASE_TIME + 600)
    with log.open("ab") as file:
        file.write(batch(21, 2, 2, BASE_TIME + 550))
        file.write(stamp(23, 2, len(marker) - 12) + marker[16:])
    return log.with_suffix(".txnindex")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (ABORTED.pack(0, 7, 21, 23, 24), None),
        (ABORTED.pack(0, 7, 21, 23, 24)[:-1], "not a whole number of entries"),
        (b"\x07" * 34, "version 1799 is not 0"),
        (ABORTED.pack(0, 8, 21, 23, 24), "producer id 8, but the marker at offset 23 is of 7"),
        (ABORTED.pack(0, 7, 21, 22, 23), "there is no abort marker at offset 22"),
        (ABORTED.pack(0, 7, 24, 23, 24), "a transaction from 24 to 23"),
        (ABORTED.pack(0, 7, 21, 23, 25), "last stable offset 25 after the marker at 23"),
        (ABORTED.pack(0, 7, 21, 23, 24) * 2, "entry 1 ends at 23, the one before it at 23"),
    ],
)
def test_the_transaction_index_is_compared_with_the_markers(
    partition: Partition, content: bytes, fault: str | None
) -> None:
    with_transaction(partition).write_bytes(content)
    found = check_partition(partition.directory).faults
    assert found == [] if fault is None else any(fault in one for one in found), found


def test_a_marker_that_was_compacted_away_is_no_fault(partition: Partition) -> None:
    with_transaction(partition).write_bytes(ABORTED.pack(0, 7, 21, 22, 23))
    (partition.directory.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 20\n")
    assert check_partition(partition.directory).faults == []


@pytest.mark.parametrize("commit", [True, False])
def test_a_dump_says_what_a_marker_says(tmp_path: Path, commit: bool) -> None:
    file = tmp_path / "00000000000000000000.log"
    marker = marker_batch(7, 0, commit, 3, BASE_TIME)
    file.write_bytes(stamp(0, 0, len(marker) - 12) + marker[16:])
    shown = CliRunner().invoke(app, ["log", "dump", str(file), "--records"]).stdout.splitlines()
    kind = "COMMIT" if commit else "ABORT"
    assert shown[-1] == (
        f"| offset: 0 timestamp: {BASE_TIME} endTxnMarker: {kind} coordinatorEpoch: 3"
    )


def test_a_preview_of_a_log_with_one_segment_says_why_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000.log").write_bytes(batch(0, 1, 0))
    done = CliRunner().invoke(app, ["log", "dump", str(tmp_path), "--compaction"])
    assert (done.exit_code, done.stdout) == (0, "") and "only the active segment" in done.stderr
