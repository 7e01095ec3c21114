"""A cluster of real processes for a test module, whose brokers must not fail unnoticed.

A broker answers a request that runs into a bug with an error, and clients send it again, so that a
test might pass nevertheless. Therefore the brokers' logs are searched for tracebacks at the end.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas_tools.local.cluster import LocalCluster


@contextmanager
def real_cluster(
    directory: Path, config: Mapping[str, str], brokers: int = 3
) -> Iterator[LocalCluster]:
    """Run a cluster for the block; a test must restart the brokers that it kills."""
    with LocalCluster(directory, brokers=brokers, config=config) as cluster:
        yield cluster
    assert_no_traceback(cluster)


def assert_no_traceback(cluster: LocalCluster) -> None:
    """Assert that no broker has logged an unexpected exception."""
    for broker_id in cluster.broker_ids:
        log = cluster.broker(broker_id).log_file.read_text(errors="replace")
        before, found, after = log.partition("Traceback (most recent call last)")
        assert not found, f"broker {broker_id}:\n{before[-500:]}{found}{after[:4000]}"
