"""Where `barnabas group reset-offsets` sets a group, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.admin.group import _STATES
from barnabas_tools.cli.admin.reset_offsets import (
    Log,
    Target,
    duration_ms,
    inside,
    is_selected,
    milliseconds,
    read,
    selected,
    target_of,
    wanted_offset,
)
from barnabas_tools.cli.settings import UsageFailed, checked_states

TP = TopicPartition("flights", 0)
LOG = Log(earliest=10, latest=100, committed=40, at_time=55)
NOTHING: dict[str, Any] = {
    "offset": None, "at": None, "duration": None, "shift": None, "earliest": False,
    "latest": False, "current": False, "file": None, "now_ms": 10_000_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "log", "expected"),
    [
        (Target(offset=70), LOG, 70),
        (Target(offset=7), LOG, 10),
        (Target(offset=700), LOG, 100),
        (Target(shift=5), LOG, 45),
        (Target(shift=-5), LOG, 35),
        (Target(shift=-500), LOG, 10),
        (Target(shift=500), LOG, 100),
        (Target(earliest=True), LOG, 10),
        (Target(latest=True), LOG, 100),
        (Target(current=True), LOG, 40),
        (Target(current=True), Log(10, 100, None), 100),
        (Target(timestamp=1), LOG, 55),
        (Target(timestamp=1), Log(10, 100, 40, None), 100),
        (Target(file={TP: 12}), LOG, 12),
        (Target(file={TP: 0}), LOG, 10),
    ],
)
def test_the_new_offset_is_inside_the_log(target: Target, log: Log, expected: int) -> None:
    assert inside(wanted_offset(TP, target, log), log) == expected


def test_a_shift_needs_a_committed_offset() -> None:
    with pytest.raises(UsageFailed, match="no committed offset"):
        wanted_offset(TP, Target(shift=1), Log(0, 9, None))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"offset": 0}, Target(offset=0)),
        ({"shift": -3}, Target(shift=-3)),
        ({"latest": True}, Target(latest=True)),
        ({"duration": "PT1H"}, Target(timestamp=6_400_000)),
        ({"at": "1970-01-01T00:00:07"}, Target(timestamp=7_000)),
    ],
)
def test_one_target_is_taken(given: dict[str, Any], expected: Target) -> None:
    assert target_of(**{**NOTHING, **given}) == expected


@pytest.mark.parametrize(
    "given", [{}, {"offset": 1, "latest": True}, {"shift": 0, "earliest": True}]
)
def test_none_and_two_targets_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageFailed, match="exactly one"):
        target_of(**{**NOTHING, **given})


def test_times_and_durations() -> None:
    assert milliseconds("1970-01-01T00:00:01+00:00") == 1_000
    assert milliseconds("1970-01-01T01:00:01+01:00") == 1_000
    assert duration_ms("P1DT2H3M4S") == (((24 + 2) * 60 + 3) * 60 + 4) * 1000
    for wrong in ("", "P", "PT", "1h", "P1H", "-PT1S"):
        with pytest.raises(UsageFailed):
            duration_ms(wrong)
    with pytest.raises(UsageFailed):
        milliseconds("yesterday")


def test_a_file_is_what_export_prints(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("flights,0,17\n\nflights,3,0\n")
    assert read(file) == {TP: 17, TopicPartition("flights", 3): 0}
    for wrong in ("flights,0", "flights,zero,1", "flights,0,1,2"):
        file.write_text(wrong)
        with pytest.raises(UsageFailed, match="topic,partition,offset"):
            read(file)
    for wrong, told in (("", "no line"), ("flights,0,1\nflights,0,2", "flights-0 twice")):
        file.write_text(wrong)
        with pytest.raises(UsageFailed, match=told):
            read(file)
    with pytest.raises(UsageFailed, match="cannot be read"):
        read(tmp_path / "missing.csv")


def test_topics_and_their_partitions() -> None:
    assert selected(["flights", "rates:0,2"]) == {"flights": None, "rates": [0, 2]}
    with pytest.raises(UsageFailed):
        selected(["rates:x"])


def test_a_topic_may_be_named_several_times() -> None:
    """Only the last `--topic` counted, and the others were not reset."""
    assert selected(["rates:0", "rates:2,3"]) == {"rates": [0, 2, 3]}
    assert selected(["rates:0", "rates"]) == selected(["rates", "rates:0"]) == {"rates": None}


def test_of_a_file_only_the_named_partitions_are_reset() -> None:
    """`--from-file` with `--topic flights:0` reset every partition of flights in the file."""
    other, elsewhere = TopicPartition("flights", 1), TopicPartition("rates", 0)
    for topics, expected in (
        ([], [TP, other, elsewhere]),
        (["flights"], [TP, other]),
        (["flights:0"], [TP]),
        (["flights:0", "rates"], [TP, elsewhere]),
    ):
        chosen = selected(topics)
        assert [tp for tp in (TP, other, elsewhere) if is_selected(tp, chosen)] == expected


@pytest.mark.parametrize(
    "text", ["P9999999999999D", "PT99999999999999999H", pytest.param(f"P{9:05000}D", id="digits")]
)
def test_a_duration_that_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(UsageFailed, match="--by-duration"):
        target_of(**{**NOTHING, "duration": text})


def test_a_time_before_1970_is_no_special_timestamp() -> None:
    """-1 and -2 would mean the end and the beginning to ListOffsets."""
    target = target_of(**{**NOTHING, "at": "1969-12-31T23:59:59.999"})
    assert target.timestamp == 0


@pytest.mark.parametrize("content", [b"\xd0\x00", b"flights,0," + b"1" * 200_000])
def test_a_file_that_is_no_export_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes(content)
    with pytest.raises(UsageFailed, match=r"offsets\.csv"):
        read(file)


def test_states_are_found_in_any_case_and_others_are_refused() -> None:
    assert checked_states(["empty", "PreparingRebalance"], _STATES) == [
        "Empty",
        "PreparingRebalance",
    ]
    assert checked_states(None, _STATES) == []
    with pytest.raises(UsageFailed, match="Stable, Dead, Empty, not 'Foo'"):
        checked_states(["Stable", "Foo"], _STATES)
