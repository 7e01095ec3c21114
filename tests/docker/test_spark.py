"""The PySpark job of the compose file reads what the host has written."""

from collections.abc import Iterator

import pytest
from barnabas import Producer
from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster
from barnabas_tools.chaos.faults.errors import FaultError

from tests.support.cluster_state import create_topic
from tests.support.compose import BOOTSTRAP, running

pytestmark = [pytest.mark.docker, pytest.mark.slow]  # the image needs minutes

RUN = ("--profile", "spark", "run", "--rm", "-T", "spark")


@pytest.fixture(scope="module")
def compose() -> Iterator[ComposeCluster]:
    with running() as cluster:
        cluster.compose("--profile", "spark", "build", "spark")
        yield cluster


async def test_the_job_counts_the_records_of_each_partition(compose: ComposeCluster) -> None:
    await create_topic(BOOTSTRAP, "counted", 2)
    async with Producer(bootstrap_servers=BOOTSTRAP, acks="all") as producer:
        for number in range(300):
            await producer.send("counted", b"%d" % number, partition=int(number >= 100))
    output = compose.compose(*RUN, "counted")
    rows = [line.replace(" ", "") for line in output.splitlines() if line.startswith("|")]
    assert rows == ["|partition|records|first|last|", "|0|100|0|99|", "|1|200|0|199|"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("missing",), "error: .*missing.*does not exist|UNKNOWN_TOPIC_OR_PARTITION"),
        ((), "required: TOPIC"),
    ],
)
def test_what_the_job_cannot_do_is_told_in_one_line(
    compose: ComposeCluster, arguments: tuple[str, ...], told: str
) -> None:
    with pytest.raises(FaultError, match=told) as caught:
        compose.compose(*RUN, *arguments)
    assert "Traceback" not in str(caught.value)
