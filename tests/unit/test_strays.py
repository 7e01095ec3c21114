"""When a replica is a stray: metadata not older than its role names only other brokers."""

import pytest
from barnabas_broker.replica.strays import is_assigned_elsewhere
from barnabas_common.messages.control import UpdateMetadataPartition

DELETED = -2


@pytest.mark.parametrize(
    ("replicas", "leader", "told_epoch", "own_epoch", "stray"),
    [
        ([1, 2], 1, 5, 4, True),
        ([1, 2], 1, 5, -1, True),  # a log without a role
        ([1, 2], -1, 5, 4, True),  # it does not matter that there is no leader now
        ([1, 2, 3], 1, 5, 4, False),
        ([1, 2], 1, 5, 6, False),  # it has received a role since
        ([1, 2], DELETED, 0, 4, False),  # a deletion sends its own requests
    ],
)
def test_what_a_stray_is(
    replicas: list[int], leader: int, told_epoch: int, own_epoch: int, stray: bool
) -> None:
    told = UpdateMetadataPartition("flights", 0, "id", 1, leader, told_epoch, 0, replicas=replicas)
    assert is_assigned_elsewhere(3, told, own_epoch) is stray


def test_what_no_one_was_told_of_is_no_stray() -> None:
    assert not is_assigned_elsewhere(3, None, -1)
