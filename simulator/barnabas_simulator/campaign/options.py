"""The options of a run, drawn from its seed: the cluster, its settings, its clients."""

import random
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from barnabas_simulator.campaign.plain_data import from_plain
from barnabas_simulator.campaign.workload_options import WorkloadOptions, draw_workload


class Mode(StrEnum):
    """After the chaos everything is healed, or only a core while the rest stays broken.

    Steps: a short run on a small cluster, with a fault about every second and much traffic.
    """

    SAFETY = "safety"
    LIVENESS = "liveness"
    STEPS = "steps"


STEPS_SECONDS = 15.0

ORDERS, COPIES = "orders", "copies"
"""The topics of transactional clients: producers write to the first, copiers read it and write to
the second."""
COPIERS = "copiers"

SIDES = ("leader", "follower")

ASSIGNORS = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "cooperative-sticky",
    "range,cooperative-sticky",
)
"""What the members of a group support, in the order of their preference."""


@dataclass(frozen=True)
class Options(WorkloadOptions):
    """All but the faults. Seconds are virtual; `pause` is the mean time between two sends.

    `idempotent`: no retry of a producer may write a record twice. `tombstones` is the part of the
    records of a compacted topic that have no value; 0 as a lag or as bytes per second is no limit.
    `groups` is how many consumer groups read the topic, each with `members`, of which the first
    `static_members` are static. `order_producers` write transactions, and `copiers` copy them;
    `abort_chance` is the part of the transactions that they abort.

    `flush_all`: no append of any topic is answered before it is flushed. `throttle_bytes`: per
    second to and from replicas that are not in sync; 0 is no limit.
    """

    seed: int
    mode: Mode = Mode.SAFETY
    chaos_seconds: float = 60.0
    brokers: int = 3
    partitions: int = 3
    replication_factor: int = 3
    min_isr: int = 2
    producers: int = 1
    consumers: int = 1
    has_admin: bool = True
    pause: float = 0.4
    batch_size: int = 16_384
    linger_ms: int = 0
    fetch_max_bytes: int = 1_048_576
    session_timeout_ms: int = 6_000
    lag_max_ms: int = 5_000
    fetch_wait_max_ms: int = 500
    replica_fetch_max_bytes: int = 1_048_576
    segment_bytes: int = 1_048_576
    flush_messages: int = 0
    late_chance: float = 0.0
    delete_topics: bool = True
    elr_wait_ms: int = 30_000
    rebalance_check_seconds: int = 15
    cleanup_policy: str = "delete"
    keys: int = 0
    tombstones: float = 0.0
    idempotent: bool = True
    delete_retention_ms: int = 86_400_000
    dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 0
    cleaner_backoff_ms: int = 15_000
    cleaner_buffer_bytes: int = 524_288
    cleaner_bytes_per_second: int = 0
    cleaner_threads: int = 1
    groups: int = 0
    members: int = 2
    static_members: int = 0
    assignors: str = "range"
    member_session_ms: int = 6_000
    heartbeat_ms: int = 2_000
    max_poll_ms: int = 8_000
    member_fetch_ms: int = 1_000
    commit_seconds: float = 2.0
    rebalance_delay_ms: int = 500
    offsets_partitions: int = 1
    order_producers: int = 0
    copiers: int = 0
    order_partitions: int = 1
    abort_chance: float = 0.2
    transaction_pause: float = 0.2
    transaction_timeout_ms: int = 6_000
    state_partitions: int = 1
    log_dirs: int = 1
    flush_all: bool = False
    unclean_elections: bool = False
    truncation_lookup: str = "fetch"
    failure_detection: str = "evidence"
    has_eligible_replicas: bool = True
    has_gate: bool = True
    flushes_last_replica: bool = True
    throttle_bytes: int = 0
    index_interval_bytes: int = 4_096

    @classmethod
    def draw(cls, seed: int, mode: Mode = Mode.SAFETY) -> "Options":
        """Draw the options of a seed."""
        if mode is Mode.STEPS:
            return cls._of_steps(seed)
        chance = random.Random(f"options {seed}")
        pick = chance.choice
        brokers = pick([3, 3, 3, 4, 5])
        factor = pick([3, 3, 3, 2]) if brokers == 3 else pick([3, 3, 4])
        drawn = cls(
            seed=seed,
            mode=mode,
            brokers=brokers,
            partitions=pick([1, 2, 3, 4]),
            replication_factor=factor,
            min_isr=pick([2, 2, 2, 3]) if factor > 3 else min(2, factor),
            producers=pick([1, 2, 2]),
            consumers=pick([1, 1, 2]),
            has_admin=pick([True, True, False]),
            pause=pick([0.2, 0.4, 0.8]),
            batch_size=pick([200, 1_000, 16_384]),
            linger_ms=pick([0, 0, 20]),
            fetch_max_bytes=pick([500, 4_000, 1_048_576]),
            session_timeout_ms=pick([2_000, 6_000, 6_000, 10_000]),
            lag_max_ms=pick([1_000, 3_000, 5_000, 10_000]),
            fetch_wait_max_ms=pick([200, 500, 500]),
            replica_fetch_max_bytes=pick([300, 4_000, 1_048_576]),
            segment_bytes=pick([1_024, 8_192, 1_048_576]),
            flush_messages=pick([0, 0, 0, 1]),
            late_chance=pick([0.0, 0.01, 0.1]),
            delete_topics=pick([True, True, True, True, False]),
            elr_wait_ms=pick([2_000, 10_000, 30_000]),
        )
        # Of its own, so that the other options of a seed stay what they were.
        drawn = replace(drawn, idempotent=random.Random(f"idempotence {seed}").random() < 0.8)
        policy = pick(["delete", "delete", "delete", "compact", "compact,delete"])
        drawn = drawn if policy == "delete" else drawn._compacted(policy, chance)
        drawn = drawn._with_groups(random.Random(f"groups {seed}"))
        drawn = drawn._with_transactions(random.Random(f"transactions {seed}"))
        deletes = drawn.delete_topics and mode is Mode.SAFETY
        drawn = replace(drawn, **draw_workload(seed, deletes))
        return drawn._with_disks(random.Random(f"{seed}/disks"))

    def _with_disks(self, chance: random.Random) -> "Options":
        """Draw data directories, what is flushed, and the switches that Kafka has otherwise."""
        pick = chance.choice
        drawn = replace(
            self,
            log_dirs=pick([1, 1, 2]),
            flush_all=pick([True, False, False, False, False]),
            truncation_lookup=pick(["fetch", "fetch", "offsets-for-leader-epoch"]),
            failure_detection=pick(["evidence", "evidence", "session"]),
            throttle_bytes=pick([0, 0, 0, 10_000, 50_000]),
            has_eligible_replicas=pick([True] * 9 + [False]),
            has_gate=pick([True] * 9 + [False]),
            flushes_last_replica=pick([True] * 9 + [False]),
        )
        is_unclean = pick([True, False, False]) and not drawn.flush_all
        return replace(
            drawn,
            unclean_elections=is_unclean and drawn.may_lose_records,
            index_interval_bytes=pick([4_096, 100]),
        )

    @classmethod
    def _of_steps(cls, seed: int) -> "Options":
        """Draw the options of a run of steps: what varies is the faults, and when they strike."""
        pick = random.Random(f"options of steps {seed}").choice
        return cls(
            seed=seed,
            mode=Mode.STEPS,
            chaos_seconds=STEPS_SECONDS,
            has_admin=False,
            pause=0.025,
            session_timeout_ms=pick([2_000, 6_000]),
            segment_bytes=pick([1_024, 1_048_576]),
            elr_wait_ms=600_000,  # the faults may keep a better replica away
            failure_detection=pick(["evidence", "evidence", "session"]),
            rebalance_check_seconds=pick([1, 15]),  # leaders change and come back at once
        )

    def _with_groups(self, chance: random.Random) -> "Options":
        """Draw the consumer groups: none in four of nine runs."""
        pick = chance.choice
        groups = pick([0, 0, 0, 0, 1, 1, 1, 1, 2])
        if not groups:
            return self
        members = pick([2, 2, 3])
        return replace(
            self,
            groups=groups,
            members=members,
            static_members=pick([0, 0, 1, members]),
            assignors=pick(ASSIGNORS),
            member_session_ms=pick([6_000, 6_000, 10_000]),
            heartbeat_ms=pick([2_000, 3_000]),
            max_poll_ms=pick([4_000, 6_000, 10_000]),
            member_fetch_ms=3_000,
            commit_seconds=pick([1.0, 3.0, 5.0]),
            rebalance_delay_ms=pick([0, 500, 3_000]),
            offsets_partitions=groups,
        )

    def _with_transactions(self, chance: random.Random) -> "Options":
        """Draw the transactional clients: none in half of the runs."""
        pick = chance.choice
        producers = pick([0, 0, 0, 1, 1, 2])
        if not producers:
            return self
        return replace(
            self,
            order_producers=producers,
            copiers=pick([0, 1, 2, 2]),
            order_partitions=pick([1, 2, 3]),
            abort_chance=pick([0.1, 0.3]),
            transaction_pause=pick([0.05, 0.2, 0.4]),
            transaction_timeout_ms=pick([3_000, 6_000, 15_000]),
            state_partitions=pick([1, 1, 2]),
        )

    def _compacted(self, policy: str, chance: random.Random) -> "Options":
        """Draw what makes passes frequent, and lets faults meet them: few keys, small segments, and
        a throttle that makes some of the passes take seconds."""
        pick = chance.choice
        return replace(
            self,
            cleanup_policy=policy,
            segment_bytes=pick([512, 1_024, 2_048]),
            keys=pick([1, 3, 10]),
            tombstones=pick([0.0, 0.1, 0.3]),
            delete_retention_ms=pick([100, 2_000, 10_000, 86_400_000]),
            dirty_ratio=pick([0.01, 0.3, 0.5]),
            min_compaction_lag_ms=pick([0, 0, 0, 3_000]),
            max_compaction_lag_ms=pick([0, 0, 5_000]),
            cleaner_backoff_ms=pick([500, 1_000, 3_000]),
            cleaner_buffer_bytes=pick([200, 4_000, 524_288]),
            cleaner_bytes_per_second=pick([0, 2_000, 20_000]),
            cleaner_threads=pick([1, 1, 2]),
        )

    @property
    def is_compacted(self) -> bool:
        return self.cleanup_policy != "delete"

    @property
    def group_ids(self) -> list[str]:
        return [f"group-{number}" for number in range(self.groups)]

    def member_names(self, group: str) -> list[str]:
        return [f"{group}-member-{number}" for number in range(self.members)]

    def static_names(self, group: str) -> list[str]:
        return self.member_names(group)[: self.static_members]

    @property
    def has_transactions(self) -> bool:
        return self.order_producers > 0

    @property
    def order_producer_names(self) -> list[str]:
        return [f"order-producer-{number}" for number in range(self.order_producers)]

    @property
    def copier_names(self) -> list[str]:
        return [f"copier-{number}" for number in range(self.copiers)]

    @property
    def keeps_eligible_replicas(self) -> bool:
        """Whether states have proofs of who has every committed record."""
        return self.has_eligible_replicas and self.has_gate

    @property
    def keeps_last_replica(self) -> bool:
        """Whether a broker's power may fail: the rules of the last replica standing hold."""
        return self.keeps_eligible_replicas and self.flushes_last_replica

    @property
    def may_lose_records(self) -> bool:
        """Whether the judge can tell what an excused loss has cost: it knows all that depends on
        the records, which groups, transactions, compaction and topics of their own make more."""
        own = self.recreated or self.expiring or self.low_acks or self.seekers
        return not (own or self.groups or self.has_transactions or self.is_compacted)

    @property
    def broker_config(self) -> dict[str, str]:
        """Return the additions to every broker's settings."""
        throttle = {
            "log.cleaner.io.max.bytes.per.second": str(self.cleaner_bytes_per_second),
        }
        return {
            "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
            "replica.lag.time.max.ms": str(self.lag_max_ms),
            "replica.fetch.wait.max.ms": str(min(self.fetch_wait_max_ms, self.lag_max_ms // 2)),
            "replica.fetch.max.bytes": str(self.replica_fetch_max_bytes),
            "log.segment.bytes": str(self.segment_bytes),
            "log.segment.delete.delay.ms": "2000",
            **({"log.retention.check.interval.ms": "1000"} if self.expiring else {}),
            "log.initial.task.delay.ms": "3000",
            "log.flush.scheduler.interval.ms": "2000",
            "replica.high.watermark.checkpoint.interval.ms": "2000",
            "log.flush.offset.checkpoint.interval.ms": "3000",
            "replica.socket.timeout.ms": "5000",
            "controller.socket.timeout.ms": "5000",
            "controlled.shutdown.retry.backoff.ms": "1000",
            "leader.imbalance.check.interval.seconds": str(self.rebalance_check_seconds),
            "delete.topic.enable": str(self.delete_topics).lower(),
            "eligible.leader.replicas.wait.ms": str(self.elr_wait_ms),
            "failure.detection": self.failure_detection,
            "log.cleaner.backoff.ms": str(self.cleaner_backoff_ms),
            "log.cleaner.io.buffer.size": str(self.cleaner_buffer_bytes),
            "log.cleaner.threads": str(self.cleaner_threads),
            **(throttle if self.cleaner_bytes_per_second else {}),
            **(self._group_config if self.groups or self.copiers else {}),
            **(self._transaction_config if self.has_transactions else {}),
            **self._disk_config,
        }

    @property
    def _disk_config(self) -> dict[str, str]:
        """Return settings of logs and replicas; old runs have the defaults."""
        rate = str(self.throttle_bytes)
        return {
            **({"log.dirs": "/data,/data-2"} if self.log_dirs > 1 else {}),
            **({"log.flush.interval.messages": "1"} if self.flush_all else {}),
            "log.index.interval.bytes": str(self.index_interval_bytes),
            "replica.truncation.lookup": self.truncation_lookup,
            "eligible.leader.replicas.enable": str(self.has_eligible_replicas).lower(),
            "high.watermark.min.isr.gate.enable": str(self.has_gate).lower(),
            "last.replica.fsync.enable": str(self.flushes_last_replica).lower(),
            **(
                {f"{side}.replication.throttled.rate": rate for side in SIDES}
                if rate != "0"
                else {}
            ),
        }

    @property
    def _transaction_config(self) -> dict[str, str]:
        cleanup = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        return {"transaction.state.log.num.partitions": str(self.state_partitions), cleanup: "1000"}

    @property
    def _group_config(self) -> dict[str, str]:
        return {
            "offsets.topic.num.partitions": str(self.offsets_partitions),
            "group.initial.rebalance.delay.ms": str(self.rebalance_delay_ms),
        }

    @property
    def topic_config(self) -> dict[str, str]:
        flush = {"flush.messages": str(self.flush_messages)} if self.flush_messages else {}
        unclean = {"unclean.leader.election.enable": "true"} if self.unclean_elections else {}
        throttled = {f"{side}.replication.throttled.replicas": "*" for side in SIDES}
        return {
            "min.insync.replicas": str(self.min_isr),
            **flush,
            **unclean,
            **(throttled if self.throttle_bytes else {}),
            **self._compaction_config,
        }

    @property
    def _compaction_config(self) -> dict[str, str]:
        if not self.is_compacted:
            return {}
        lag = {"max.compaction.lag.ms": str(self.max_compaction_lag_ms)}
        return {
            "cleanup.policy": self.cleanup_policy,
            "delete.retention.ms": str(self.delete_retention_ms),
            "min.cleanable.dirty.ratio": str(self.dirty_ratio),
            "min.compaction.lag.ms": str(self.min_compaction_lag_ms),
            **(lag if self.max_compaction_lag_ms else {}),
        }

    @property
    def settling_seconds(self) -> float:
        """Return the time within which the cluster must recover after the faults have stopped."""
        if self.mode is Mode.STEPS:
            return 60.0  # all replicas return, so no partition waits for an eligible one
        sessions, lags = 3 * self.session_timeout_ms, 2 * self.lag_max_ms
        has_members = self.groups or self.copiers
        members = (self.member_session_ms + 2 * self.max_poll_ms) if has_members else 0
        open_still = 2 * self.transaction_timeout_ms if self.has_transactions else 0
        return 45.0 + (sessions + lags + self.elr_wait_ms + members + open_still) / 1000

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Any) -> "Options":
        """Read options; old files have no idempotence. Raises ValueError."""
        old = {"idempotent": False}
        return from_plain(cls, {**old, **plain} if isinstance(plain, dict) else plain)
