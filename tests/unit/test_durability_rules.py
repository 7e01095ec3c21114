"""What I4 and I4b excuse: a replica that elections pass over, and what retention has deleted."""

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.durability_rules import (
    candidate_completeness,
    leader_completeness,
)
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica

TP = TopicPartition("flights", 0)
STATE = LeaderAndIsr(2, 3, (2,), 4, eligible=(3,), proved_at={2: 249, 3: 94})
SHORT = Replica(3, "broker-3/2", 3, 4, 0, 0, 16, ((0, 0),), None, None)


def test_a_candidate_has_everything_unless_its_registration_says_that_it_lost_something() -> None:
    assert candidate_completeness.broken(SHORT, STATE, 286, lambda _: 94)
    assert candidate_completeness.broken(SHORT, STATE, 286, lambda _: -1)
    assert not candidate_completeness.broken(SHORT, STATE, 286, {3: 95}.__getitem__)
    unproved = LeaderAndIsr(2, 3, (2,), 4, eligible=(3,))
    assert candidate_completeness.broken(SHORT, unproved, 286, lambda _: 95)


def test_a_leader_may_lack_what_a_client_was_told_only_where_retention_deleted_it() -> None:
    truth = Truth(TP, STATE, (1, 2, 3), unsettled={239: b"by a deposed leader"})
    leader = Replica(2, "broker-2/1", 3, 4, 240, 240, 248, ((3, 248),), 3, (2,))
    image = LogImage(MemoryDisk(), "/data/flights-0")
    assert leader_completeness.broken(leader, image, truth)
    truth.log_start = 239
    assert leader_completeness.broken(leader, image, truth)
    truth.log_start = 240
    assert not leader_completeness.broken(leader, image, truth)
