"""Random histories of a compacted log, against a naive model of the records that must stay."""

import asyncio
from dataclasses import dataclass, field

from barnabas_broker.log.manager import log_cleaner
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.compacted import KeyedRecord, newest, put, records_in, seal
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_world import NOW, read_all

RETENTION_MS = 1000
SETTINGS = {
    "log.cleaner.enable": "false",
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "500",
    "log.index.interval.bytes": "50",
    "log.initial.task.delay.ms": "100000000",
}
TOPIC = {"cleanup_policy": "compact", "delete_retention_ms": str(RETENTION_MS)}

pairs = st.tuples(
    st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"]),
    st.one_of(st.none(), st.sampled_from([b"", b"1", b"22" * 20])),
)
actions = st.one_of(
    st.tuples(
        st.just("put"),
        st.lists(pairs, min_size=1, max_size=6),
        st.sampled_from(["none", "none", "gzip", "lz4"]),
    ),
    st.tuples(st.just("pass"), st.sampled_from([3, 5, 11, 101])),
    st.tuples(st.just("wait"), st.sampled_from([1, RETENTION_MS - 1, RETENTION_MS])),
    st.tuples(st.just("truncate"), st.integers(1, 8)),
    st.tuples(st.just("restart"), st.booleans()),
)


@dataclass
class Model:
    """`batches` has first and last offset of each; `horizons` are by the batch's first offset."""

    written: list[KeyedRecord] = field(default_factory=list)
    batches: list[tuple[int, int]] = field(default_factory=list)
    horizons: dict[int, int] = field(default_factory=dict)

    def put(self, first: int, batch: list[tuple[bytes, bytes | None]]) -> None:
        self.written += [(first + n, key, value) for n, (key, value) in enumerate(batch)]
        self.batches.append((first, first + len(batch) - 1))

    def compact(self, end: int, copied_up_to: int, now_ms: int) -> None:
        """Model a pass over the keys below `end`, which copies segments up to `copied_up_to`."""
        stay = newest(one for one in self.written if one[0] < end)
        stay = [one for one in stay if one[2] is not None or not self._expired(one[0], now_ms)]
        self.written = stay + [one for one in self.written if one[0] >= end]
        for offset, _, value in self.written:
            if value is None and offset < copied_up_to:
                self.horizons.setdefault(self._batch_of(offset), now_ms + RETENTION_MS)

    def truncate(self, offset: int) -> None:
        self.written = [one for one in self.written if one[0] < offset]
        # The last one may have had its last records removed: the next batch begins inside it.
        self.batches = [(a, min(b, offset - 1)) for a, b in self.batches if a < offset]
        self.horizons = {batch: h for batch, h in self.horizons.items() if batch < offset}

    def _expired(self, offset: int, now_ms: int) -> bool:
        return self.horizons.get(self._batch_of(offset), now_ms + 1) <= now_ms

    def _batch_of(self, offset: int) -> int:
        return next(first for first, last in self.batches if first <= offset <= last)


class History:
    def __init__(self) -> None:
        self.world = ManagerWorld(SETTINGS)
        self.model = Model()
        self.manager: LogManager
        self.log: UnifiedLog

    async def start(self) -> None:
        self.manager = await self.world.start()
        self.log = await self.world.open(self.manager, **TOPIC)
        self.log.update_high_watermark(self.log.log_end_offset)

    async def put(self, batch: list[tuple[bytes, bytes | None]], codec: str) -> None:
        self.model.put(self.log.log_end_offset, batch)
        put(self.log, *batch, compression=codec, timestamp=NOW)

    async def compact(self, slots: int) -> None:
        seal(self.log)
        facts = self.manager.cleaner.dirty(self.log)
        if facts.first_dirty_offset >= facts.first_uncleanable_offset:
            return
        before, log_cleaner.slots_within = log_cleaner.slots_within, lambda *_: slots
        count = len(self.world.passes)
        try:
            bases = self.log.segment_offsets
            await self.manager.cleaner.clean(self.log)
        finally:
            log_cleaner.slots_within = before
        report = self.world.passes[count]
        if report.fault:
            assert slots < 11, "six keys must fit"
            del self.manager.cleaner._left_out[self.log]
            return
        copied = min(base for base in bases if base >= report.end_offset)
        written = self.model.written
        self.model.compact(report.end_offset, copied, self.world.clock.now_ms)
        if slots < 11:
            self.model.written = self.without_early_ones(report.end_offset, written)

    def without_early_ones(self, end: int, written: list[KeyedRecord]) -> list[KeyedRecord]:
        """Leave out the records that a pass may remove earlier than required.

        If the map became full within a batch, it has some records of that batch, and those that
        they supersede may go one pass earlier.
        """
        batch = next((last for first, last in self.model.batches if first >= end), end)
        later = {key for offset, key, _ in written if end <= offset <= batch}
        found = set(records_in(self.log))
        gone = [one for one in self.model.written if one not in found]
        assert all(offset < end and key in later for offset, key, _ in gone)
        return [one for one in self.model.written if one in found]

    async def truncate(self, count: int) -> None:
        """The batch that holds the offset goes as a whole; a gap there is kept."""
        offset = max(self.log.log_end_offset - count, 0)
        headers = [header for _, header in batches(read_all(self.log))]
        holding = (
            one.base_offset for one in headers if one.base_offset <= offset < one.next_offset
        )
        end = next(holding, offset)
        self.log.truncate_to(offset)
        assert self.log.log_end_offset == end
        self.model.truncate(end)

    async def restart(self, in_order: bool) -> None:
        """Restart cleanly, or after the process ended: everything that was written is there."""
        if in_order:
            self.manager = await self.world.restart(self.manager)
        else:
            await self.manager.cleaner.close()
            self.world.disk.crash(keep_unflushed=True)
        await self.start_again(in_order)

    async def start_again(self, in_order: bool) -> None:
        if not in_order:
            self.manager = await self.world.start()
        self.log = await self.world.open(self.manager, **TOPIC)
        self.log.update_high_watermark(self.log.log_end_offset)
        assert not self.log.cut_at_start

    async def run(self, steps: list[tuple[object, ...]]) -> None:
        await self.start()
        for name, *arguments in steps:
            if name == "wait":
                self.world.clock.now_ms += arguments[0]  # type: ignore[operator]
            else:
                act = {"put": self.put, "pass": self.compact, "truncate": self.truncate}
                await act.get(str(name), self.restart)(*arguments)  # type: ignore[arg-type]
            assert records_in(self.log) == self.model.written, name
        await asyncio.sleep(0)


REUSED_OFFSET: list[tuple[object, ...]] = [
    ("put", [(b"a", None), (b"a", None)], "none"),
    ("pass", 3),
    ("put", [(b"a", None)], "none"),
    ("pass", 3),
    ("wait", RETENTION_MS),
    ("truncate", 2),
    ("put", [(b"a", None)], "none"),
    ("pass", 3),
]


@settings(max_examples=60, deadline=None)
@example(REUSED_OFFSET)
@given(st.lists(actions, min_size=3, max_size=30))
def test_what_is_left_is_what_the_model_says(steps: list[tuple[object, ...]]) -> None:
    async def story() -> None:
        history = History()
        await history.run(steps)
        await history.manager.stop()

    asyncio.run(story())
