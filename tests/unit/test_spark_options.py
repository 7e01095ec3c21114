"""Which options the Spark source takes, what they mean, and which it refuses in which words."""

import pytest
from pyspark_barnabas.options import (
    EARLIEST,
    LATEST,
    Limit,
    OptionError,
    check_options,
    parse_options,
)
from pyspark_barnabas.reading import StreamReader, stream_reader

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
REQUIRED = SERVERS | {"subscribe": "t"}


def test_options_in_any_case_as_spark_lowers_them():
    options = parse_options(
        REQUIRED | {"startingoffsets": '{"t": {"0": 3}}', "failOnDataLoss": "FALSE"}
    )
    assert options.starting == Limit("startingOffsets", {"t": {0: 3}})
    assert options.fail_on_data_loss is False
    assert options.topics == {"t": None}


def test_a_batch_is_all_there_is_and_a_stream_what_comes():
    batch, stream = parse_options(REQUIRED), parse_options(REQUIRED, "stream")
    assert (batch.starting.offsets, batch.ending.offsets) == (EARLIEST, LATEST)
    assert stream.starting.offsets == LATEST


def test_what_to_read():
    assert parse_options(SERVERS | {"subscribe": "a, b,"}).topics == {"a": None, "b": None}
    assert parse_options(SERVERS | {"assign": '{"a": [2, 0]}'}).topics == {"a": [0, 2]}
    pattern = parse_options(SERVERS | {"subscribePattern": "topic.*"})
    assert (pattern.topics, pattern.pattern) == ({}, "topic.*")


def test_the_most_specific_starting_point_comes_first():
    given = REQUIRED | {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"t": {"0": 1000}}',
    }
    assert parse_options(given).starting.timestamps == {"t": {0: 1000}}
    starting = parse_options(given | {"startingTimestamp": "2000"}).starting
    assert starting == Limit("startingTimestamp", timestamps=2000)


def test_what_a_timestamp_without_a_record_means():
    given = REQUIRED | {"startingTimestamp": "1", "endingTimestamp": "2"}
    options = parse_options(given)
    assert not options.starting.latest_if_unmatched
    assert options.ending.latest_if_unmatched
    latest = parse_options(given | {"startingOffsetsByTimestampStrategy": "LATEST"})
    assert latest.starting.latest_if_unmatched


def test_offsets_of_a_progress_report_are_offsets():
    reported = '{"t": {"0": 3}, "@barnabas": {"group.id": "g", "topic.ids": {"t": "x"}}}'
    options = parse_options(REQUIRED | {"startingOffsets": reported})
    assert options.starting.offsets == {"t": {0: 3}}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("15m", 900_000),
        ("15min", 900_000),
        ("30s", 30_000),
        ("500ms", 500),
        ("7", 7),
        ("2h", 7_200_000),
    ],
)
def test_times_have_units(text, milliseconds):
    options = parse_options(REQUIRED | {"maxTriggerDelay": text}, "stream")
    assert options.max_trigger_delay_ms == milliseconds


def test_settings_of_kafkas_consumer_reach_the_consumer():
    options = parse_options(
        REQUIRED
        | {
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.check.crcs": "false",
            "kafka.client.rack": "r1",
            "kafka.max.poll.records": "5",
            "kafka.security.protocol": "PLAINTEXT",
            "kafka.group.id": "mine",
        }
    )
    assert options.consumer == {
        "isolation_level": "read_committed",
        "max_partition_fetch_bytes": 1000,
        "check_crcs": False,
        "client_rack": "r1",
    }
    assert options.group_id == "mine"


def test_names_from_before_kafkas_names_still_work():
    options = parse_options(
        {
            "bootstrap.servers": "x:1",
            "subscribe": "t",
            "isolation.level": "read_committed",
            "pollTimeoutMs": "7",
        }
    )
    assert options.bootstrap_servers == "x:1"
    assert options.consumer == {"isolation_level": "read_committed"}
    assert options.poll_timeout_ms == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "t"}, r"kafka\.bootstrap\.servers is required"),
        (SERVERS, "exactly one of subscribe.* not none"),
        (REQUIRED | {"assign": "{}"}, "not assign and subscribe"),
        (REQUIRED | {"subscribePattern": "t"}, "exactly one"),
        (REQUIRED | {"startingOffsets": "latest"}, "startingOffsets of a batch cannot be 'latest'"),
        (REQUIRED | {"endingOffsets": "earliest"}, "endingOffsets of a batch cannot be 'earliest'"),
        (REQUIRED | {"startingOffsets": "soon"}, "neither"),
        (REQUIRED | {"startingOffsets": "[1]"}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": [1]}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": -3}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"1_0": 5}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 5, "00": 7}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": -1}}'}, "cannot be latest"),
        (REQUIRED | {"endingOffsets": '{"t": {"0": -2}}'}, "cannot be earliest"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 1.5}}'}, "neither"),
        (REQUIRED | {"startingTimestamp": "yesterday"}, "startingTimestamp must be a time in ms"),
        (REQUIRED | {"endingOffsetsByTimestamp": "7"}, "endingOffsetsByTimestamp is not JSON"),
        (REQUIRED | {"startingOffsetsByTimestampStrategy": "first"}, '"error" or "latest"'),
        (REQUIRED | {"minPartitions": "0"}, "minPartitions must be a whole number, 1 or more"),
        (REQUIRED | {"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be a whole"),
        (REQUIRED | {"failOnDataLoss": "maybe"}, "true or false"),
        (SERVERS | {"assign": "t"}, "JSON"),
        (SERVERS | {"assign": '{"t": []}'}, "no partition"),
        (SERVERS | {"assign": '{"t": [true]}'}, "JSON"),
        (SERVERS | {"subscribe": " ,"}, "names no topic"),
        (SERVERS | {"subscribePattern": r"\p{Alpha}"}, "Python's re module, which differs"),
        (REQUIRED | {"isolation.level": "serializable"}, r"kafka\.isolation\.level must be one of"),
        (REQUIRED | {"bootstrap.servers": "other:1"}, "contradict one another"),
        (REQUIRED | {"kafka.fetch.max.bytes": "5000000000"}, r"fetch\.max\.bytes must be in 1\.\."),
        (REQUIRED | {"groupIdPrefix": " "}, "groupIdPrefix is empty"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 5, "0": 7}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 5}, "t": {"1": 7}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"-1": 5}}'}, "neither"),
        (REQUIRED | {"startingOffsets": '{"t": {"0": 9223372036854775808}}'}, "neither"),
        (REQUIRED | {"startingOffsets": "[" * 100_000}, "neither"),
        (REQUIRED | {"startingTimestamp": "9223372036854775808"}, "must be a time in ms"),
        (REQUIRED | {"startingTimestamp": "9" * 5_000}, "must be a time in ms"),
        (REQUIRED | {"endingOffsetsByTimestamp": '{"t": {"0": 1e30}}'}, "is not JSON"),
        (REQUIRED | {"maxOffsetsPerTrigger": "9223372036854775808"}, "must be a whole number"),
        (REQUIRED | {"maxOffsetsPerTrigger": "9" * 5_000}, "must be a whole number"),
        (REQUIRED | {"maxTriggerDelay": "9" * 5_000}, "maxTriggerDelay must be a time"),
        (REQUIRED | {"kafkaConsumer.pollTimeoutMs": "2147483648"}, "must be 2147483647 or less"),
        (REQUIRED | {"minPartitions": "2147483648"}, "minPartitions must be 2147483647 or less"),
        (REQUIRED | {"kafka.bootstrap.servers": "a:x"}, r"kafka\.bootstrap\.servers: .*'a:x'"),
        (REQUIRED | {"kafka.bootstrap.servers": " "}, r"kafka\.bootstrap\.servers: "),
        (SERVERS | {"assign": '{"t": [-1]}'}, "assign is not JSON"),
        (SERVERS | {"assign": '{"t": [2147483648]}'}, "assign is not JSON"),
        (SERVERS | {"assign": '{"t": [0], "t": [1]}'}, "assign is not JSON"),
        (SERVERS | {"assign": '{"a b": [0]}'}, "assign: .*the topic name 'a b' has characters"),
        (SERVERS | {"subscribe": "a;b"}, "subscribe: .*the topic name 'a;b' has characters"),
        (SERVERS | {"subscribePattern": "[a-z&&[^bc]]"}, "Python's re module, which differs"),
        (SERVERS | {"subscribePattern": "a[[b]"}, "Python's re module, which differs"),
        (
            REQUIRED | {"pollTimeoutMs": "1", "kafkaConsumer.pollTimeoutMs": "2"},
            r"pollTimeoutMs and kafkaConsumer\.pollTimeoutMs contradict one another",
        ),
        (REQUIRED | {"maxTriggerDelay": "15 parsecs"}, "maxTriggerDelay must be a time"),
        (
            REQUIRED | {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "9"},
            r"minOffsetsPerTrigger \(10\) is above maxOffsetsPerTrigger \(9\)",
        ),
    ],
)
def test_bad_options_are_refused_by_name(options, words):
    with pytest.raises(OptionError, match=words):
        parse_options(options)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("startingOffset", "there is no option 'startingoffset'; did you mean 'startingOffsets'"),
        ("subscribepatern", "did you mean 'subscribePattern'"),
        ("group.id", r"did you mean 'kafka\.group\.id'"),
        ("kafka.fetch.max.byte", r"did you mean 'kafka\.fetch\.max\.bytes'"),
        ("kafka.zzz", r"there is no option 'kafka\.zzz'$"),
        ("topic", "an option of writing; subscribe says what to read"),
        ("kafka.auto.offset.reset", "startingOffsets says where a query starts"),
        ("kafka.key.deserializer", "with DataFrame operations"),
        ("kafka.value.deserializer", "with DataFrame operations"),
        ("kafka.enable.auto.commit", "Spark keeps the offsets"),
        ("kafka.interceptor.classes", "no Java"),
        ("kafka.sasl.mechanism", "plain-text listeners only"),
        ("kafka.security.protocol", "plain-text listeners only"),
        ("kafka.fetch.max.bytes", "must be a whole number"),
        ("kafka.check.crcs", "must be true or false"),
    ],
)
def test_names_are_suggested_or_refused_with_the_reason(name, words):
    with pytest.raises(OptionError, match=words):
        parse_options(REQUIRED | {name: "x"})


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name):
    with pytest.raises(OptionError, match=f"{name} is for batches"):
        parse_options(REQUIRED | {name: "latest"}, "stream")


def test_a_batch_ignores_the_limits_of_streams_with_a_warning(caplog):
    parse_options(REQUIRED | {"maxOffsetsPerTrigger": "10"})
    assert "maxOffsetsPerTrigger is for streams: a batch ignores it" in caplog.text


def test_before_pyspark_4_2_limits_are_refused(monkeypatch):
    monkeypatch.setattr(stream_reader, "ReadMaxRows", None)
    StreamReader(parse_options(REQUIRED, "stream"))
    with pytest.raises(OptionError, match="need PySpark 4.2"):
        StreamReader(parse_options(REQUIRED | {"maxOffsetsPerTrigger": "10"}, "stream"))


def test_what_load_checks_fits_batches_and_streams():
    check_options(REQUIRED | {"startingOffsets": "latest", "endingOffsets": "latest"})
    with pytest.raises(OptionError, match="did you mean"):
        check_options(REQUIRED | {"startingOffset": "latest"})
