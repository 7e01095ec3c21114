"""A bit of a header changes on the disk. Whoever reads the batch notices; others read the rest.

Base offset, length and leader epoch are not under a batch's checksum, and the length says where the
next batch begins.
"""

import struct

import pytest
from barnabas.consumer.completed_fetch import before_damage
from barnabas_broker.log.errors import DamagedLogError
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.segment.lookup import entry_for
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.damaged_replicas import first_damage
from barnabas_common.errors import CorruptMessageError
from barnabas_common.record.batch import CorruptBatch, batches

from tests.support.log_world import FOLDER, LogWorld, produced, read_all, values_in

BATCHES = 10
PER_BATCH = 2
END = BATCHES * PER_BATCH
FIRST = f"{FOLDER}/{0:020}.log"
BITS = [
    *(pytest.param(bit, id=f"offset-{bit}") for bit in (0, 1, 2, 3, 4, 5, 7, 20, 33, 48, 63)),
    *(pytest.param(64 + bit, id=f"length-{bit}") for bit in (0, 1, 3, 5, 6, 7, 8, 12, 20, 31)),
    pytest.param(128, id="magic-0"),
    pytest.param(135, id="magic-7"),
    *(pytest.param(23 * 8 + bit, id=f"delta-{bit}") for bit in (0, 1, 4, 12, 31)),
]


def written(interval: int, is_sealed: bool) -> tuple[LogWorld, UnifiedLog]:
    """Return a log with committed batches of two records; `is_sealed`: in its first segment."""
    world = LogWorld()
    log = world.open(index_interval_bytes=interval)
    for number in range(BATCHES):
        world.append(log, b"%d" % (2 * number), b"%d" % (2 * number + 1))
    if is_sealed:
        log.roll()
        world.append(log, b"next segment")
    log.flush()
    return world, log


def flip(world: LogWorld, number: int, bit: int) -> None:
    """Change a bit, counted in each of a number's bytes from the last one, of one batch's header,
    in the file that the log has open."""
    file = world.disk.open(FIRST)
    data = bytearray(file.read(0, file.size()))
    position = [p for p, _ in batches(data)][number]
    start, width = next(
        (s, w) for s, w in ((0, 8), (8, 4), (16, 1), (23, 4)) if s * 8 <= bit < (s + w) * 8
    )
    within = bit - start * 8
    data[position + start + width - 1 - within // 8] ^= 1 << within % 8
    file.truncate(0)
    file.append([data])
    file.close()


def as_a_consumer(log: UnifiedLog, max_bytes: int = 1 << 20) -> tuple[dict[int, int], int | None]:
    """Read from the start, as leader and consumer do together; the values by their offsets, and the
    offset at which the leader finds damage, None without any."""
    found: dict[int, int] = {}
    offset = 0
    while offset < log.log_end_offset:
        try:
            data = log.read(offset, max_bytes, log.high_watermark)
        except CorruptMessageError:
            return found, offset
        damage = first_damage(data, offset, at_least_one=True, batch_limit=1)
        if damage is not None:
            return found, damage[0]
        records, last, fault = before_damage(data, offset, log.high_watermark)
        assert last is not None, f"the leader must notice it: {fault}"
        for position, header in batches(records):
            try:
                values = values_in(records[position : position + header.size])
            except CorruptBatch:
                return found, header.base_offset
            found |= {header.base_offset + n: int(v or -1) for n, v in enumerate(values)}
        assert last.next_offset > offset
        offset = last.next_offset
    return found, None


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", [0, 1, 5, BATCHES - 1])
@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "active"])
@pytest.mark.parametrize("max_bytes", [1, 150, 1 << 20])
def test_a_reader_gets_all_before_the_damage_and_the_leader_notices(
    bit: int, number: int, is_sealed: bool, max_bytes: int
) -> None:
    world, log = written(interval=0 if number % 2 else 200, is_sealed=is_sealed)
    flip(world, number, bit)
    found, damaged = as_a_consumer(log, max_bytes)
    first = number * PER_BATCH
    assert found == {offset: offset for offset in range(first)}
    assert damaged == first


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", [0, 1, 5, BATCHES - 1])
@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "active"])
def test_a_follower_gets_all_before_the_damage_and_the_leader_notices(
    bit: int, number: int, is_sealed: bool
) -> None:
    world, log = written(interval=0, is_sealed=is_sealed)
    flip(world, number, bit)
    copy = LogWorld().open()
    first = number * PER_BATCH
    damaged = None
    for _ in range(BATCHES + 2):
        offset = copy.log_end_offset
        try:
            data = log.read(offset, 150, log.log_end_offset)
        except CorruptMessageError:
            damaged = offset
            break
        if not data:
            damaged = offset
            break
        try:
            copy.append_as_follower(data)
        except CorruptMessageError:
            damage = first_damage(data, offset, at_least_one=True)
            assert damage is not None
            damaged = damage[0]
            break
    assert damaged == first
    assert [int(value or b"") for value in values_in(read_all(copy))] == list(range(first))


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", [1, 5, BATCHES - 1])
@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed", "active"])
def test_a_start_that_reads_the_log_finds_it(bit: int, number: int, is_sealed: bool) -> None:
    world, _ = written(interval=0, is_sealed=is_sealed)
    flip(world, number, bit)
    first = number * PER_BATCH
    is_last_offset = not is_sealed and number == BATCHES - 1 and bit < 31
    try:
        world.open(LogCheckpoint(high_watermark=END, is_unbroken=True))
    except DamagedLogError as error:
        assert f"damaged at offset {first}," in str(error)
    else:
        assert is_last_offset, "nothing follows that could contradict it"
    if not is_last_offset:
        assert world.open(LogCheckpoint(0, 0, END)).log_end_offset == first


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("interval", [0, 1 << 20], ids=["indexed", "not indexed"])
def test_a_start_after_a_clean_stop_finds_it_at_the_end_of_the_log(bit: int, interval: int) -> None:
    """It reads the batches behind the last index entry to find the end. The checkpoint knows it."""
    world, log = written(interval, is_sealed=False)
    log.close()
    flip(world, BATCHES - 1, bit)
    try:
        again = world.open(LogCheckpoint(END, 0, END, is_clean=True))
    except DamagedLogError as error:
        assert f"damaged at offset {END - PER_BATCH}," in str(error)
    else:
        assert again.log_end_offset == END, "reading it will tell"
        with pytest.raises(CorruptMessageError):
            again.read(END - 1, 1, END)


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("number", [1, 5, BATCHES - 1])
def test_a_follower_cuts_its_log_where_the_damaged_batch_begins(bit: int, number: int) -> None:
    """Nothing in place of its records may seem to be copied."""
    world, log = written(interval=0, is_sealed=True)
    flip(world, number, bit)
    first = number * PER_BATCH
    for damaged in (first, first + 1):
        try:
            end = log.data_end_below(damaged)
            log.truncate_to(end)
        except CorruptMessageError:
            return  # it starts again, see `DamagedReplicas.mend`
        assert log.log_end_offset <= first
        data = read_all(log)
        assert [int(v or b"") for v in values_in(data)] == list(range(log.log_end_offset))


def test_bytes_that_are_no_whole_batch_are_refused_by_a_follower() -> None:
    """It would fetch them again and again."""
    log = LogWorld().open()
    with pytest.raises(CorruptMessageError, match="not one whole batch"):
        log.append_as_follower(produced(b"a")[:-1])
    assert log.log_end_offset == 0


@pytest.mark.parametrize("bit", range(0, 64, 3))
def test_a_wrong_index_entry_damages_nothing(bit: int) -> None:
    world, log = written(interval=0, is_sealed=True)
    path = f"{FOLDER}/{0:020}.index"
    for entry in range(BATCHES - 1):
        data = bytearray(world.disk.read_file(path))
        assert len(data) == 8 * (BATCHES - 1)
        before = bytes(data)
        data[entry * 8 + 7 - bit // 8] ^= 1 << bit % 8
        world.disk.write_file(path, bytes(data))
        for offset in range(END):
            read = log.read(offset, 1, log.high_watermark)
            assert b"%d" % offset in values_in(read)
            assert first_damage(read, offset, at_least_one=True) is None
            log._local._positions.clear()
        world.disk.write_file(path, before)


def test_an_index_entry_of_kafka_is_used() -> None:
    """It has the last offset of what was appended at once, and where its first batch begins."""
    world, log = written(interval=0, is_sealed=True)
    positions = [p for p, _ in batches(world.disk.read_file(FIRST))]
    entries = [(3 * PER_BATCH - 1, positions[1]), (9 * PER_BATCH - 1, positions[3])]
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    world.disk.write_file(f"{FOLDER}/{0:020}.index", data)
    segment = log.segments()[0]
    segment.offset_index.open_sealed()
    for offset in range(END):
        found = segment.locate(offset)
        assert found is not None and found[0] == positions[offset // PER_BATCH]
        used = next((p for last, p in reversed(entries) if last <= offset), 0)
        assert entry_for(segment.log, segment.offset_index, offset).position == used


@pytest.mark.parametrize("interval", [0, 200, 400])
def test_behind_lost_borders_a_reader_goes_on_at_the_next_entry_of_the_index(interval: int) -> None:
    world, log = written(interval=interval, is_sealed=True)
    damaged = 3
    flip(world, damaged, 135)
    segment = log.segments()[0]
    first = damaged * PER_BATCH
    readable = [offset for offset in range(first, END) if _is_read(log, offset)]
    entries = [segment.offset_index.lookup(offset).offset for offset in range(first, END)]
    assert readable == [o for o, e in zip(range(first, END), entries, strict=True) if e > first + 1]
    assert readable, "the index has an entry behind the damage"


def _is_read(log: UnifiedLog, offset: int) -> bool:
    log._local._positions.clear()
    try:
        return b"%d" % offset in values_in(log.read(offset, 1, log.high_watermark))
    except CorruptMessageError:
        return False
