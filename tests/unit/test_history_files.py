"""Histories on disk: whole lines survive a kill, and what cannot be judged is refused by name."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from barnabas_common.history.checker import check
from barnabas_common.history.files import HistoryWriter, history_files, read_file, read_files
from barnabas_common.history.lines import MalformedHistoryError, from_line, to_line
from barnabas_common.history.operations import Operation, Poll, Send, Stage

SENT = Send(time=1, client="p", number=1, stage=Stage.INVOKE, partition="t-0", value="a")

_ENDLESS = """
import sys, time
from pathlib import Path
from barnabas_common.history.files import HistoryWriter
from barnabas_common.history.operations import Send, Stage
writer = HistoryWriter(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    fields = {"client": "p", "number": number, "partition": "t-0", "value": f"{number}" * 20}
    writer.write(Send(time=time.monotonic_ns(), stage=Stage.INVOKE, **fields))
    if number == 100:
        print("started", flush=True)
"""


def test_lines_survive_a_kill_of_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "p.1.jsonl"
    command = [sys.executable, "-c", _ENDLESS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"started\n"
        writer.send_signal(signal.SIGKILL)
    found = list(read_file(path))
    assert len(found) >= 100
    assert [operation.number for operation in found] == list(range(1, len(found) + 1))


def test_a_torn_last_line_is_dropped_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "p.1.jsonl"
    whole = f"{to_line(SENT)}\n".encode()
    for cut in range(len(whole)):
        path.write_bytes(whole + whole[:cut])
        assert list(read_file(path)) == [SENT]


def test_a_writer_does_not_append_to_an_earlier_process(tmp_path: Path) -> None:
    with HistoryWriter(tmp_path / "p.1.jsonl") as writer:
        writer.write(SENT)
    with pytest.raises(FileExistsError):
        HistoryWriter(tmp_path / "p.1.jsonl")


def test_files_are_merged_by_time(tmp_path: Path) -> None:
    for client, times in (("a", (1, 4)), ("b", (2, 3))):
        with HistoryWriter(tmp_path / f"{client}.1.jsonl") as writer:
            for time in times:
                writer.write(Poll(time=time, client=client, records={}))
    merged = read_files(history_files(tmp_path))
    assert [(each.time, each.client) for each in merged] == [(1, "a"), (2, "b"), (3, "b"), (4, "a")]


def test_a_folder_without_a_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedHistoryError, match=r"there is no file \*\.jsonl"):
        history_files(tmp_path)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not an object"),
        (b'{"f":"sned"}', "an operation is one of send, poll"),
        (b'{"f":"send"}', "send without 't'"),
        (b'{"f":"send","t":1,"p":"a","i":1,"n":1,"type":"ok"}', "send without 'partition'"),
        (b'{"f":"poll","t":"1","p":"a","i":1,"n":1,"type":"ok"}', "time of poll must not be '1'"),
        (b'{"f":"poll","t":1,"p":"a","i":1,"n":1,"type":"yes"}', "stage of poll must not be 'yes'"),
        (b'{"f":"poll","t":1,"p":"a","i":1,"n":1,"type":"ok","offset":2}', "no field 'offset'"),
        (
            b'{"f":"poll","t":1,"p":"a","i":1,"n":1,"type":"ok","records":{"t-0":[[1]]}}',
            "records of poll must not be",
        ),
    ],
)
def test_a_malformed_line_is_refused_with_its_place(tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / "p.1.jsonl"
    path.write_bytes(f"{to_line(SENT)}\n".encode() + line + b"\n")
    with pytest.raises(MalformedHistoryError, match="p.1.jsonl:2: ") as error:
        list(read_file(path))
    assert why in str(error.value)


def test_time_that_goes_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.1.jsonl"
    path.write_text(f"{to_line(SENT)}\n{to_line(Poll(time=0, client='p', records={}))}\n")
    with pytest.raises(MalformedHistoryError, match="p.1.jsonl:2: time goes back"):
        list(read_file(path))


def entry(stage: Stage, time: int, value: str = "a", number: int = 1) -> Send:
    fields = {"partition": "t-0", "value": value}
    return Send(time=time, client="p", number=number, stage=stage, **fields)


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        ([entry(Stage.OK, 1)], "send p/1#1 is completed, but was not invoked"),
        ([entry(Stage.INVOKE, 1), entry(Stage.INVOKE, 2)], "is invoked while send has its number"),
        (
            [entry(Stage.INVOKE, 1), entry(Stage.OK, 2), entry(Stage.INFO, 3)],
            "is completed, but was not invoked",
        ),
        ([entry(Stage.INVOKE, 2), entry(Stage.OK, 1)], "is earlier than the entry before it"),
        ([Poll(time=1, client="p", stage=Stage.FAIL, records={})], "poll p/1#0 cannot be fail"),
        (
            [entry(Stage.INVOKE, 1), entry(Stage.INVOKE, 2, number=2)],
            "p/1#2 sends a value again: 'a'",
        ),
    ],
)
def test_what_is_no_history_is_not_judged(operations: list[Operation], why: str) -> None:
    with pytest.raises(MalformedHistoryError) as error:
        check(operations)
    assert why in str(error.value)


def test_nothing_acknowledged_and_nothing_read_at_the_end_proves_nothing() -> None:
    assert not check([]).good
    unread = check([entry(Stage.INVOKE, 1), from_line(_ACKED)])
    assert unread.unread == ["t-0"]
    assert not unread.good


_ACKED = (
    '{"t":2,"p":"p","i":1,"n":1,"type":"ok","f":"send","partition":"t-0","value":"a","offset":0}'
)


def test_the_writer_says_if_the_disk_is_full() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    writer = HistoryWriter.__new__(HistoryWriter)
    writer._descriptor, writer._path = os.open("/dev/full", os.O_WRONLY), Path("/dev/full")
    with pytest.raises(OSError, match="No space left"), writer:
        writer.write(SENT)
