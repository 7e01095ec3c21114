"""Planted anomalies: the checker finds every class, names what proves it, and nothing more."""

from pathlib import Path

import pytest
from barnabas_common.history.checker import check
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.lines import from_line, to_line
from barnabas_common.history.promise import Promise

from tests.support.history_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_it_is_found_with_its_proof(name: str) -> None:
    case = CASES[name]()
    findings = check(case.operations).findings
    assert set(findings.counts) == set(case.proof)
    for anomaly, proof in case.proof.items():
        assert not proof or set(findings.examples[anomaly][0].operations) == proof


def test_every_class_is_planted() -> None:
    assert {anomaly for make in CASES.values() for anomaly in make().proof} == set(Anomaly)


@pytest.mark.parametrize("name", CASES)
def test_lines_hold_everything(name: str) -> None:
    operations = CASES[name]().operations
    assert [from_line(to_line(operation)) for operation in operations] == operations


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("a_record_written_twice", Promise()),
        ("readers_went_past_a_record", Promise(acks_all=False)),
        ("what_was_read_is_gone", Promise(clean_elections=False)),
        ("an_acknowledged_commit_is_gone", Promise(clean_elections=False)),
        ("a_poll_leaves_a_record_out", Promise(compacted=True)),
        ("records_lie_in_reverse", Promise(compacted=True)),
        ("two_transactions_wrote_between_each_other", Promise(idempotent=True)),
    ],
)
def test_what_a_configuration_permits_breaks_no_promise(name: str, promise: Promise) -> None:
    judged = check(CASES[name]().operations, promise)
    assert judged.findings.counts
    assert judged.broken == {}


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("a_record_written_twice", Promise(idempotent=True)),
        ("readers_went_past_a_record", Promise()),
        ("an_acknowledged_commit_is_gone", Promise(acks_all=False)),
        ("it_was_never_sent", Promise(acks_all=False, clean_elections=False, compacted=True)),
    ],
)
def test_what_a_configuration_rules_out_breaks_its_promise(name: str, promise: Promise) -> None:
    assert check(CASES[name]().operations, promise).broken


def test_the_guide_has_every_class() -> None:
    page = Path(__file__).parents[2] / "docs" / "guide" / "histories.md"
    text = page.read_text()
    assert [anomaly for anomaly in Anomaly if f"`{anomaly}`" not in text] == []
