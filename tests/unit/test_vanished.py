"""Replicas that have vanished: when an empty log must not take their place."""

from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.vanished import VanishedReplicas
from barnabas_common.messages.control import LeaderAndIsrPartition, UpdateMetadataPartition
from barnabas_common.topic_partition import TopicPartition

KEY, SELF = TopicPartition("t", 0), 2


def role(isr: list[int], topic_id: str = "x", is_new: bool = False) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(*KEY, topic_id, 1, 1, 0, 0, isr, [1, 2], is_new=is_new)


def test_a_role_in_the_isr_is_refused_with_an_empty_log_if_the_replica_was_here() -> None:
    cache = MetadataCache()
    vanished = VanishedReplicas(SELF, cache, Partitions(cache))
    assert not vanished.must_not_be_empty(role([1, 2])), "it was never here"
    vanished.role_taken(KEY, "x")
    assert vanished.must_not_be_empty(role([1, 2]))
    assert not vanished.must_not_be_empty(role([1])), "it fetches all anew"
    assert not vanished.must_not_be_empty(role([1, 2], is_new=True))
    assert not vanished.must_not_be_empty(role([1, 2], topic_id="y")), "another topic"


def test_one_that_has_left_the_isr_is_asked_for_once() -> None:
    cache = MetadataCache()
    vanished = VanishedReplicas(SELF, cache, Partitions(cache))
    vanished.role_taken(KEY, "x")

    def metadata(*isr: int) -> list[UpdateMetadataPartition]:
        return [UpdateMetadataPartition(*KEY, "x", 1, 1, 0, 0, list(isr), [1, 2])]

    assert vanished.take_free(metadata(1, 2)) == []
    assert [vanished.take_free(metadata(1)) for _ in range(2)] == [[KEY], []]
