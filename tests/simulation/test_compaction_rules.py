"""I25 on planted logs: what compaction may take passes, and each thing that it must not is found.

The logs are files on memory disks, written without a broker.
"""

from collections.abc import Callable, Iterable

import pytest
from barnabas_broker.log.compaction.batch_filter import filter_batch
from barnabas_broker.log.compaction.offset_map import OffsetMap
from barnabas_broker.log.compaction.what_stays import PassRules
from barnabas_common.record.batch import parse_header, stamp
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.campaign.judge.verdict import assert_delivered
from barnabas_simulator.delivery import History
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.compaction import rules
from barnabas_simulator.invariants.durability_rules import no_global_loss
from barnabas_simulator.invariants.log_rules import Held, log_matching, strong_isr
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.logs.keyed import CompactedTopic, KeyedRecords
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.labels import headers_of, is_tombstone, key_of, keyed_label, label_of

TP = TopicPartition("prices", 0)
PATH = "/data/prices-0"
SENT_MS = 1_000
RETENTION_MS = 500
HORIZON_MS = SENT_MS + RETENTION_MS

A0, B1, A2, B3, A4 = (
    keyed_label(b"p/%d" % n, key, is_a_tombstone=n == 3)
    for n, key in enumerate([b"a", b"b", b"a", b"b", b"a"])
)
ALL = [A0, B1, A2, B3, A4]
"""Two keys; the newest of b is a tombstone."""

Labels = dict[int, bytes]


def batch(
    offset: int, *labels: bytes, epoch: int = 0, at: int = SENT_MS, horizon: int | None = None
) -> bytes:
    builder = BatchBuilder("none")
    for label in labels:
        value = None if is_tombstone(label) else label
        builder.append(at, key_of(label), value, headers_of(label))
    data = bytearray(builder.build())
    data[:16] = stamp(offset, epoch, len(data) - 12)
    return bytes(data) if horizon is None else under_horizon(data, horizon)


def under_horizon(data: bytearray, horizon: int) -> bytes:
    """As the first pass writes it that keeps a tombstone."""
    kept = filter_batch(data, parse_header(data), PassRules(OffsetMap(3), horizon, 0, 0))
    assert kept is not None
    return bytes(kept)


def written(disk: MemoryDisk, batches: Iterable[bytes], base: int = 0) -> None:
    disk.make_directory(PATH)
    file = disk.open(f"{PATH}/{base:020d}.log", create=True)
    file.append(list(batches))


def image(*batches: bytes, is_compacted: bool = True) -> LogImage:
    disk = MemoryDisk()
    written(disk, batches)
    found = LogImage(disk, PATH, is_compacted)
    found.update()
    return found


def log_of(labels: Labels, **options: int) -> LogImage:
    return image(*(batch(offset, label, **options) for offset, label in labels.items()))


def at(*offsets: int) -> Labels:
    return {offset: ALL[offset] for offset in offsets}


def replica(end: int = 5, high_watermark: int | None = None, start: int = 0) -> Replica:
    known = end if high_watermark is None else high_watermark
    return Replica(1, "broker-1/1", 0, 0, start, known, end, ((0, 0),), 0, (1, 2))


def committed(now_ms: int = SENT_MS, skew_ms: int = 0) -> KeyedRecords:
    topic = CompactedTopic(RETENTION_MS, lambda: now_ms, lambda: skew_ms)
    records = KeyedRecords(topic)
    for offset, label in enumerate(ALL):
        records.note(offset, label)
    return records


def newest(log: LogImage, truth: KeyedRecords | None = None, bound: int = 5, **of: int) -> object:
    return rules.newest_stays.broken(replica(**of), log, truth or committed(), bound)


# ---- the newest of each key


def test_a_label_says_what_a_record_is() -> None:
    log = log_of(at(2, 3))
    assert [one.label for one in log.entries_between(0, 9)] == [A2, B3]
    assert (key_of(B3), is_tombstone(B3), is_tombstone(A2)) == (b"b", True, False)
    (record,) = image(batch(0, A0)).entries(0)
    assert label_of(_Read(b"b", A0)) != A0 == record.label
    assert label_of(_Read(b"b", None)) == b""


class _Read:
    def __init__(self, key: bytes, value: bytes | None) -> None:
        self.key, self.value = key, value
        self.headers: list[tuple[str, bytes | None]] = []


def test_what_is_superseded_may_go_and_the_newest_may_not() -> None:
    assert newest(log_of(at(0, 1, 2, 3, 4))) is None
    assert newest(log_of(at(3, 4))) is None
    assert "b'p/4@a' at 4" in str(newest(log_of(at(0, 1, 2, 3))))
    assert "b'p/3~@b' at 3" in str(newest(log_of(at(1, 4))))


def test_another_record_in_the_place_of_the_newest_is_found() -> None:
    assert newest(log_of(at(3) | {4: keyed_label(b"p/7", b"a")})) is not None


def test_below_a_lower_high_watermark_the_newest_known_there_stays() -> None:
    """What is above it may not be known here, and does not supersede anything yet."""
    assert newest(log_of(at(1, 2)), end=3) is None
    assert newest(log_of(at(1)), end=3) is None  # copied from a log that has 4, but not yet
    assert newest(log_of(at(3)), end=5, high_watermark=3) is not None  # and here it does not come


def test_what_is_not_committed_supersedes_nothing() -> None:
    early = KeyedRecords(CompactedTopic(RETENTION_MS))
    for offset in (0, 1, 2, 3):
        early.note(offset, ALL[offset])
    log = log_of(at(3, 4))
    assert newest(log, early, bound=4, high_watermark=4) is not None
    assert newest(log, early, bound=5, high_watermark=4) is None  # another leader had exposed it


def test_a_log_that_starts_later_is_no_excuse() -> None:
    assert newest(log_of(at(4)), start=4) is not None


# ---- tombstones


def test_a_tombstone_stays_until_a_horizon_that_some_log_had() -> None:
    without = log_of(at(4))
    seen = committed(now_ms=HORIZON_MS)
    assert newest(without, seen) is not None  # no log had it under a horizon
    kept = image(batch(3, B3, horizon=HORIZON_MS), batch(4, A4))
    assert rules.no_early_horizon.broken(kept, seen) is None
    assert newest(without, seen) is None
    early = committed(now_ms=HORIZON_MS - 1)
    assert rules.no_early_horizon.broken(kept, early) is None
    assert newest(without, early) is not None


@pytest.mark.parametrize(("now_ms", "is_found"), [(HORIZON_MS - 1, True), (HORIZON_MS, False)])
def test_nor_does_what_it_superseded_stay_longer(now_ms: int, is_found: bool) -> None:
    """Also in a log whose high watermark is below the tombstone: it has started again since."""
    seen = committed(now_ms=now_ms)
    with_horizon = image(batch(3, B3, horizon=HORIZON_MS))
    assert rules.no_early_horizon.broken(with_horizon, seen) is None
    assert (newest(log_of(at(2, 4)), seen, high_watermark=3) is not None) == is_found


@pytest.mark.parametrize(("skew_ms", "is_found"), [(0, True), (9, True), (10, False)])
def test_an_early_horizon_is_found_unless_a_clock_explains_it(skew_ms: int, is_found: bool) -> None:
    kept = image(batch(3, B3, horizon=HORIZON_MS - 10))
    assert (rules.no_early_horizon.broken(kept, committed(skew_ms=skew_ms)) is not None) == is_found


# ---- nothing older


def older(log: LogImage, clean_offset: int) -> str | None:
    return rules.nothing_older.broken(replica(), log, clean_offset)


def test_below_the_clean_offset_an_older_record_is_found() -> None:
    assert older(log_of(at(1, 2, 3, 4)), 3) is None
    assert "b'p/1@b'" in str(older(log_of(at(1, 2, 3, 4)), 4))
    assert "b'p/2@a'" in str(older(log_of(at(2, 3, 4)), 5))


def replaced(disk: MemoryDisk, log: LogImage, *batches: bytes) -> LogImage:
    """Another file is in the place of the first one."""
    disk.remove(f"{PATH}/{0:020d}.log")
    written(disk, batches)
    log.update()
    return log


def test_an_older_record_that_comes_back_is_found_though_the_later_one_is_gone() -> None:
    disk = MemoryDisk()
    written(disk, [batch(0, A0), batch(1, B1), batch(2, A2), batch(3, B3)])
    written(disk, [batch(4, A4)], base=4)
    log = LogImage(disk, PATH, is_compacted=True)
    log.update()
    assert older(replaced(disk, log, batch(2, A2)), 4) is None
    assert "b'p/1@b'" in str(older(replaced(disk, log, batch(1, B1), batch(2, A2)), 4))
    assert older(log, 3) is None


def test_a_log_that_never_had_the_later_record_may_keep_the_older_one() -> None:
    """It was away while the tombstone went: what Kafka's documentation says of
    `delete.retention.ms`."""
    assert older(log_of(at(1, 2, 4)), 4) is None


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_truncation_takes_back_what_a_log_has_had(power_loss: bool) -> None:
    disk = MemoryDisk()
    written(disk, [batch(0, A0), batch(1, B1)])
    log = LogImage(disk, PATH, is_compacted=True)
    file = disk.open(f"{PATH}/{0:020d}.log")
    file.flush()
    disk.sync_directory(PATH)
    kept = file.size()
    file.append([batch(2, A2)])
    log.update()
    if power_loss:
        disk.crash(keep_unflushed=False)
        file = disk.open(f"{PATH}/{0:020d}.log")
    file.truncate(kept)
    file.append([batch(2, B3), batch(3, A4)])
    log.update()
    assert log.held is not None
    assert [log.held.newest_below(b"a", end) for end in (3, 4)] == [0, 3]
    assert log.held.newest_below(b"b", 4) == 2


# ---- gaps


def test_a_gap_above_the_highest_high_watermark_is_found() -> None:
    def gap(bound: int) -> str | None:
        return rules.no_gap_above.broken(replica(), log_of(at(0, 2, 3)), bound)

    assert gap(2) is None
    assert gap(3) is None
    assert "between 0 and 2" in str(gap(1))


def test_on_an_ordinary_topic_a_gap_is_a_loss_as_ever() -> None:
    whole, less = (
        image(*(batch(n, ALL[n]) for n in offsets), is_compacted=False)
        for offsets in (range(5), (3, 4))
    )
    one, other = Held(replica(), whole), Held(replica(), less)
    state = LeaderAndIsr(1, 0, (1, 2), 0)
    assert log_matching.broken(one, other) is not None
    assert strong_isr.broken(one, other, state) is not None
    truth = Truth(TP, state, (1, 2))
    truth.expose(whole, 5)
    assert truth.missing_from(less, 0) is not None


# ---- replicas that were compacted at different times


def both(one: LogImage, other: LogImage) -> list[str | None]:
    state = LeaderAndIsr(1, 0, (1, 2), 0)
    ours, theirs = Held(replica(), one), Held(replica(), other)
    return [
        rule
        for mine, its in ((ours, theirs), (theirs, ours))
        for rule in (log_matching.broken(mine, its), strong_isr.broken(mine, its, state))
    ]


def test_logs_agree_where_both_have_a_record() -> None:
    whole = log_of(at(0, 1, 2, 3, 4))
    few = image(batch(2, A2), batch(3, B3, horizon=HORIZON_MS), batch(4, A4))
    assert both(whole, few) == [None] * 4
    assert both(log_of(at(0, 1, 4)), log_of(at(2, 3, 4))) == [None] * 4


def test_a_batch_of_which_records_are_gone_agrees_with_the_whole_one() -> None:
    whole = batch(0, *ALL)
    newest_of = OffsetMap(9)
    newest_of.put(b"a", 4)
    newest_of.put(b"b", 3)
    newest_of.account_for(4)
    rest = filter_batch(whole, parse_header(whole), PassRules(newest_of, 0, HORIZON_MS, 0))
    assert rest is not None
    smaller = image(bytes(rest))
    assert [one.offset for one in smaller.entries(0)] == [3, 4]
    assert both(image(whole), smaller) == [None] * 4
    assert all(both(image(batch(0, *ALL, at=SENT_MS + 1)), smaller))


@pytest.mark.parametrize(
    "changed",
    [
        lambda: log_of(at(3) | {4: keyed_label(b"p/9", b"a")}),
        lambda: log_of(at(3, 4), at=SENT_MS + 1),
        lambda: log_of(at(3, 4), epoch=1),
        lambda: image(batch(3, B3, A4)),
    ],
    ids=["value", "timestamp", "epoch", "batch"],
)
def test_replicas_that_differ_at_one_offset_are_found(changed: Callable[[], LogImage]) -> None:
    assert all(both(log_of(at(0, 2, 3, 4)), changed()))


def test_some_disk_must_have_the_newest_of_each_key() -> None:
    truth = Truth(TP, LeaderAndIsr(1, 0, (1, 2), 0), (1, 2), keyed=committed())
    truth.expose(log_of(at(0, 1, 2, 3, 4)), 5)
    assert no_global_loss.broken({1: log_of(at(4)), 2: log_of(at(3, 4))}, truth) is None
    assert no_global_loss.broken({1: log_of(at(4)), 2: log_of(at(0, 1, 3))}, truth) is not None


# ---- what a power loss leaves


def test_a_compacted_segment_is_durable_by_the_name_that_recovery_completes() -> None:
    disk = MemoryDisk()
    written(disk, [batch(0, A0), batch(2, A2)])
    log = LogImage(disk, PATH, is_compacted=True)
    name = f"{PATH}/{0:020d}.log"
    for ending, durable_end in ((".cleaned", 2), (".swap", 3)):
        cleaned = disk.open(name + ending, create=True)
        cleaned.append([batch(2, A2)])
        cleaned.flush()
        disk.sync_directory(PATH)
        disk.remove(name)
        disk.rename(name + ending, name, sync=False)
        log.update()
        assert log.durable_end == durable_end, ending


def test_what_only_a_client_was_told_of_must_be_there_too() -> None:
    truth = Truth(TP, LeaderAndIsr(1, 0, (1, 2), 0), (1, 2), keyed=committed())
    truth.expose(log_of(at(2, 3)), 4)
    truth.high_watermark = 5
    assert truth.missing_from(log_of(at(3, 4)), 0) is None
    assert truth.missing_from(log_of(at(2, 3)), 0) == (4, 4, -1, 0, 0, None, None, None)


# ---- the judge of what is read at the end


def judge(found: Labels, seen: Labels | None = None, is_compacted: bool = True) -> None:
    history = History(sent=list(ALL), acked={label: offset for offset, label in enumerate(ALL)})
    every = {TP: dict(enumerate(ALL))} if is_compacted else None
    records = {TP: sorted(found.items())}
    assert_delivered({"p": {TP: history}}, {TP: seen or {}}, records, every, once=False)


def test_the_judge_lets_go_what_is_superseded_and_tombstones() -> None:
    judge(at(0, 1, 2, 3, 4))
    judge(at(3, 4), seen=at(0, 1, 2, 3, 4))
    judge(at(4), seen=at(3))
    judge(at(3) | {5: A4})  # a retry was appended again, and supersedes the first
    judge(at(1, 4))  # a replica that was away may still have what the tombstone deleted


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        (at(0, 1, 2, 3), {}),
        (at(3), at(4)),
        (at(3, 4) | {2: keyed_label(b"p/8", b"a")}, {}),
        ({3: A4, 4: B3}, {}),
        (at(3, 4), {4: A2}),
    ],
    ids=["lost", "read and lost", "never sent", "reordered", "another value"],
)
def test_the_judge_finds_what_compaction_may_not_do(found: Labels, seen: Labels) -> None:
    with pytest.raises(AssertionError):
        judge(found, seen)


def test_the_judge_knows_the_order_although_the_first_of_two_copies_is_gone() -> None:
    """What a retry repeats without idempotence is appended behind what was sent later."""
    repeated = [*enumerate(ALL), (5, A0), (6, B1)]
    history = History(sent=list(ALL), acked={B1: 1})
    found = {TP: [(3, B3), (4, A4), (5, A0), (6, B1)]}
    assert_delivered({"p": {TP: history}}, {TP: {}}, found, {TP: dict(repeated)}, once=False)
    with pytest.raises(AssertionError, match="repeated"):
        assert_delivered({"p": {TP: history}}, {TP: {}}, found, {TP: dict(repeated)})
    with pytest.raises(AssertionError, match="reordered"):
        assert_delivered({"p": {TP: history}}, {TP: {}}, found, {TP: {}})


def test_the_judge_lets_nothing_go_on_an_ordinary_topic() -> None:
    judge(at(0, 1, 2, 3, 4), is_compacted=False)
    with pytest.raises(AssertionError, match="lost"):
        judge(at(1, 2, 3, 4), is_compacted=False)
