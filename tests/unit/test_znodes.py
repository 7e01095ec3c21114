"""The znodes: Kafka's own JSON is read and written; anything else is one clear error."""

import contextlib
import json
from dataclasses import replace

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import RECOVERING, UNKNOWN, LeaderAndIsr
from barnabas_controller.store.znodes import Broker, Endpoint, ReplicaAssignment, TopicZnode
from hypothesis import given
from hypothesis import strategies as st

FLIGHTS_3 = TopicPartition("flights", 3)

# As Kafka 3.8 leaves them in ZooKeeper.
KAFKA_BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT",'
    b'"REPL":"PLAINTEXT"},"endpoints":["PLAINTEXT://h1:9092","REPL://h1:9093"],"jmx_port":-1,'
    b'"port":9092,"host":"h1","version":5,"timestamp":"1720000000000","rack":"r1"}'
)
KAFKA_TOPIC = (
    b'{"removing_replicas":{},"partitions":{"0":[1,2,3],"1":[2,3,1]},'
    b'"topic_id":"sXCiEJqkRXeMaC2eEeD7Jg","adding_replicas":{},"version":3}'
)
KAFKA_STATE = b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":7,"isr":[1,2]}'
KAFKA_CONTROLLER = (
    b'{"version":2,"brokerid":1,"timestamp":"1720000000000","kraftControllerEpoch":-1}'
)


def test_a_broker_is_written_as_kafka_writes_it() -> None:
    endpoints = (Endpoint("PLAINTEXT", "h1", 9092), Endpoint("REPL", "h1", 9093))
    broker = Broker(1, endpoints, "r1")
    assert znodes.encode_broker(broker, 1_720_000_000_000) == KAFKA_BROKER
    assert znodes.decode_broker(1, KAFKA_BROKER, epoch=42) == broker.registered(42)


def test_a_topic_is_written_as_kafka_writes_it() -> None:
    topic = TopicZnode(
        "sXCiEJqkRXeMaC2eEeD7Jg",
        {0: ReplicaAssignment((1, 2, 3)), 1: ReplicaAssignment((2, 3, 1))},
    )
    assert znodes.encode_topic(topic) == KAFKA_TOPIC
    assert znodes.decode_topic("flights", KAFKA_TOPIC) == topic


def test_a_state_is_written_as_kafka_writes_it() -> None:
    state = LeaderAndIsr(1, 7, (1, 2), 3, partition_epoch=5)
    assert znodes.encode_state(state) == KAFKA_STATE
    assert znodes.decode_state(FLIGHTS_3, KAFKA_STATE, version=5) == state


def test_a_recovering_state_says_so() -> None:
    state = LeaderAndIsr(1, 7, (1,), 3, 0, RECOVERING)
    data = znodes.encode_state(state)
    assert json.loads(data)["leader_recovery_state"] == 1
    assert znodes.decode_state(FLIGHTS_3, data, 0) == state


def test_the_controller_and_its_epoch_are_written_as_kafka_writes_them() -> None:
    assert znodes.encode_controller(1, 1_720_000_000_000) == KAFKA_CONTROLLER
    assert znodes.decode_controller(KAFKA_CONTROLLER) == 1
    assert znodes.encode_controller_epoch(3) == b"3"
    assert znodes.decode_controller_epoch(b"3") == 3


def test_the_cluster_id_has_a_version_that_is_a_string() -> None:
    data = znodes.encode_cluster_id("sXCiEJqkRXeMaC2eEeD7Jg")
    assert data == b'{"version":"1","id":"sXCiEJqkRXeMaC2eEeD7Jg"}'
    assert znodes.decode_cluster_id(data) == "sXCiEJqkRXeMaC2eEeD7Jg"


def test_a_configuration_round_trips_and_no_data_means_none() -> None:
    data = znodes.encode_config({"retention.ms": "1000"})
    assert data == b'{"version":1,"config":{"retention.ms":"1000"}}'
    assert znodes.decode_config("/config/topics/t", data) == {"retention.ms": "1000"}
    assert znodes.decode_config("/config/topics/t", b"") == {}


@pytest.mark.parametrize(
    ("data", "since"),
    [
        (znodes.encode_config({}), 70),
        (znodes.encode_config({}, minimum_since=58), 58),
        (znodes.encode_config({}, minimum_since=0), 0),
        (znodes.encode_config({}, minimum_since=90), 70),
        (b'{"version":1,"config":{},"minimum_since":"58"}', 70),
        (b"", 70),
    ],
    ids=["Kafka's", "an earlier one", "none", "another ZooKeeper's", "malformed", "no data"],
)
def test_the_minimum_is_as_old_as_its_last_change(data: bytes, since: int) -> None:
    """Unless that is not known: then it is as old as the last write, 70."""
    assert znodes.decode_minimum_since("/config/topics/t", data, written_at=70) == since


@pytest.mark.parametrize(
    "data",
    [
        b'{"version":1,"partitions":{"0":[1,2]}}',
        b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}',
    ],
)
def test_a_topic_of_an_older_version_has_no_id(data: bytes) -> None:
    assert znodes.decode_topic("t", data) == TopicZnode(None, {0: ReplicaAssignment((1, 2))})


def test_a_reassignment_in_progress_survives_reading_and_writing() -> None:
    data = (
        b'{"version":3,"topic_id":"x","partitions":{"0":[4,1]},'
        b'"adding_replicas":{"0":[4]},"removing_replicas":{"0":[1]}}'
    )
    topic = znodes.decode_topic("t", data)
    assert topic.partitions[0] == ReplicaAssignment((4, 1), (4,), (1,))
    assert json.loads(znodes.encode_topic(topic)) == json.loads(data)


def test_a_broker_of_version_1_has_one_plaintext_endpoint() -> None:
    data = b'{"version":1,"host":"h1","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert znodes.decode_broker(1, data).endpoints == (Endpoint("PLAINTEXT", "h1", 9092),)


def test_an_ipv6_endpoint_round_trips() -> None:
    broker = Broker(1, (Endpoint("PLAINTEXT", "::1", 9092),))
    assert znodes.decode_broker(1, znodes.encode_broker(broker, 0)) == broker


MALFORMED_TOPICS = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"3",
    b"{}",
    b"[" * 100_000,
    b'{"partitions":[]}',
    b'{"partitions":{"0":"1,2"}}',
    b'{"partitions":{"zero":[1]}}',
    b'{"partitions":{"-1":[1]}}',
    b'{"partitions":{"0":[]}}',
    b'{"partitions":{"0":[1,1]}}',
    b'{"partitions":{"0":[-1]}}',
    b'{"partitions":{"0":[true]}}',
    b'{"partitions":{"0":[1.5]}}',
    b'{"partitions":{"0":["1"]}}',
    b'{"partitions":{"0":[1]},"topic_id":7}',
    b'{"partitions":{"0":[1]},"adding_replicas":3}',
]


@pytest.mark.parametrize("data", MALFORMED_TOPICS)
def test_a_malformed_topic_is_one_error_that_names_the_path(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/brokers/topics/flights"):
        znodes.decode_topic("flights", data)


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[]}',
        b'{"leader":"1","leader_epoch":0,"controller_epoch":1,"isr":[1]}',
        b'{"leader":1,"leader_epoch":0,"isr":[1]}',
    ],
)
def test_a_malformed_state_is_one_error(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/brokers/topics/flights/partitions/3/state"):
        znodes.decode_state(FLIGHTS_3, data, 0)


@pytest.mark.parametrize(
    "data",
    [
        b'{"endpoints":["h1:9092"]}',
        b'{"endpoints":["PLAINTEXT://h1"]}',
        b'{"endpoints":[7]}',
        b'{"endpoints":["://h1:9092"]}',
        b'{"host":"h1"}',
    ],
)
def test_a_malformed_broker_is_one_error(data: bytes) -> None:
    with pytest.raises(MalformedZnode, match="/brokers/ids/1"):
        znodes.decode_broker(1, data)


@pytest.mark.parametrize("data", [b"", b"x", b"-1", b"1.5", "٣".encode()])
def test_a_controller_epoch_that_is_no_number_is_an_error(data: bytes) -> None:
    with pytest.raises(MalformedZnode):
        znodes.decode_controller_epoch(data)


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_else(data: bytes) -> None:
    for decode in (
        lambda: znodes.decode_topic("t", data),
        lambda: znodes.decode_broker(1, data),
        lambda: znodes.decode_state(FLIGHTS_3, data, 0),
        lambda: znodes.decode_controller(data),
        lambda: znodes.decode_config("/config/topics/t", data),
        lambda: znodes.decode_cluster_id(data),
    ):
        with contextlib.suppress(MalformedZnode):
            decode()


assignments = st.dictionaries(
    st.integers(0, 30),
    st.builds(
        ReplicaAssignment,
        st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple),
    ),
)


@given(st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,22}", fullmatch=True), assignments)
def test_any_topic_round_trips(
    topic_id: str | None, partitions: dict[int, ReplicaAssignment]
) -> None:
    topic = TopicZnode(topic_id, partitions)
    assert znodes.decode_topic("t", znodes.encode_topic(topic)) == topic


def test_the_account_of_who_has_everything_survives_the_znode() -> None:
    """It is absent where it would be empty, so that Kafka's own znodes stay as they are."""
    tp = TopicPartition("t", 0)
    plain = LeaderAndIsr(1, 0, (1,), 1)
    assert b"eligible" not in znodes.encode_state(plain)
    kept = replace(
        plain,
        eligible=(2, 3),
        eligible_under=2**40,
        proved_at={1: 17, 2: 18},
        newest_proof=2**40,
        durable=True,
    )
    assert znodes.decode_state(tp, znodes.encode_state(kept), 0) == kept
    assert json.loads(znodes.encode_state(kept))["eligible_under"] == 2**40
    known = [znodes.decode_state(tp, znodes.encode_state(kept), 0, at) for at in (2**40, 2**40 - 1)]
    assert [one.newest_proof for one in known] == [2**40, UNKNOWN], "of another ZooKeeper"
    huge = b'"proved_at":{"%s":1}' % (b"9" * 5000)
    for wrong in (b'"eligible":2', b'"proved_at":{"x":1}', huge, b'"proved_at":[]', b'"durable":1'):
        text = znodes.encode_state(plain)[:-1] + b"," + wrong + b"}"
        with pytest.raises(MalformedZnode):
            znodes.decode_state(tp, text, 0)


@pytest.mark.parametrize("epoch", [17, 2**32 + 17, 2**63 - 2])
def test_a_registration_tells_since_when_nothing_was_lost(epoch: int) -> None:
    """Zxids of an ensemble exceed 32 bits from the first on."""
    broker = znodes.Broker(1, (znodes.Endpoint("A", "h", 1),), None, epoch + 1, epoch, True)
    decoded = znodes.decode_broker(1, znodes.encode_broker(broker, 0), epoch + 1)
    assert decoded == broker and decoded.lost_nothing_since == epoch
    kafkas = znodes.decode_broker(
        1, znodes.encode_broker(replace(broker, unbroken_since=-1), 0), 40
    )
    assert kafkas.lost_nothing_since == 40
