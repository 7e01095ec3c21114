"""Which partition states cannot be true."""

import pytest
from barnabas_controller.partitions.state_reading import why_invalid
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING, LeaderAndIsr


@pytest.mark.parametrize(
    "state",
    [
        LeaderAndIsr(1, 5, (1, 2), 3),
        LeaderAndIsr(3, 6, (3, 1), 3),
        LeaderAndIsr(NO_LEADER, 6, (2,), 2),
        LeaderAndIsr(2, 6, (2,), 3, recovery_state=RECOVERING),
    ],
)
def test_what_a_controller_may_have_written_is_believed(state: LeaderAndIsr) -> None:
    assert why_invalid(state, (1, 2, 3), 3) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (LeaderAndIsr(1, 5, (1, 9), 3), r"\[9\] of the ISR \[1, 9\] are not among"),
        (LeaderAndIsr(9, 5, (9,), 3), "are not among the replicas"),
        (LeaderAndIsr(1, 5, (1, 1), 3), "names a broker twice"),
        (LeaderAndIsr(3, 5, (1, 2), 3), "the leader 3 is not in the ISR"),
        (LeaderAndIsr(-2, 5, (1, 2), 3), "the leader -2 is not in the ISR"),
        (LeaderAndIsr(1, -1, (1, 2), 3), "is negative"),
        (LeaderAndIsr(1, 5, (1, 2), 4), "controller epoch 4 is later than 3 now"),
        (LeaderAndIsr(1, 5, (1, 2), 3, recovery_state=7), "no recovery state 7"),
    ],
)
def test_what_no_controller_would_write_is_doubted(state: LeaderAndIsr, words: str) -> None:
    why = why_invalid(state, (1, 2, 3), 3)
    assert why is not None
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(why)
