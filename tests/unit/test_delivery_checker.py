"""The checker of the fault tests finds each planted fault, and accepts a good run."""

import pytest
from barnabas_common.topic_partition import TopicPartition

from tests.support.delivery import History, judge

TP = TopicPartition("t", 0)


def history(count: int = 5) -> dict[TopicPartition, History]:
    values = [b"v%d" % i for i in range(count)]
    return {TP: History(sent=values, acked={value: i for i, value in enumerate(values)})}


def records(count: int = 5) -> list[tuple[int, bytes]]:
    return [(i, b"v%d" % i) for i in range(count)]


def test_a_good_run_passes():
    verdict = judge(history(), {TP: records()})
    verdict.assert_good()
    assert (verdict.acked, verdict.duplicated) == (5, 0)


def test_a_lost_record_is_found():
    verdict = judge(history(), {TP: records()[:4]})
    assert len(verdict.lost) == 1
    with pytest.raises(AssertionError, match="lost"):
        verdict.assert_good()


def test_a_missing_partition_is_found():
    assert len(judge(history(), {}).lost) == 5


def test_a_record_under_another_offset_is_found():
    assert judge(history(), {TP: [(i + 1, value) for i, value in records()]}).moved


def test_an_unknown_offset_is_allowed_and_a_record_lost_there_is_found():
    histories = history()
    histories[TP].acked[b"v4"] = -1
    judge(histories, {TP: records()}).assert_good()
    assert judge(histories, {TP: records()[:4]}).lost


def test_a_changed_value_is_found():
    changed = [*records()[:4], (4, b"other")]
    verdict = judge(history(), {TP: changed})
    assert verdict.lost and verdict.never_sent


def test_swapped_records_are_found():
    swapped = [(0, b"v1"), (1, b"v0"), *records()[2:]]
    assert judge(history(), {TP: swapped}).reordered


def test_repeated_offsets_are_found():
    assert judge(history(), {TP: [*records(), (4, b"v4")]}).reordered


def test_a_run_repeated_by_a_retry_is_found_and_may_be_allowed():
    repeated = [*records(), (5, b"v3"), (6, b"v4")]
    verdict = judge(history(), {TP: repeated})
    verdict.assert_good(once=False)
    assert verdict.duplicated == 2
    with pytest.raises(AssertionError, match="repeated.*v3.*first at 3"):
        verdict.assert_good()


def test_a_record_that_was_sent_but_never_acked_may_be_there_or_not():
    histories = history()
    histories[TP].sent.append(b"v5")
    judge(histories, {TP: records()}).assert_good()
    judge(histories, {TP: [*records(), (5, b"v5")]}).assert_good()


def test_a_run_without_acks_proves_nothing():
    with pytest.raises(AssertionError, match="proves nothing"):
        judge({TP: History()}, {TP: []}).assert_good()
