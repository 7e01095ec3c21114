"""The rule of suspicion: which observations make a peer suspected, and which do not."""

import pytest
from barnabas_common.runtime import ProbeResult
from barnabas_controller.detection.suspicion_rule import FAILING_SECONDS, FAILURES, SuspicionRule
from hypothesis import given
from hypothesis import strategies as st


def lost() -> SuspicionRule:
    """Return a rule after a stream was open and has ended."""
    evidence = SuspicionRule()
    evidence.connected()
    evidence.ended("the connection broke")
    return evidence


def test_a_stream_that_ended_and_a_refusal_are_evidence_at_once() -> None:
    evidence = lost()
    assert evidence.suspicion is None, "the end of a stream alone is none"
    evidence.probed(1.0, ProbeResult.REFUSED)
    assert evidence.suspicion == "the connection broke, and a new connection was refused"


@pytest.mark.parametrize("probe", ProbeResult)
def test_without_a_stream_before_nothing_is_evidence(probe: ProbeResult) -> None:
    evidence = SuspicionRule()
    for tick in range(100):
        evidence.probed(float(tick), probe)
    assert evidence.suspicion is None


def test_a_watcher_that_is_told_of_an_earlier_stream_may_judge() -> None:
    evidence = SuspicionRule(had_stream=True)
    evidence.probed(0.0, ProbeResult.REFUSED)
    assert evidence.suspicion is not None


@pytest.mark.parametrize("probe", [ProbeResult.SILENT, ProbeResult.ANSWERED])
def test_silence_and_answers_are_never_evidence_however_long(probe: ProbeResult) -> None:
    evidence = lost()
    for tick in range(100_000):
        evidence.probed(float(tick), probe)
    assert evidence.suspicion is None


def test_failures_are_evidence_only_when_they_last() -> None:
    evidence = lost()
    evidence.probed(10.0, ProbeResult.FAILED)
    evidence.probed(10.1, ProbeResult.FAILED)
    evidence.probed(10.2, ProbeResult.FAILED)
    assert evidence.suspicion is None
    evidence.probed(10.3, ProbeResult.FAILED)
    assert evidence.suspicion is not None


def test_two_failures_with_a_pause_of_the_watcher_between_are_not_enough() -> None:
    evidence = lost()
    evidence.probed(10.0, ProbeResult.FAILED)
    evidence.probed(99.0, ProbeResult.FAILED)
    assert evidence.suspicion is None


@pytest.mark.parametrize("between", [ProbeResult.SILENT, ProbeResult.ANSWERED])
def test_whatever_is_no_failure_begins_the_count_again(between: ProbeResult) -> None:
    evidence = lost()
    for tick in range(100):
        evidence.probed(tick * 0.2, ProbeResult.FAILED)
        evidence.probed(tick * 0.2 + 0.1, between)
    assert evidence.suspicion is None


def test_a_new_stream_begins_the_count_again() -> None:
    evidence = lost()
    evidence.probed(0.0, ProbeResult.FAILED)
    evidence.probed(0.1, ProbeResult.FAILED)
    evidence.connected()
    evidence.ended("again")
    evidence.probed(5.0, ProbeResult.FAILED)
    assert evidence.suspicion is None


@given(st.lists(st.tuples(st.floats(0, 2), st.sampled_from(ProbeResult)), max_size=60))
def test_a_verdict_has_a_refusal_or_lasting_failures_behind_it(
    history: list[tuple[float, ProbeResult]],
) -> None:
    evidence, now, run = lost(), 0.0, list[float]()
    for pause, probe in history:
        now += pause
        run = [*run, now] if probe is ProbeResult.FAILED else []
        evidence.probed(now, probe)
        lasting = len(run) >= FAILURES and run[-1] - run[0] >= FAILING_SECONDS
        if evidence.suspicion is not None:
            assert probe is ProbeResult.REFUSED or lasting
            return
        assert probe is not ProbeResult.REFUSED and not lasting
