"""Replicas of partitions: leaders and followers, the ISR, the high watermark, the purgatory.

`ReplicaManager` makes the parts. The decisions (`in_sync`, `isr_changes`, `high_watermark`,
`truncation`, `leader_epoch`) are plain functions. `Partition` and `Leadership` hold the state and
apply them; `serve/` answers produce, fetch and offset requests; `ReplicaFetcherManager` makes this
broker a follower of others.
"""
