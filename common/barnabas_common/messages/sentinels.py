"""Numbers in messages and znodes that stand for the absence of something."""

NO_LEADER = -1
NO_EPOCH = -1
LEADER_DURING_DELETE = -2
"""UpdateMetadata: the topic is being deleted."""
EPOCH_DURING_DELETE = -2
"""StopReplica: the topic is being deleted, whatever the leader epoch."""
