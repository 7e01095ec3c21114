"""A cluster of real processes for a test module, whose brokers must not stumble unseen.

A request that meets a mistake in a broker is answered with a failure, and clients send it again: a
test could pass over it. So the brokers' logs are searched for tracebacks at the end.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas_tools.local.cluster import LocalCluster


@contextmanager
def real_cluster(
    directory: Path, config: Mapping[str, str], brokers: int = 3
) -> Iterator[LocalCluster]:
    """A cluster that runs meanwhile; what a test kills it must restart."""
    with LocalCluster(directory, brokers=brokers, config=config) as cluster:
        yield cluster
    assert_no_traceback(cluster)


def assert_no_traceback(cluster: LocalCluster) -> None:
    """No broker has logged an exception that nobody expected."""
    for broker_id in cluster.broker_ids:
        log = cluster.broker(broker_id).log_file.read_text(errors="replace")
        before, found, after = log.partition("Traceback (most recent call last)")
        assert not found, f"broker {broker_id}:\n{before[-500:]}{found}{after[:4000]}"
