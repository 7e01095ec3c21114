"""The admin client."""

from barnabas_common.messages.topics import NewTopic

from barnabas.admin.admin import Admin
from barnabas.admin.config import AdminConfig, AdminOptions
from barnabas.admin.config_resource import ConfigResource
from barnabas.admin.descriptions import BrokerReplicas, ClusterDescription, DeletedTopic
from barnabas.admin.events import BrokerEvents, EventStream, Interruption
from barnabas.admin.group_requests import GroupDescription, GroupMemberDescription
from barnabas.admin.transactions.descriptions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
)

__all__ = ["Admin", "AdminConfig", "AdminOptions", "BrokerEvents", "BrokerReplicas",
           "ClusterDescription", "ConfigResource", "DeletedTopic", "EventStream",
           "GroupDescription", "GroupMemberDescription", "Interruption", "NewTopic",
           "OpenTransaction", "TransactionDescription", "TransactionListing"]  # fmt: skip
