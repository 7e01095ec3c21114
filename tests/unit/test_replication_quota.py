"""The quota of throttled replication: the bucket, and the list of throttled replicas."""

import pytest
from barnabas_broker.config import Config, InvalidConfig, LogConfig
from barnabas_broker.config.throttled_replicas import throttled_replicas
from barnabas_broker.replica.replication_quota import ReplicationQuota


class Bucket:
    """A quota whose clock and rate the test sets."""

    def __init__(self, rate: int) -> None:
        self.now, self.rate = 100.0, rate
        self.quota = ReplicationQuota(lambda: self.rate, lambda: self.now)


def test_one_second_of_the_rate_may_be_copied_at_once_and_then_nothing() -> None:
    bucket = Bucket(1000)
    bucket.quota.record(999)
    assert not bucket.quota.is_exceeded()
    bucket.quota.record(1)
    assert bucket.quota.is_exceeded()
    bucket.now += 0.5
    assert not bucket.quota.is_exceeded()


def test_an_answer_larger_than_the_bucket_is_paid_for_afterwards() -> None:
    bucket = Bucket(1000)
    bucket.quota.record(5000)
    bucket.now += 3.9
    assert bucket.quota.is_exceeded()
    assert bucket.quota.wait() == pytest.approx(0.101)
    bucket.now += 0.2
    assert not bucket.quota.is_exceeded() and bucket.quota.wait() == 0.0


def test_a_quiet_time_is_not_saved_up() -> None:
    bucket = Bucket(1000)
    bucket.now += 3600
    bucket.quota.record(1000)
    assert bucket.quota.is_exceeded()


def test_another_rate_counts_at_once() -> None:
    bucket = Bucket(2**63 - 1)
    bucket.quota.record(10**12)
    assert not bucket.quota.is_exceeded()
    bucket.rate = 10
    bucket.quota.record(11)
    assert bucket.quota.is_exceeded()
    assert bucket.quota.wait() <= 1.0
    bucket.rate = 0
    bucket.now += 3600
    assert bucket.quota.is_exceeded() and bucket.quota.wait() == 1.0
    bucket.rate = 1000
    bucket.now += 0.1
    assert not bucket.quota.is_exceeded()


@pytest.mark.parametrize(
    ("text", "covered", "not_covered"),
    [
        ("", [], [(0, 1)]),
        ("*", [(0, 1), (7, 9)], []),
        ("0:1,0:2, 1:1", [(0, 1), (0, 2), (1, 1)], [(1, 2), (2, 0)]),
    ],
)
def test_the_list_names_partitions_and_brokers(
    text: str, covered: list[tuple[int, int]], not_covered: list[tuple[int, int]]
) -> None:
    config = Config().log_config({"leader.replication.throttled.replicas": text})
    replicas = config.leader_replication_throttled_replicas
    assert all(replicas.covers(*replica) for replica in covered)
    assert not any(replicas.covers(*replica) for replica in not_covered)
    assert throttled_replicas(str(replicas)) == replicas
    assert not LogConfig().leader_replication_throttled_replicas.covers(0, 0)


@pytest.mark.parametrize("text", ["0", "0:", ":1", "0:1;0:2", "a:b", "-1:2", "**"])
def test_a_list_of_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match="partition:broker"):
        Config().log_config({"follower.replication.throttled.replicas": text})
