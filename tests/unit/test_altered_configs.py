"""Incremental changes of overrides: their results, and which changes are refused."""

import pytest
from barnabas_broker.config import Change, InvalidChange, InvalidConfig, Key, altered
from barnabas_broker.config.key import text

KNOWN = {
    "plain": Key("plain", text, "", ""),
    "words": Key("words", text, "", "", is_list=True),
}


def test_what_is_not_named_stays():
    changes = [Change("plain", "set", "2"), Change("words", "delete")]
    assert altered({"plain": "1", "words": "a", "old": "x"}, changes, KNOWN, {}) == {
        "plain": "2",
        "old": "x",
    }


@pytest.mark.parametrize(
    ("present", "operation", "value", "expected"),
    [
        ({"words": "a,b"}, "append", "b,c", "a,b,c"),
        ({"words": "a, b"}, "subtract", "a", "b"),
        ({"words": "a"}, "subtract", "a", ""),
        ({}, "append", "c", "d,c"),
        ({}, "subtract", "d", ""),
    ],
)
def test_lists_are_added_to_and_taken_from(present, operation, value, expected):
    changes = [Change("words", operation, value)]
    assert altered(present, changes, KNOWN, {"words": "d"}) == {"words": expected}


def test_an_override_that_no_one_knows_can_be_deleted_only_where_it_is():
    assert altered({"nonsense": "1"}, [Change("nonsense", "delete")], KNOWN, {}) == {}
    with pytest.raises(InvalidConfig, match="unknown config 'nonsense'"):
        altered({}, [Change("nonsense", "delete")], KNOWN, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], "no changes"),
        ([Change("plain", "set", "1"), Change("plain", "delete")], "changed twice"),
        ([Change("plain", "append", "1")], "not a list"),
        ([Change("words", "multiply", "1")], "no such operation"),
    ],
)
def test_a_change_without_meaning_is_refused(changes, words):
    with pytest.raises(InvalidChange, match=words):
        altered({}, changes, KNOWN, {})
