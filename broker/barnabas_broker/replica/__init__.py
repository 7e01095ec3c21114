"""Replicas of partitions: who leads and who follows, what is committed, who waits for it.

`ReplicaManager` is the front door. The decisions (`in_sync`, `high_watermark`, `truncation`,
`leader_epoch`) are plain functions; `Partition` and `Leadership` hold the state they work on; the
paths of produce and fetch ask these; `Fetchers` makes this broker a follower of others.
"""
