"""The judges of the clients that only some runs have, on planted faults and on what is right."""

from collections.abc import Callable, Sequence

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign.clients.varied.low_acks import Acked, Sent
from barnabas_simulator.campaign.clients.varied.seekers import Asked, Journal, Step
from barnabas_simulator.campaign.judge.low_acks import Judged, judge_low_acks
from barnabas_simulator.campaign.judge.recreated import wrong_incarnations
from barnabas_simulator.campaign.judge.seeks import wrong_seeks
from barnabas_simulator.delivery import History
from barnabas_simulator.invariants.logs.image import Batch
from barnabas_simulator.invariants.rule import Rule
from barnabas_simulator.invariants.topics import rules
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.labels import filled, label_of

TP = TopicPartition("t", 0)
A, B, C = b"p/0", b"p/1", b"p/2"


# ---- low acks


def low_acks(
    acks: str,
    records: Sequence[bytes],
    acked: dict[bytes, tuple[int, int, int]] | None = None,
    refused: Sequence[bytes] = (),
    size: int = 10,
) -> Judged:
    """A producer sent A, B and C; the log has epoch 0 from 0 on, and epoch 2 from 2 on."""
    known = {label: Acked(*told) for label, told in (acked or {}).items()}
    sent = Sent(acks, [A, B, C], known, set(refused), dict.fromkeys((A, B, C), size))
    found = {TP: list(enumerate(records))}
    return judge_low_acks({"p": {TP: sent}}, found, {TP: [(0, 0), (2, 2)]})


def test_with_acks_1_only_what_a_later_leader_began_below_is_lost() -> None:
    judged = low_acks("1", [A, B], {A: (0, 0, 0), B: (1, 0, 0), C: (2, 0, 0)})
    assert (judged.wrong, judged.lost["1"]) == ([], 1)
    below = low_acks("1", [B], {A: (0, 0, 0)})  # epoch 2 began at 2: 0 was copied
    assert "b'p/0' is lost" in below.wrong[0]
    since = low_acks("1", [A, B], {C: (2, 2, 2)})  # no leader has followed since
    assert "is lost" in since.wrong[0]
    passed_over = low_acks("1", [A, B], {C: (1, 1, 1)})  # the leader of epoch 2 never had epoch 1
    assert (passed_over.wrong, passed_over.lost["1"]) == ([], 1)
    # Of epoch 0 or 1: epoch 0 gave its offset to B, so it was 1.
    of_two = low_acks("1", [B], {A: (0, 0, 1)})
    assert (of_two.wrong, of_two.lost["1"]) == ([], 1)
    assert "is lost" in low_acks("1", [], {A: (0, 0, 1)}).wrong[0]
    # Epoch 0 also has A, from an attempt that nobody acknowledged.
    left = low_acks("1", [B, A], {A: (0, 0, 1)})
    assert (left.wrong, left.lost["1"]) == ([], 0)
    assert "is lost" in low_acks("1", [B, A], {A: (0, 0, 0)}).wrong[0]


def test_with_acks_all_nothing_is_lost_and_with_acks_0_anything() -> None:
    assert "is lost" in low_acks("all", [A, B], {C: (2, 0, 0)}).wrong[0]
    judged = low_acks("0", [B])
    assert (judged.wrong, judged.lost["0"]) == ([], 2)


@pytest.mark.parametrize("acks", ["0", "all"])
def test_only_with_acks_1_and_no_idempotence_a_record_may_be_there_twice(acks: str) -> None:
    assert "2 times" in low_acks(acks, [A, B, A]).wrong[0]
    assert low_acks("1", [A, B, A]).wrong == []


def test_what_was_refused_or_never_sent_is_not_there_and_what_is_small_is_not_refused() -> None:
    assert "was refused" in low_acks("1", [A], refused=[A], size=9_000).wrong[0]
    assert "never sent" in low_acks("0", [b"q/0"]).wrong[0]
    assert low_acks("1", [], refused=[A], size=9_000).wrong == []
    assert "10 bytes was refused" in low_acks("1", [], refused=[A]).wrong[0]


def test_what_was_acknowledged_lies_in_the_order_of_sending() -> None:
    assert "order" in low_acks("1", [B, A], {A: (1, 0, 0), B: (0, 0, 0)}).wrong[0]
    # A copy that came late, of what another leader had acknowledged and lost, is in no order.
    assert low_acks("1", [A, B, A], {A: (0, 0, 0), B: (1, 0, 0)}).wrong == []


def test_a_filled_value_is_its_label_and_one_that_was_changed_is_not() -> None:
    class Of:
        key = None
        headers = ()

        def __init__(self, value: bytes) -> None:
            self.value = value

    for size in (4, 50, 4_096):
        value = filled(A, size)
        assert label_of(Of(value)) == A
        assert label_of(Of(value[:-1] + b"!")) != A


# ---- topics that are made again


def incarnations(records: Sequence[bytes]) -> list[str]:
    """A was acknowledged in the first, B was not; C was acknowledged in the second, at 0."""
    first = History(sent=[A, B], acked={A: 0})
    second = History(sent=[C], acked={C: 0})
    return wrong_incarnations([{TP: first}, {TP: second}], {TP: list(enumerate(records))})


def test_a_later_incarnation_has_its_own_records_and_perhaps_late_ones() -> None:
    assert incarnations([C]) == []
    assert incarnations([C, B]) == []
    assert "is of an earlier one" in incarnations([C, A])[0]
    assert "b'p/2'" in incarnations([])[0]
    assert "acked b'p/2'" in incarnations([B, C])[0]


def replica(log_start: int = 0, led: int | None = 1, topic_id: str = "new") -> Replica:
    return Replica(1, "broker-1/1", 1, 1, log_start, 9, 10, (), led, None, topic_id)


Broken = Callable[[], str | None]


def asked(rule: Rule[...], *args: object) -> Broken:
    return lambda: rule.broken(*args)


@pytest.mark.parametrize(
    ("held", "broken"),
    [
        (
            asked(rules.leads_the_present_one, replica(), "new"),
            asked(rules.leads_the_present_one, replica(topic_id="old"), "new"),
        ),
        (  # a follower that does not know yet serves no client
            asked(rules.leads_the_present_one, replica(led=None, topic_id="old"), "new"),
            asked(rules.leads_the_present_one, replica(led=0, topic_id="old"), "new"),
        ),
        (
            asked(rules.nothing_comes_back, replica(), {1: B}, {A}),
            asked(rules.nothing_comes_back, replica(), {1: A}, {A}),
        ),
        (
            asked(rules.reader_gets_the_present_one, 1, B, {A}),
            asked(rules.reader_gets_the_present_one, 1, A, {A}),
        ),
        (
            asked(rules.start_is_committed, replica(5), 5),
            asked(rules.start_is_committed, replica(6), 5),
        ),
    ],
)
def test_each_rule_of_topics_holds_and_is_broken(held: Broken, broken: Broken) -> None:
    assert held() is None
    assert broken() is not None


# ---- retention

TIMES = {offset: 1_000 * offset for offset in range(10)}
REST = [Batch(offset, offset, 0, 0, 100) for offset in range(5, 10)]
"""What is left of a log that starts at 5: five batches of 100 bytes."""


def started(limits: tuple[int, int], now: int, allowed: int = 0) -> str | None:
    retained = rules.Retained(*limits)
    return rules.may_start_there.broken(replica(5), REST, TIMES, allowed, retained, now)


def test_retention_takes_what_is_old_or_too_much() -> None:
    assert started((1_000, -1), now=5_001) is None
    assert "[4]" in (started((1_000, -1), now=5_000) or "")
    assert started((-1, 500), now=0) is None
    assert started((-1, 501), now=0) is not None
    assert started((-1, -1), now=9_999) is not None
    assert started((-1, -1), now=0, allowed=5) is None  # another log has started there rightly
    # What is too much goes first, the rest of it may be old.
    assert started((1_000, 400), now=0) is None


@pytest.mark.parametrize(
    ("expected", "offset", "allowed", "to_the_end", "is_right"),
    [
        (3, 3, 0, False, True),
        (3, 5, 5, False, True),
        (3, 5, 4, False, False),
        (3, 9, 4, True, True),
        (3, 9, 3, True, False),
        (7, 2, 0, False, True),
    ],
)
def test_a_reader_skips_only_what_may_be_gone(
    expected: int, offset: int, allowed: int, to_the_end: bool, is_right: bool
) -> None:
    rule = rules.reader_skips_what_may_be_gone
    assert (rule.broken(expected, offset, allowed, to_the_end) is None) == is_right


# ---- seeks


@pytest.mark.parametrize(
    ("step", "is_right"),
    [
        (Step(TP, 3, 4), True),  # offset 3 is compacted
        (Step(TP, 2, 4), False),
        (Step(TP, 4, 2), False),
        (Step(TP, -1, 4), True),
    ],
)
def test_a_seeker_gets_the_next_record(step: Step, is_right: bool) -> None:
    found = wrong_seeks(Journal([step], []), {TP: {}}, lambda _, offset: offset == 3)
    assert (found == []) == is_right


@pytest.mark.parametrize(
    ("question", "is_right"),
    [
        (Asked(TP, 200, 2, False), True),
        (Asked(TP, 201, 4, False), True),  # the record at 3 may be gone
        (Asked(TP, 200, 4, False), False),
        (Asked(TP, 201, 2, False), False),
        (Asked(TP, 200, -1, False), True),  # a deposed leader has less
        (Asked(TP, 200, -1, True), False),
        (Asked(TP, 401, -1, True), True),
    ],
)
def test_the_answer_for_a_time_is_the_first_as_late(question: Asked, is_right: bool) -> None:
    times = {TP: {1: 100, 2: 200, 3: 300, 4: 400}}
    found = wrong_seeks(Journal([], [question]), times, lambda _, offset: offset == 3)
    assert (found == []) == is_right
