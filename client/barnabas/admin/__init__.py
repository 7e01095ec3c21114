"""The admin client."""

from barnabas.admin.admin import Admin, BrokerReplicas, ClusterDescription
from barnabas.admin.config import AdminConfig, AdminOptions
from barnabas.messages.topics import NewTopic

__all__ = ["Admin", "AdminConfig", "AdminOptions", "BrokerReplicas", "ClusterDescription",
           "NewTopic"]  # fmt: skip
