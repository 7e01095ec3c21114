"""What a run sets up, what it breaks, and what it must show."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.promise import PROFILES as PROMISES
from barnabas_common.history.promise import Promise

_LOSS = frozenset({Anomaly.LOST_WRITE, Anomaly.UNSEEN, Anomaly.VANISHED})


@dataclass(frozen=True)
class Workload:
    """One topic with its clients, and the promise by which their history is judged.

    `transactional`: its producers write in transactions, and its consumers read what is committed.
    """

    name: str
    promise: Promise
    producer: Mapping[str, str] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=lambda: {"min.insync.replicas": "2"})
    partitions: int = 3
    producers: int = 2
    members: int = 2
    transactional: bool = False

    @property
    def producer_role(self) -> str:
        return "transactor" if self.transactional else "producer"

    @property
    def consumer(self) -> Mapping[str, str]:
        return {"isolation_level": "read_committed"} if self.transactional else {}


@dataclass(frozen=True)
class Profile:
    """`shows`: a positive control, which is good only if one of these anomalies is found.

    `brokers`: settings of the brokers; `faults`: kinds of `menu.py` with their weights.
    """

    workloads: tuple[Workload, ...]
    faults: Mapping[str, int]
    brokers: Mapping[str, str] = field(default_factory=dict)
    shows: frozenset[Anomaly] = frozenset()


_EVERYTHING = {
    "kill": 4,
    "stop": 2,
    "pause": 3,
    "restart": 3,
    "isolate": 2,
    "one-way": 2,
    "link": 2,
    "ring": 1,
    "slow": 1,
    "leader-controller": 1,
    "wipe": 1,
    "full-disk": 1,
    "zookeeper": 1,
    "session": 2,
    "controller-znode": 1,
    "registration-znode": 1,
    "chase-leader": 1,
    "chase-controller": 1,
    "rolling-restart": 1,
    "kill-producer": 2,
    "kill-member": 2,
}


def _control(
    producer: Mapping[str, str], promise: Promise, topic: Mapping[str, str] | None = None
) -> tuple[Workload]:
    settings = {"min.insync.replicas": "2"} | dict(topic or {})
    return (Workload("control", promise, producer, settings, partitions=1, producers=1),)


PROFILES = {
    "safe": Profile(
        (
            Workload("idempotent", PROMISES["idempotent"]),
            Workload("plain", PROMISES["safe"], {"enable_idempotence": "false"}),
            Workload(
                "transactional",
                PROMISES["idempotent"],
                {"transaction_timeout_ms": "10000"},
                transactional=True,
            ),
        ),
        _EVERYTHING,
        # A killed broker reads again what it has not flushed; a segment that ends is flushed.
        {"log.segment.bytes": "4194304"},
    ),
    "acks1": Profile(_control({"acks": "1"}, PROMISES["acks-1"]), {"leader-ahead": 1}, shows=_LOSS),
    "unclean": Profile(
        _control(
            {},
            PROMISES["unclean"],
            {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
        ),
        {"last-in-sync": 1},
        shows=_LOSS,
    ),
    "hw-truncation": Profile(
        _control({"linger_ms": "0"}, PROMISES["unclean"]),
        {"stale-high-watermark": 1},
        {
            "replica.truncation": "high-watermark",
            "eligible.leader.replicas.enable": "false",
            "auto.leader.rebalance.enable": "false",
        },
        shows=_LOSS,
    ),
    "no-idempotence": Profile(
        _control({"enable_idempotence": "false", "request_timeout_ms": "1000"}, PROMISES["safe"]),
        {"pause-leader": 1},
        shows=frozenset({Anomaly.DUPLICATE}),
    ),
}
