"""What a checkpoint decides: the first batch after a restart, and whose checkpoint it is."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.support import Kept, places, produce, read_what_there_is, stream
from tests.support.cluster_state import create_topic

pytestmark = pytest.mark.spark


class Failing(Kept):
    """Fails when it has seen the batch, as a driver that dies before the batch is done."""

    def __call__(self, batch: Any, number: int) -> None:
        super().__call__(batch, number)
        raise RuntimeError("planted")


def test_the_first_batch_of_a_restarted_query_is_the_same(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "begun", 2))
    run.run(produce(bootstrap, "begun", 10, partitions=2))
    frame = stream(spark, bootstrap, "begun", startingOffsets="latest", maxOffsetsPerTrigger="4")
    stored = []

    class Late(Failing):
        def __call__(self, batch: Any, number: int) -> None:
            stored.extend(run.run(produce(bootstrap, "begun", 10, start=10, partitions=2)))
            super().__call__(batch, number)

    late = Late()
    with pytest.raises(Exception, match="planted"):
        late.query(frame, tmp_path).start().awaitTermination()
    kept = read_what_there_is(frame, tmp_path)
    assert kept.batches[0] == late.batches[0]
    assert kept.all == places(stored)


def test_the_checkpoint_of_kafkas_source_is_refused(
    spark: Any, cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
):
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, "kafkas", 1))
    run.run(produce(bootstrap, "kafkas", 10, partitions=1))
    frame = stream(spark, bootstrap, "kafkas")
    read_what_there_is(frame, tmp_path)
    for written in (tmp_path / "offsets").glob("[0-9]*"):
        *lines, position = written.read_text().splitlines()
        found = json.loads(position)
        del found["@barnabas"]
        written.write_text("\n".join([*lines, json.dumps(found)]))
    for crc in (tmp_path / "offsets").glob(".*.crc"):
        crc.unlink()
    with pytest.raises(Exception, match="not one of a stream with format.*checkpointLocation"):
        read_what_there_is(frame, tmp_path)
