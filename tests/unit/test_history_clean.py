"""Valid histories: the checker finds nothing in them."""

from barnabas_common.history.checker import check
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.promise import Promise
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.history_model import history


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(5, 250),
    idempotent=st.booleans(),
    transactions=st.booleans(),
)
def test_a_valid_history_is_judged_clean(
    seed: int, steps: int, idempotent: bool, transactions: bool
) -> None:
    found = history(seed, steps=steps, idempotent=idempotent, transactions=transactions)
    judged = check(found, Promise(idempotent=idempotent))
    assert judged.examples() == []
    assert judged.unread == []


def test_valid_histories_have_what_can_mislead_a_checker() -> None:
    seen = [check(history(seed, idempotent=False)).findings.counts for seed in range(20)]
    assert all(any(counts[each] for counts in seen) for each in (Anomaly.DUPLICATE, Anomaly.G0))
    lengths = [len(history(seed)) for seed in range(20)]
    assert min(lengths) > 100
