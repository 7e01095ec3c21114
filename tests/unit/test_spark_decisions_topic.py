"""Which topic cannot keep the decisions of the exactly-once sink, and which records are none."""

from typing import Any

import pytest
from barnabas import PreparedTransaction
from barnabas_common.messages.metadata import PartitionMetadata, TopicMetadata
from pyspark_barnabas.options import OptionError
from pyspark_barnabas.writing.decisions_topic import Safety, faults
from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import parse_write_options
from pyspark_barnabas.writing.records import (
    JobState,
    Slot,
    apply,
    claim_record,
    retired_claim,
    transactional_id,
)

GOOD = {
    "cleanup.policy": "compact",
    "min.insync.replicas": "2",
    "min.compaction.lag.ms": "3600000",
}
BATCH = Batch("query", 7, "run")
SLOT = Slot("run", 2, 0)


def faults_of(partitions: int = 16, replicas: int = 3, **changed: str) -> list[str]:
    listed = [PartitionMetadata(p, replicas=list(range(replicas))) for p in range(partitions)]
    configs = GOOD | {name.replace("_", "."): value for name, value in changed.items()}
    return faults(TopicMetadata("decisions", partitions=listed), configs, Safety(3, 2))


@pytest.mark.parametrize("partitions", [16, 17, 64])
def test_the_sinks_own_topic_is_fit_also_with_partitions_that_were_added(partitions: int):
    assert faults_of(partitions) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"partitions": 3}, "it has 3 partitions and needs 16"),
        ({"replicas": 2}, "it has 2 replicas and needs 3"),
        ({"min_insync_replicas": "1"}, "its min.insync.replicas is 1 and must be 2 or more"),
        ({"min_insync_replicas": "4"}, "its min.insync.replicas is 4, more than its 3 replicas"),
        ({"cleanup_policy": "delete"}, "its cleanup.policy is delete and must be compact"),
        (
            {"cleanup_policy": "compact,delete"},
            "its cleanup.policy is compact,delete and must be compact",
        ),
        (
            {"min_compaction_lag_ms": "0"},
            "its min.compaction.lag.ms is 0 and must be 3600000 or more",
        ),
    ],
)
def test_a_topic_that_may_lose_decisions_says_why(given: Any, words: str):
    assert faults_of(**given) == [words]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'"ab"', b"{}"),
        (b"5", b"{}"),
        (b"[" * 100_000, b"{}"),
        (b"\xff", b"{}"),
        (b'["decision",7]', b"{}"),
        (b'["decision",["query"]]', b"{}"),
        (b'["decision","query"]', b"[]"),
        (b'["decision","query"]', b'{"batch":"7","run":"r","commit":true,"transactions":[]}'),
        (b'["decision","query"]', b'{"batch":7,"run":"r","commit":"no","transactions":[]}'),
        (b'["decision","query"]', b'{"batch":7,"run":"r","commit":true,"transactions":[["a",1]]}'),
        (
            b'["decision","query"]',
            b'{"batch":7,"run":"r","commit":true,"transactions":[["a","b",1]]}',
        ),
        (b'["claim","query","run"]', b'{"batch":7,"task":1,"prefix":"p"}'),
        (b'["claim","query","run",7]', b'{"batch":7,"task":1,"prefix":"p"}'),
        (b'["claim","query","run","0-x"]', b'{"batch":7,"task":1,"prefix":"p"}'),
        (b'["claim","query","run","0-0"]', b'{"batch":true,"task":1,"prefix":"p"}'),
        (b'["claim","query","run","0-0"]', b'{"batch":7,"task":1,"prefix":7}'),
    ],
)
def test_a_corrupt_record_is_refused_and_changes_nothing(key: bytes, value: bytes):
    states: dict[str, JobState] = {}
    with pytest.raises(ValueError):
        apply(states, key, value)
    assert states == {}


def test_a_claim_without_a_prefix_is_an_older_one():
    states: dict[str, JobState] = {}
    apply(states, b'["claim","query","run","2-0"]', b'{"batch":7,"task":11}')
    assert states["query"].claims[SLOT].prefix == "spark"


def test_a_transaction_without_a_claim_is_found():
    states: dict[str, JobState] = {}
    apply(states, *claim_record(Attempt(BATCH, 2, 11), SLOT, "p"))
    claimed = PreparedTransaction(transactional_id("p", "query", SLOT), 1, 0)
    other = PreparedTransaction("p-query-run-2-1", 1, 0)
    state = states["query"]
    assert state.unclaimed(BATCH, [claimed, other]) == [other]
    assert state.unclaimed(BATCH._replace(batch_id=8), [claimed]) == [claimed]
    apply(states, *retired_claim("query", SLOT, state.claims[SLOT]))
    assert state.unclaimed(BATCH, [claimed]) == [claimed]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decisionsTopic": "out"}, "decisionsTopic must be a topic of its own, not 'out'"),
        ({"decisionsTopic": "__consumer_offsets"}, "decisionsTopic must be a topic of its own"),
        ({"decisionsTopic": "my decisions"}, "decisionsTopic: .*characters other than"),
        ({"decisionsTopic": ""}, "decisionsTopic: .*the empty string is not a topic name"),
        ({"topic": ""}, "topic: .*the empty string is not a topic name"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_before_any_task_runs(options: Any, words: str):
    given = {"kafka.bootstrap.servers": "x:1", "topic": "out", "delivery": "exactly-once"}
    with pytest.raises(OptionError, match=words):
        parse_write_options(given | options, streaming=True)
