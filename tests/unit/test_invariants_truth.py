"""Which replicas need not hold everything: those whose disk lost data, until they prove it."""

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr
from barnabas_simulator.invariants.truth import Truth


def state(isr: tuple[int, ...], **proved_at: int) -> LeaderAndIsr:
    proofs = {int(name.removeprefix("b")): epoch for name, epoch in proved_at.items()}
    return LeaderAndIsr(isr[0], 1, isr, 1, proved_at=proofs)


def lapsed(before: LeaderAndIsr, after: LeaderAndIsr, forgot_at: dict[int, int]) -> set[int]:
    truth = Truth(TopicPartition("t", 0), before, (1, 2))
    truth.let_lapse(before, after, forgot_at)
    return truth.lapsed


def test_a_place_granted_to_an_incarnation_whose_disk_forgot_meanwhile_is_lapsed() -> None:
    before, after = state((1,), b1=10), state((1, 2), b1=10, b2=20)
    assert lapsed(before, after, {2: 25}) == {2}


def test_a_place_granted_to_a_later_incarnation_is_not() -> None:
    before, after = state((1,), b1=10), state((1, 2), b1=10, b2=30)
    assert lapsed(before, after, {2: 25}) == set()
    assert lapsed(before, after, {}) == set()


def test_a_state_without_a_leader_makes_no_leader_legitimate() -> None:
    """Its epoch was set back to the one under which a broker still leads."""
    truth = Truth(TopicPartition("t", 0), state((1,)), (1, 2))
    assert truth.led_epoch == 1
    truth.state = LeaderAndIsr(NO_LEADER, 1, (1,), 1)
    assert truth.led_epoch is None
