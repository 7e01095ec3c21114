"""The leader epoch cache against the table of KIP-101 and KIP-279, and against a naive model."""

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import decode_epochs, encode_epochs
from barnabas_broker.log.epochs.leader_epoch_cache import LeaderEpochCache
from barnabas_broker.log.errors import MalformedCheckpoint
from hypothesis import given
from hypothesis import strategies as st

UNDEFINED = (-1, -1)


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, UNDEFINED),
        (7, UNDEFINED),
        (6, (6, 40)),
        (5, (3, 30)),
        (4, (3, 30)),
        (3, (3, 30)),
        (2, (2, 20)),
        (1, (1, 10)),
        (0, (0, 10)),
    ],
)
def test_where_an_epoch_ended(requested: int, answer: tuple[int, int]) -> None:
    cache = LeaderEpochCache([(2, 10), (3, 20), (6, 30)])
    assert cache.end_offset_for(requested, 40) == answer


def test_an_empty_cache_knows_nothing() -> None:
    cache = LeaderEpochCache()
    assert cache.end_offset_for(0, 10) == UNDEFINED
    assert cache.latest_epoch() is None
    assert cache.epoch_for_offset(3) is None


def test_the_same_epoch_further_on_is_no_news() -> None:
    cache = LeaderEpochCache([(1, 10)])
    assert not cache.assign(1, 15)
    assert cache.version == 0
    assert cache.assign(1, 5)
    assert cache.entries == [(1, 5)]


def test_an_epoch_drops_what_contradicts_it() -> None:
    cache = LeaderEpochCache([(1, 10), (2, 20), (4, 30)])
    cache.assign(5, 20)
    assert cache.entries == [(1, 10), (5, 20)]
    cache.assign(1, 40)
    assert cache.entries == [(1, 40)]


def test_truncation_from_the_end_drops_epochs_that_start_there() -> None:
    cache = LeaderEpochCache([(1, 10), (2, 20)])
    assert not cache.truncate_from_end(21)
    assert cache.truncate_from_end(20)
    assert cache.entries == [(1, 10)]


def test_truncation_from_the_start_keeps_the_epoch_of_the_first_offset() -> None:
    cache = LeaderEpochCache([(1, 10), (2, 20), (3, 30)])
    assert not cache.truncate_from_start(5)
    assert cache.truncate_from_start(25)
    assert cache.entries == [(2, 25), (3, 30)]
    assert not cache.truncate_from_start(25)


def test_the_checkpoint_is_kafkas() -> None:
    assert encode_epochs([(0, 0), (3, 57)]) == b"0\n2\n0 0\n3 57\n"
    assert decode_epochs(b"0\n2\n0 0\n3 57\n") == [(0, 0), (3, 57)]
    assert decode_epochs(b"") == []


@pytest.mark.parametrize(
    "text",
    [
        "1\n0\n",
        "0\n",
        "0\nx\n",
        "0\n2\n0 0\n",
        "0\n1\n0\n",
        "0\n1\n0 x\n",
        "0\n2\n1 5\n1 6\n",
        "\0\0",
    ],
)
def test_a_damaged_checkpoint_is_noticed(text: str) -> None:
    with pytest.raises(MalformedCheckpoint):
        decode_epochs(text.encode())


class NaiveLog:
    """Stores the epoch of every single offset."""

    def __init__(self) -> None:
        self.start = 0
        self.epochs: list[int] = []

    @property
    def end(self) -> int:
        return self.start + len(self.epochs)

    def end_offset_for(self, requested: int) -> tuple[int, int]:
        if not self.epochs or requested > self.epochs[-1]:
            return UNDEFINED
        later = [o for o, e in enumerate(self.epochs, self.start) if e > requested]
        end = later[0] if later else self.end
        known = [e for e in self.epochs if e <= requested]
        return (known[-1] if known else requested), end


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 5)),
        st.tuples(st.just("truncate"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("raise start"), st.integers(0, 30), st.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_agrees_with_the_epochs_of_the_offsets(steps: list[tuple[str, int, int]]) -> None:
    log, cache = NaiveLog(), LeaderEpochCache()
    epoch = 0
    for step, number, count in steps:
        if step == "append":
            epoch += number
            cache.assign(epoch, log.end)
            log.epochs += [epoch] * count
        elif step == "truncate":
            end = max(log.start, min(number, log.end))
            del log.epochs[end - log.start :]
            cache.truncate_from_end(end)
            epoch = max(epoch, cache.latest_epoch() or 0)
        else:
            start = max(log.start, min(number, log.end))
            del log.epochs[: start - log.start]
            log.start = start
            cache.truncate_from_start(start)
            cache.truncate_from_end(log.end)
        for requested in range(epoch + 2):
            assert cache.end_offset_for(requested, log.end) == log.end_offset_for(requested)
        for offset, written_in in enumerate(log.epochs, log.start):
            assert cache.epoch_for_offset(offset) == written_in
        assert decode_epochs(encode_epochs(cache.entries)) == cache.entries
