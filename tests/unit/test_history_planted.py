"""Planted anomalies: the checker finds every class, names what proves it, and nothing more."""

import pytest
from barnabas_common.history.checker import check
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.lines import from_line, to_line

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
