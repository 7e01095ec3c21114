"""Which requests a batch sends to which broker, and which partitions the rebalance picks."""

from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.channels.request_batch import RequestBatch
from barnabas_controller.partitions.preferred_rebalance import imbalanced_partitions
from barnabas_controller.state.context import ControllerContext, Replica
from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import Broker, Endpoint, ReplicaAssignment, TopicZnode

FLIGHTS = TopicPartition("flights", 0)
STATE = LeaderAndIsr(1, 4, (1, 2), 3, partition_epoch=6)


def cluster(*broker_ids: int) -> ControllerContext:
    """Return a context with two listeners per broker, and the topic flights on 1, 2 and 3."""
    context = ControllerContext()
    for broker_id in broker_ids:
        endpoints = (
            Endpoint("CLIENT", f"h{broker_id}", 9092),
            Endpoint("REPL", f"h{broker_id}", 9093),
        )
        context.brokers[broker_id] = Broker(broker_id, endpoints, epoch=100 + broker_id)
    context.set_topic("flights", TopicZnode("id", {0: ReplicaAssignment((1, 2, 3))}))
    context.leadership[FLIGHTS] = STATE
    return context


def batch_of(context: ControllerContext) -> RequestBatch:
    return RequestBatch(context, 9, 3, "REPL")


def test_leaders_and_followers_are_told_first_then_all_brokers_then_who_must_stop() -> None:
    batch = batch_of(cluster(1, 2, 3, 4))
    batch.stop_replica(3, FLIGHTS, delete=False)
    batch.leader_and_isr([1, 2], FLIGHTS, STATE)
    sent = [(broker.broker_id, type(request)) for broker, request in batch.requests()]
    assert sent == [
        (1, LeaderAndIsrRequest),
        (2, LeaderAndIsrRequest),
        (1, UpdateMetadataRequest),
        (2, UpdateMetadataRequest),
        (3, UpdateMetadataRequest),
        (4, UpdateMetadataRequest),
        (3, StopReplicaRequest),
    ]


def test_each_request_carries_the_receivers_epoch_and_the_leaders_address() -> None:
    batch = batch_of(cluster(1, 2))
    batch.leader_and_isr([2], FLIGHTS, STATE)
    broker, request = batch.requests()[0]
    assert isinstance(request, LeaderAndIsrRequest)
    assert (broker.broker_id, request.broker_epoch) == (2, 102)
    assert (request.controller_id, request.controller_epoch) == (9, 3)
    assert [(e.broker_id, e.listener, e.port) for e in request.live_leaders] == [(1, "REPL", 9093)]
    said = request.partitions[0]
    assert (said.topic_id, said.leader, said.leader_epoch, said.partition_epoch) == ("id", 1, 4, 6)
    assert (said.replicas, said.in_sync_replicas) == ([1, 2, 3], [1, 2])


def test_nothing_is_sent_to_brokers_that_are_not_registered() -> None:
    batch = batch_of(cluster(1))
    batch.leader_and_isr([1, 2], FLIGHTS, STATE)
    batch.stop_replica(3, FLIGHTS, delete=True)
    assert {broker.broker_id for broker, _ in batch.requests()} == {1}


def test_new_and_delete_once_said_stay_said() -> None:
    batch = batch_of(cluster(1, 2))
    batch.leader_and_isr([1], FLIGHTS, STATE, is_new=True)
    batch.leader_and_isr([1], FLIGHTS, STATE)
    batch.stop_replica(2, FLIGHTS, delete=True)
    batch.stop_replica(2, FLIGHTS, delete=False)
    requests = [request for _, request in batch.requests()]
    first, last = requests[0], requests[-1]
    assert isinstance(first, LeaderAndIsrRequest) and first.partitions[0].is_new
    assert isinstance(last, StopReplicaRequest) and last.partitions[0].delete_partition
    assert last.partitions[0].leader_epoch == 4


def test_metadata_names_the_offline_replicas_and_all_registered_brokers() -> None:
    context = cluster(1, 2)
    context.shutting_down.add(2)
    batch = batch_of(context)
    batch.update_metadata([1], [FLIGHTS])
    [(_, request)] = batch.requests()
    assert isinstance(request, UpdateMetadataRequest)
    assert request.partitions[0].offline_replicas == [2, 3]
    assert {(e.broker_id, e.listener) for e in request.live_brokers} == {
        (1, "CLIENT"),
        (1, "REPL"),
        (2, "CLIENT"),
        (2, "REPL"),
    }


def test_all_metadata_names_every_topic_that_exists() -> None:
    """A receiver forgets the others."""
    context = cluster(1)
    context.set_topic("new", TopicZnode("id2", {0: ReplicaAssignment((1,))}))
    context.note_unreadable(["flights", "malformed", "new"])
    batch = batch_of(context)
    batch.all_metadata([1])
    [(_, request)] = batch.requests()
    assert isinstance(request, UpdateMetadataRequest) and request.names_all_topics
    assert [partition.topic for partition in request.partitions] == ["flights"]
    assert request.other_topics == ["malformed", "new"]
    [new] = request.partitions_without_state
    assert (new.topic, new.partition, new.topic_id) == ("new", 0, "id2")
    assert (new.leader, new.leader_epoch, new.replicas) == (-1, -1, [1])


def test_a_topic_being_deleted_has_leader_minus_2_and_is_stopped_whatever_its_epoch() -> None:
    context = cluster(1)
    context.topics_to_delete["flights"] = None
    batch = batch_of(context)
    batch.update_metadata([1], [FLIGHTS])
    batch.stop_replica(1, FLIGHTS, delete=True)
    metadata, stop = (request for _, request in batch.requests())
    assert isinstance(metadata, UpdateMetadataRequest)
    assert (metadata.partitions[0].leader, metadata.partitions[0].leader_epoch) == (-2, 0)
    assert isinstance(stop, StopReplicaRequest)
    assert stop.partitions[0].leader_epoch == -2


def test_a_forgotten_topic_leaves_no_trace_in_the_context() -> None:
    context = cluster(1, 2, 3)
    context.replica_states[Replica(FLIGHTS, 1)] = ReplicaState.ONLINE
    context.partition_states[FLIGHTS] = PartitionState.OFFLINE
    context.failed_replicas[1] = {FLIGHTS: True}
    context.reassigning[FLIGHTS] = None
    context.invalid_states[FLIGHTS] = "not JSON"
    context.awaiting[FLIGHTS] = 7.0
    context.refused[FLIGHTS] = ("no replica is online",)
    context.held_roles[FLIGHTS] = {1: HeldRole("flights", 0, 7, 1, [1], 7, 10)}
    for topics in (
        context.topics_to_delete,
        context.deletion_started,
        context.deletion_ineligible,
    ):
        topics["flights"] = None
    context.remove_topic("flights")
    empty = ControllerContext(brokers=context.brokers, failed_replicas={1: {}})
    assert context == empty


def drifted(leaders: list[int], broker_ids: tuple[int, ...] = (1, 2, 3)) -> ControllerContext:
    """Return partitions that all prefer broker 1 and are led by the given brokers."""
    context = cluster(*broker_ids)
    partitions = {p: ReplicaAssignment((1, 2, 3)) for p in range(len(leaders))}
    context.set_topic("flights", TopicZnode("id", partitions))
    for partition, leader in enumerate(leaders):
        context.leadership[TopicPartition("flights", partition)] = LeaderAndIsr(
            leader, 1, (1, 2, 3), 1
        )
    return context


def test_leadership_is_handed_back_when_more_than_the_allowed_share_has_drifted() -> None:
    one_of_ten = drifted([2] + [1] * 9)
    assert imbalanced_partitions(one_of_ten, 10) == []
    two_of_ten = drifted([2, 3] + [1] * 8)
    chosen = imbalanced_partitions(two_of_ten, 10)
    assert chosen == [TopicPartition("flights", 0), TopicPartition("flights", 1)]


def test_only_partitions_whose_preferred_replica_can_lead_are_handed_back() -> None:
    assert imbalanced_partitions(drifted([2, 2], broker_ids=(2, 3)), 10) == []
    behind = drifted([2])
    behind.leadership[FLIGHTS] = LeaderAndIsr(2, 1, (2, 3), 1)
    assert imbalanced_partitions(behind, 10) == []
    deleting = drifted([2])
    deleting.topics_to_delete["flights"] = None
    assert imbalanced_partitions(deleting, 10) == []
