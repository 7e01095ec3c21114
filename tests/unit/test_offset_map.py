"""The offset map of a pass, against a dict; and its memory."""

import random

import pytest
from barnabas_broker.log.compaction.offset_map import (
    ENTRY_BYTES,
    NOT_FOUND,
    OffsetMap,
    slots_within,
)


@pytest.mark.parametrize("slots", [3, 4, 10, 1000, 4096])
def test_it_holds_what_a_dict_would(slots: int) -> None:
    offsets, model, chance = OffsetMap(slots), dict[bytes, int](), random.Random(slots)
    number = 0
    while not offsets.is_full:
        key = b"%d" % chance.randrange(3 * slots)
        offsets.put(key, number)
        model[key] = number
        number += 1
    assert len(offsets) == len(model) == offsets.capacity
    for candidate in range(3 * slots):
        key = b"%d" % candidate
        assert offsets.get(key) == model.get(key, NOT_FOUND)


@pytest.mark.parametrize("keys", [0, 1, 2, 7, 1000, 1013, 123_456])
def test_as_many_keys_as_there_are_offsets_always_fit(keys: int) -> None:
    assert OffsetMap(slots_within(1 << 30, keys)).capacity >= keys


def test_its_memory_is_limited() -> None:
    offsets = OffsetMap(slots_within(1_000_000, 10**9))
    assert offsets.memory_bytes <= 1_000_000
    assert offsets.capacity > 0.89 * 1_000_000 / ENTRY_BYTES
