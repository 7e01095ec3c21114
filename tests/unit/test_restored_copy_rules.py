"""What the checker makes of a copy of ZooKeeper that all brokers accept."""

from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.invariants.durability_rules import candidate_completeness
from barnabas_simulator.invariants.logs.image import Batch
from barnabas_simulator.invariants.replica_rules import quorum_superset
from barnabas_simulator.invariants.truth import Truth, accept_copy, end_doubt
from barnabas_simulator.invariants.view import NO_CONTROLLER, Replica, StateChange

TP, NEW = TopicPartition("flights", 0), TopicPartition("later", 0)
NOW = LeaderAndIsr(1, 7, (1, 2), 4, proved_at={1: 90, 2: 80})
THEN = LeaderAndIsr(3, 3, (1, 2, 3), 2, proved_at={1: 10, 2: 10, 3: 40})
LEADERS = {0: 1, 4: 2, 5: 1, 6: 3, 7: 1}
LEADER = Replica(1, "broker-1/4", 9, 1, 0, 20, 20, ((9, 20),), 9, (1, 2, 3))


class Copy:
    """A view of ZooKeeper after the restore: its newest transaction is 50."""

    zxid = 50

    def __init__(self, *changes: StateChange) -> None:
        self._changes = changes

    def changes(self) -> list[StateChange]:
        return []

    def states(self) -> list[StateChange]:
        return list(self._changes)


class Log(NamedTuple):
    batches: list[Batch]


class Disks:
    """Two logs, of which the newer one has records of epoch 5."""

    def stored(self, _: TopicPartition) -> dict[int, Log]:
        epochs = {1: [0, 5], 2: [0, 4], 3: []}
        return {b: Log([Batch(0, 0, e, 0, 0) for e in known]) for b, known in epochs.items()}


def accepted(forgot_at: dict[int, int], topic_id: str = "id") -> dict[TopicPartition, Truth]:
    truths = {
        TP: Truth(TP, NOW, (1, 2, 3), high_watermark=20, topic_id="id", elected=dict(LEADERS)),
        NEW: Truth(NEW, NOW, (1, 2, 3)),
    }
    change = StateChange(TP, THEN, (1, 2, 3), NO_CONTROLLER, topic_id)

    def is_new(change: StateChange) -> None:
        assert change.state is not None
        truths[change.partition] = Truth(change.partition, change.state, change.replicas)

    accept_copy(Copy(change), Disks(), truths, forgot_at, is_new)  # type: ignore[arg-type]
    return truths


def test_what_clients_were_told_stays_and_what_the_copy_lacks_goes() -> None:
    truths = accepted({})
    assert list(truths) == [TP]
    truth = truths[TP]
    assert (truth.state, truth.high_watermark, truth.is_in_doubt) == (THEN, 20, True)


def test_only_an_epoch_without_records_may_be_given_again() -> None:
    assert accepted({})[TP].elected == {0: 1, 4: 2, 5: 1}


def test_another_topic_of_that_name_has_none_of_its_records() -> None:
    assert accepted({}, "another")[TP].high_watermark == 0


def test_who_lost_records_after_the_copy_has_not_proved_anything_by_it() -> None:
    forgot_at = {1: 95, 3: 30}
    assert accepted(forgot_at)[TP].lapsed == {1}
    assert forgot_at == {1: 50, 3: 30}, "what is proved after the copy counts again"


def test_the_doubt_ends_when_the_whole_isr_has_everything() -> None:
    truth = accepted({})[TP]
    truth.state = LeaderAndIsr(1, 9, (1, 2, 3), 5)
    followers = [LEADER._replace(broker_id=b, led_epoch=None) for b in (2, 3)]
    late = followers[1]._replace(log_end=12)
    for replicas in (
        [followers[0], followers[1]],
        [LEADER, followers[0]],
        [LEADER, followers[0], late],
        [LEADER._replace(high_watermark=12), *followers],
        [LEADER._replace(led_epoch=7), *followers],
    ):
        end_doubt(truth, replicas)
        assert truth.is_in_doubt
    end_doubt(truth, [LEADER, *followers])
    assert not truth.is_in_doubt and truth.is_restored
    end_doubt(truth, [LEADER, late])
    assert not truth.is_in_doubt
    assert candidate_completeness.broken(late, truth.state, truth.high_watermark, lambda _: -1)


def test_by_hand_too_only_an_epoch_without_records_may_be_given_again() -> None:
    truth = Truth(TP, NOW, (1, 2, 3))
    assert not truth.may_be_led_again(6, Disks())  # type: ignore[arg-type]
    truth.was_set_back = True
    assert truth.may_be_led_again(6, Disks())  # type: ignore[arg-type]
    assert not truth.may_be_led_again(5, Disks())  # type: ignore[arg-type]


def test_a_deposed_leader_need_not_know_the_isr_of_a_state_that_was_set_back_to_its_epoch() -> None:
    deposed = LEADER._replace(broker_id=1, led_epoch=4, maximal_isr=(1, 3))
    assert quorum_superset.broken(deposed, LeaderAndIsr(3, 4, (3, 2), 5)) is None
    assert quorum_superset.broken(deposed, LeaderAndIsr(1, 4, (1, 2), 5))
