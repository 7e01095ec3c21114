"""The client's view of the cluster: the brokers' addresses and the partitions' leaders."""

from barnabas.cluster.cluster import Cluster, ClusterConfig
from barnabas.cluster.metadata import ClusterMetadata, Leader, TopicInfo

__all__ = ["Cluster", "ClusterConfig", "ClusterMetadata", "Leader", "TopicInfo"]
