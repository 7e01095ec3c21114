"""Our readers, and Kafka's, can read every accepted batch to its end."""

import ctypes
import mmap
import random
from dataclasses import replace

import pytest
from barnabas_broker.config import LogConfig
from barnabas_broker.log.record_validation import validate_records
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.log.validation import check_produced, verified
from barnabas_common.errors import InvalidRecordError, InvalidTimestampError, KafkaError
from barnabas_common.record.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    Buffer,
    CorruptBatch,
    pack_header,
    parse_header,
    seal,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import read_batch
from barnabas_common.record.recompress import recompress

from tests.support import plain_codec
from tests.support.log_world import NOW, LogWorld, produced
from tests.support.mutants import mutants

CONFIG = LogConfig()
EXACT = LogConfig(record_validation="exact")


def accepted(batch: bytes, config: LogConfig) -> bool:
    """Whether the batch is accepted; any error that is not meant for clients is raised."""
    try:
        (checked,) = check_produced(verified(batch), config, NOW)
    except KafkaError:
        return False
    return bytes(checked.data) == batch


def refuse(batch: Buffer, why: str, require_keys: bool = False) -> None:
    with pytest.raises(InvalidRecordError, match=why):
        validate_records(parse_header(batch), batch, require_keys)


@pytest.mark.parametrize("config", [CONFIG, EXACT], ids=["readable", "exact"])
def test_what_is_accepted_can_be_read_to_its_end(config: LogConfig) -> None:
    tried, taken = 0, []
    for what, batch in mutants(NOW):
        tried += 1
        if accepted(batch, config):
            taken.append(what)
            records = read_batch(batch)
            assert [record.offset for record in records] == list(range(len(records))), what
            assert max(r.timestamp for r in records) == parse_header(batch).max_timestamp, what
            if config is EXACT:
                assert records == plain_codec.read(batch), what
                assert_as_a_producer_writes_it(batch, what)
    assert tried >= 700
    assert 0 < len(taken) < tried / 3, taken


def test_all_that_is_readable_here_and_not_by_the_format_are_two_byte_attributes() -> None:
    """The compiled decoder reads them as a number; `record.validation=exact` refuses them."""
    for what, batch in mutants(NOW):
        if accepted(batch, CONFIG) and not what.startswith("attributes"):
            assert read_batch(batch) == plain_codec.read(batch), what


def assert_as_a_producer_writes_it(batch: bytes, what: str) -> None:
    """Assert that numbers are as short as possible, and attributes one byte, as Kafka requires."""
    records = plain_codec.read(batch)
    header = parse_header(batch)
    rows = [(r.timestamp, r.key, r.value, r.headers) for r in records]
    plain = batch if header.compression == 0 else bytes(recompress(batch, 0))
    again = plain_codec.build(rows)
    if header.base_timestamp == records[0].timestamp:
        assert len(again) == len(plain), what


def test_the_compiled_decoder_is_not_let_over_the_end_of_a_page() -> None:
    """The decoder alone would read past the batch, and the process would crash."""
    batch = bytearray(produced(b"v"))
    batch += b"\x80\x80"
    batch = bytearray(changed(batch, record_count=2, last_offset_delta=1))
    page = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    start = mmap.PAGESIZE - len(batch)
    page[start : mmap.PAGESIZE] = bytes(batch)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    libc = ctypes.CDLL(None)
    protected = ctypes.c_void_p(address + mmap.PAGESIZE)
    assert libc.mprotect(protected, mmap.PAGESIZE, 0) == 0
    try:
        view = memoryview(page)[start : mmap.PAGESIZE]
        refuse(view, "malformed records")
        with pytest.raises(CorruptBatch):
            read_batch(view)
    finally:
        libc.mprotect(protected, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE)


def test_a_record_of_a_compacted_topic_has_a_key() -> None:
    with_keys = plain_codec.build([(NOW, b"a", b"1", []), (NOW, b"", None, [])])
    validate_records(parse_header(with_keys), with_keys, require_keys=True)
    one_without = plain_codec.build([(NOW, b"a", b"1", []), (NOW, None, b"2", [])])
    validate_records(parse_header(one_without), one_without, require_keys=False)
    refuse(one_without, "record 1 has no key", require_keys=True)
    compacted = replace(CONFIG, cleanup_policy="compact,delete")
    with pytest.raises(InvalidRecordError, match="record 1 has no key"):
        check_produced(verified(one_without), compacted, NOW)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_refused(codec: str) -> None:
    batch = produced(bytes(1_000_000), compression=codec)
    header = parse_header(batch)
    validate_records(header, batch, False, max_unpacked=1_000_100)
    with pytest.raises(InvalidRecordError, match="unpack to more than"):
        validate_records(header, batch, False, max_unpacked=1_000_000)


def test_every_timestamp_is_held_against_the_topics_limits() -> None:
    config = replace(CONFIG, message_timestamp_before_max_ms=1000)
    fine = plain_codec.build([(NOW, None, b"", []), (NOW - 1000, None, b"", [])])
    check_produced(verified(fine), config, NOW)
    early = plain_codec.build(
        [(NOW, None, b"", []), (NOW - 1001, None, b"", []), (NOW, None, b"", [])]
    )
    with pytest.raises(InvalidTimestampError, match=f"timestamp {NOW - 1001} is more than"):
        check_produced(verified(early), config, NOW)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_producer_builds_is_accepted(codec: str) -> None:
    rng = random.Random(7)
    for _ in range(30):
        builder = BatchBuilder(codec)
        for _ in range(rng.choice((1, 2, 64, 65, 200))):
            builder.append(
                NOW + rng.choice((0, 63, 64, -(2**40), 2**40)),
                rng.choice((None, b"", b"key", bytes(64))),
                rng.choice((None, b"", b"value", rng.randbytes(rng.choice((63, 64, 8191, 8192))))),
                rng.choice(((), [("h", None)], [("ä" * 40, b"1"), ("", b"")])),
            )
        batch = builder.build()
        assert validate_records(parse_header(batch), batch, False) <= NOW + 2**40


def test_records_without_a_timestamp_are_accepted() -> None:
    body = plain_codec.build([(0, None, b"a", []), (0, None, b"b", [])])
    batch = changed(body, base_timestamp=-1, max_timestamp=-1)
    assert validate_records(parse_header(batch), batch, False) == -1


def test_a_refused_batch_leaves_nothing_of_its_request_in_the_log() -> None:
    log: UnifiedLog = LogWorld().open()
    poison = changed(produced(b"a", b"b") + b"\0")
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(produced(b"sound") + poison, 0, NOW)
    assert (log.log_end_offset, log.size_bytes) == (0, 0)


def test_a_follower_takes_what_its_leader_has() -> None:
    """Older logs may hold such batches, and replicas must stay equal."""
    log: UnifiedLog = LogWorld().open()
    log.append_as_follower(changed(produced(b"a", b"b") + b"\0"))
    assert log.log_end_offset == 2


def changed(batch: Buffer, **fields: int) -> bytes:
    """Return the batch with other header fields and matching length and checksum."""
    header = parse_header(batch)._replace(batch_length=len(batch) - LOG_OVERHEAD, **fields)
    again = bytearray(pack_header(header)) + batch[HEADER_SIZE:]
    seal(again)
    return bytes(again)
