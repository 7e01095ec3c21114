"""What `barnabas doctor` says of an address, from what the network and the brokers answered."""

import pytest
from barnabas_common.runtime.network import ProbeResult
from barnabas_tools.cli.observe.doctor import Answer, Tried, diagnose

ADVERTISED = {1: "localhost:9092", 2: "localhost:9093"}


def answered(address: str, broker_id: int, cluster: str = "c", controller: int = 1) -> Tried:
    return Tried(address, ProbeResult.ANSWERED, Answer(broker_id, cluster, controller, ADVERTISED))


def results(*tried: Tried, bootstrap: str = "localhost:9092") -> dict[str, str]:
    rows = diagnose(bootstrap.split(","), {each.address: each for each in tried})
    return {f"{row['source']} {row['address']}": row["result"] for row in rows}


def test_every_address_answers() -> None:
    found = results(answered("localhost:9092", 1), answered("localhost:9093", 2))
    assert found == {
        "bootstrap localhost:9092": "ok",
        "advertised by broker 1 localhost:9092": "ok",
        "advertised by broker 2 localhost:9093": "ok",
    }


@pytest.mark.parametrize(
    "second, words",
    [
        (Tried("localhost:9093", ProbeResult.REFUSED), "nothing listens there; localhost is only"),
        (Tried("localhost:9093", ProbeResult.SILENT), "nothing listens there; localhost is only"),
        (Tried("localhost:9093", ProbeResult.ANSWERED, failure="HTTP"), "no broker answers (HTTP)"),
        (answered("localhost:9093", 1), "broker 1 answers, not broker 2"),
        (answered("localhost:9093", 2, cluster="d"), "a broker of another cluster answers"),
    ],
)
def test_a_wrong_advertised_address_is_named_with_its_broker(second: Tried, words: str) -> None:
    found = results(answered("localhost:9092", 1), second)
    result = found["advertised by broker 2 localhost:9093"]
    assert words in result and "advertised.listeners of broker 2" in result
    assert "\n" not in result
    assert found["advertised by broker 1 localhost:9092"] == "ok"


@pytest.mark.parametrize(
    "reached, words",
    [
        (ProbeResult.REFUSED, "nothing listens there; start the broker, or change"),
        (ProbeResult.SILENT, "no connection within 3 s; start the broker, or change"),
        (ProbeResult.FAILED, "the name broker1 is unknown here, or no route leads to it"),
    ],
)
def test_a_name_of_another_host(reached: ProbeResult, words: str) -> None:
    asked = Answer(1, "c", 1, {1: "broker1:9092"})
    found = results(
        Tried("localhost:9092", ProbeResult.ANSWERED, asked), Tried("broker1:9092", reached)
    )
    assert words in found["advertised by broker 1 broker1:9092"]


def test_bootstrap_addresses_of_two_clusters() -> None:
    both = "localhost:9092,localhost:9093"
    found = results(
        answered("localhost:9092", 1), answered("localhost:9093", 2, cluster="d"), bootstrap=both
    )
    assert "another cluster, d" in found["bootstrap localhost:9093"]


def test_without_a_controller() -> None:
    found = results(answered("localhost:9092", 1, controller=-1), answered("localhost:9093", 2))
    assert found["bootstrap localhost:9092"] == "the broker knows of no controller"


def test_when_no_broker_answers_the_bootstrap_address_is_all_there_is_to_say() -> None:
    found = results(Tried("localhost:9092", ProbeResult.REFUSED))
    assert found == {"bootstrap localhost:9092": "nothing listens there"}


def test_a_broker_that_does_not_know_another_yet() -> None:
    alone = Tried("localhost:9093", ProbeResult.ANSWERED, Answer(2, "c", 1, {2: "localhost:9093"}))
    both = "localhost:9092,localhost:9093"
    found = results(answered("localhost:9092", 1), alone, bootstrap=both)
    assert found["bootstrap localhost:9093"] == "the broker does not know broker 1"
