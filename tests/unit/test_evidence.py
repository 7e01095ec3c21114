"""The rule of evidence: what makes a peer dead, and everything that does not."""

import pytest
from barnabas.runtime import Knock
from barnabas_controller.evidence import FAILING_SECONDS, FAILURES, Evidence
from hypothesis import given
from hypothesis import strategies as st


def lost() -> Evidence:
    """A stream was open and has ended."""
    evidence = Evidence()
    evidence.connected()
    evidence.ended("the connection broke")
    return evidence


def test_a_stream_that_ended_and_a_refusal_are_evidence_at_once() -> None:
    evidence = lost()
    assert evidence.verdict is None, "the end of a stream alone is none"
    evidence.knocked(1.0, Knock.REFUSED)
    assert evidence.verdict == "the connection broke, and a new connection was refused"


@pytest.mark.parametrize("knock", Knock)
def test_without_a_stream_before_nothing_is_evidence(knock: Knock) -> None:
    evidence = Evidence()
    for tick in range(100):
        evidence.knocked(float(tick), knock)
    assert evidence.verdict is None


def test_a_watcher_that_is_told_of_an_earlier_stream_may_judge() -> None:
    evidence = Evidence(had_stream=True)
    evidence.knocked(0.0, Knock.REFUSED)
    assert evidence.verdict is not None


@pytest.mark.parametrize("knock", [Knock.SILENT, Knock.ANSWERED])
def test_silence_and_answers_are_never_evidence_however_long(knock: Knock) -> None:
    evidence = lost()
    for tick in range(100_000):
        evidence.knocked(float(tick), knock)
    assert evidence.verdict is None


def test_failures_are_evidence_only_when_they_last() -> None:
    evidence = lost()
    evidence.knocked(10.0, Knock.FAILED)
    evidence.knocked(10.1, Knock.FAILED)
    evidence.knocked(10.2, Knock.FAILED)
    assert evidence.verdict is None
    evidence.knocked(10.3, Knock.FAILED)
    assert evidence.verdict is not None


def test_two_failures_with_a_pause_of_the_watcher_between_are_not_enough() -> None:
    evidence = lost()
    evidence.knocked(10.0, Knock.FAILED)
    evidence.knocked(99.0, Knock.FAILED)
    assert evidence.verdict is None


@pytest.mark.parametrize("between", [Knock.SILENT, Knock.ANSWERED])
def test_whatever_is_no_failure_begins_the_count_anew(between: Knock) -> None:
    evidence = lost()
    for tick in range(100):
        evidence.knocked(tick * 0.2, Knock.FAILED)
        evidence.knocked(tick * 0.2 + 0.1, between)
    assert evidence.verdict is None


def test_a_new_stream_begins_the_count_anew() -> None:
    evidence = lost()
    evidence.knocked(0.0, Knock.FAILED)
    evidence.knocked(0.1, Knock.FAILED)
    evidence.connected()
    evidence.ended("again")
    evidence.knocked(5.0, Knock.FAILED)
    assert evidence.verdict is None


@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from(Knock)), max_size=60))
def test_a_verdict_has_a_refusal_or_lasting_failures_behind_it(
    history: list[tuple[float, Knock]],
) -> None:
    evidence, now, run = lost(), 0.0, list[float]()
    for pause, knock in history:
        now += pause
        run = [*run, now] if knock is Knock.FAILED else []
        evidence.knocked(now, knock)
        lasting = len(run) >= FAILURES and run[-1] - run[0] >= FAILING_SECONDS
        if evidence.verdict is not None:
            assert knock is Knock.REFUSED or lasting
            return
        assert knock is not Knock.REFUSED and not lasting
