"""Who in a group reads which partitions: Kafka's four assignors, as plain functions."""

from barnabas.group.assignors.assignor import Assignment, Assignor, PartitionRacks, Subscription
from barnabas.group.assignors.range_assignor import RANGE
from barnabas.group.assignors.round_robin_assignor import ROUND_ROBIN
from barnabas.group.assignors.sticky_assignor import COOPERATIVE_STICKY, STICKY

ASSIGNORS = {
    assignor.name: assignor for assignor in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)
}

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "PartitionRacks", "Subscription"]
