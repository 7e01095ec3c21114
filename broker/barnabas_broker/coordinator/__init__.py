"""Coordinators: state that is kept in the partitions of an internal topic.

The leader of a partition of that topic coordinates what the partition holds. The state is rebuilt
from the partition's log when the leader changes.
"""
