"""One replica that follows a leader, without a broker around it."""

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.follower.fetch_session_handler import FetchLimits, FetchSessionHandler
from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.followed_partitions import FollowedPartitions
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_broker.replica.leader.alter_partition_manager import (
    AlterPartitionContext,
    AlterPartitionManager,
)
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_common.events import EventLog
from barnabas_common.messages.control import LeaderAndIsrPartition
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_simulator.network import MemoryNetwork

from tests.support.log_world import PARTITION, LogWorld, read_all

LEADER, SELF = 1, 2
LIMITS = FetchLimits(500, 1, 1 << 20, 1 << 20)


def role(leader_epoch: int) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(
        *PARTITION,
        topic_id="",
        controller_epoch=1,
        leader=LEADER,
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch,
        in_sync_replicas=[LEADER, SELF],
        replicas=[LEADER, SELF],
    )


def answer() -> FetchedPartition:
    """Return an answer with a leader's records from offset 0 on."""
    world = LogWorld()
    log = world.open()
    world.append(log, b"a")
    return FetchedPartition(*PARTITION, records=read_all(log), high_watermark=1)


class Following:
    """A replica with a log that follows broker 1, on a clock that a test moves by hand.

    It has `log`, or a new one with this configuration.
    """

    def __init__(
        self,
        log: UnifiedLog | None = None,
        quota_rate: int | None = None,
        truncation: TruncationPolicy = TruncationPolicy(),  # noqa: B008
        **config: object,
    ) -> None:
        self.now = 0.0
        self.events = EventLog(SELF)
        self.network = MemoryNetwork(0)
        network = self.network.node("broker-2")
        manager = AlterPartitionManager(
            AlterPartitionContext(network, SELF, lambda: 1, lambda: None, timeout=1.0)
        )
        self.partition = Partition(
            PARTITION, LeaderEnvironment(SELF, lambda: self.now, 30.0, lambda _: True, manager)
        )
        quota = None
        if quota_rate is not None:
            quota = ReplicationQuota(lambda: quota_rate, lambda: self.now)
        self.context = FetcherContext(
            network,
            lambda: self.now,
            SELF,
            lambda: 1,
            LIMITS,
            backoff=1.0,
            timeout=1.0,
            events=self.events,
            quota=quota,
            truncation=truncation,
        )
        self.session = FetchSessionHandler(LIMITS, SELF, lambda: 1)
        self.followed = FollowedPartitions(LEADER, self.context, self.session)
        self.log = log or LogWorld().open(**config)
        self.follow(leader_epoch=0)

    def follow(self, leader_epoch: int) -> None:
        self.partition.become_follower(role(leader_epoch), self.log)
        self.followed.add(self.partition)

    def fetch(self, fetched: FetchedPartition) -> None:
        """Send a request, and apply this answer."""
        self.followed.next_request()
        self.followed.take(fetched)

    def positions(self) -> list[int]:
        """Return the fetch offsets of the next request."""
        self.followed.resume_delayed()
        return [named.fetch_offset for named in self.followed.next_request().partitions]
