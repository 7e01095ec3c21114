"""Which state may follow which: Kafka's tables, with Kafka's numbers of the states."""

from barnabas_controller.state.states import (
    PARTITION_PREVIOUS,
    REPLICA_PREVIOUS,
    PartitionState,
    ReplicaState,
)


def test_a_partition_changes_its_state_as_in_kafka() -> None:
    assert [(state.name, state.value) for state in PartitionState] == [
        ("NEW", 0),
        ("ONLINE", 1),
        ("OFFLINE", 2),
        ("NON_EXISTENT", 3),
    ]
    allowed = {s.value: {p.value for p in PARTITION_PREVIOUS[s]} for s in PartitionState}
    assert allowed == {0: {3}, 1: {0, 1, 2}, 2: {0, 1, 2}, 3: {2}}


def test_a_replica_changes_its_state_as_in_kafka() -> None:
    assert [(state.name, state.value) for state in ReplicaState] == [
        ("NEW", 1),
        ("ONLINE", 2),
        ("OFFLINE", 3),
        ("DELETION_STARTED", 4),
        ("DELETION_SUCCESSFUL", 5),
        ("DELETION_INELIGIBLE", 6),
        ("NON_EXISTENT", 7),
    ]
    allowed = {s.value: {p.value for p in REPLICA_PREVIOUS[s]} for s in ReplicaState}
    assert allowed == {
        1: {7},
        2: {1, 2, 3, 6},
        3: {1, 2, 3, 6},
        4: {3},
        5: {4},
        6: {3, 4},
        7: {5},
    }
