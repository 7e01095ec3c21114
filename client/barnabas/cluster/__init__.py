"""The client's view of the cluster: where the brokers are and who leads what."""

from barnabas.cluster.cluster import Cluster, ClusterConfig
from barnabas.cluster.metadata import ClusterMetadata, Leader, TopicInfo

__all__ = ["Cluster", "ClusterConfig", "ClusterMetadata", "Leader", "TopicInfo"]
