"""The blocking admin client: the methods of `barnabas.Admin`, each waiting for its answer."""

from collections.abc import Iterable, Sequence
from typing import Unpack

from barnabas_common.runtime import Runtime

from barnabas.admin import Admin as AsyncAdmin
from barnabas.admin import AdminOptions
from barnabas.cluster.options import DEFAULT_BOOTSTRAP
from barnabas.sync.blocking import Blocking, blocking
from barnabas.sync.events import EventStream


class Admin(Blocking):
    """Takes the options of `barnabas.Admin`.

    Raises `NoBrokerReachableError` within seconds if no broker answers at the addresses.
    """

    _client: AsyncAdmin

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        super().__init__(AsyncAdmin(bootstrap_servers, runtime=runtime, **options))

    def events(self, topics: Iterable[str] = (), *, from_beginning: bool = False) -> EventStream:
        """The events of all brokers as they occur: `with admin.events() as stream`."""
        stream = self._call(self._client.events(topics, from_beginning=from_beginning))
        return EventStream(self, stream)

    create_topic = blocking(AsyncAdmin.create_topic)
    create_topics = blocking(AsyncAdmin.create_topics)
    delete_topics = blocking(AsyncAdmin.delete_topics)
    create_partitions = blocking(AsyncAdmin.create_partitions)

    elect_leaders = blocking(AsyncAdmin.elect_leaders)
    alter_partition_reassignments = blocking(AsyncAdmin.alter_partition_reassignments)
    list_partition_reassignments = blocking(AsyncAdmin.list_partition_reassignments)

    list_topics = blocking(AsyncAdmin.list_topics)
    describe_topics = blocking(AsyncAdmin.describe_topics)
    describe_topic = blocking(AsyncAdmin.describe_topic)
    describe_cluster = blocking(AsyncAdmin.describe_cluster)

    describe_configs = blocking(AsyncAdmin.describe_configs)
    describe_broker_configs = blocking(AsyncAdmin.describe_broker_configs)
    describe_cluster_default_configs = blocking(AsyncAdmin.describe_cluster_default_configs)
    incremental_alter_configs = blocking(AsyncAdmin.incremental_alter_configs)

    describe_replicas = blocking(AsyncAdmin.describe_replicas)
    describe_events = blocking(AsyncAdmin.describe_events)
    explain = blocking(AsyncAdmin.explain)
    list_offsets = blocking(AsyncAdmin.list_offsets)
    end_offsets = blocking(AsyncAdmin.end_offsets)

    list_groups = blocking(AsyncAdmin.list_groups)
    describe_groups = blocking(AsyncAdmin.describe_groups)
    delete_groups = blocking(AsyncAdmin.delete_groups)
    list_group_offsets = blocking(AsyncAdmin.list_group_offsets)
    alter_group_offsets = blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = blocking(AsyncAdmin.delete_group_offsets)
    explain_group = blocking(AsyncAdmin.explain_group)

    list_transactions = blocking(AsyncAdmin.list_transactions)
    describe_transactions = blocking(AsyncAdmin.describe_transactions)
    describe_producers = blocking(AsyncAdmin.describe_producers)
    find_hanging_transactions = blocking(AsyncAdmin.find_hanging_transactions)
    abort_transaction = blocking(AsyncAdmin.abort_transaction)
    complete_transaction = blocking(AsyncAdmin.complete_transaction)
    fence_producers = blocking(AsyncAdmin.fence_producers)
    explain_transaction = blocking(AsyncAdmin.explain_transaction)
