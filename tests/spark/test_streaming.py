"""Reading streams is not offered: the refusal is a plain sentence."""

from pathlib import Path
from typing import Any

import pytest

SERVERS = {"bootstrap.servers": "localhost:1", "subscribe": "numbers"}


def test_a_stream_is_refused_with_a_sentence(spark: Any, tmp_path: Path):
    stream = spark.readStream.format("barnabas").options(**SERVERS).load()
    sink = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "point"))
    with pytest.raises(Exception) as failure:
        query = sink.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert "reads topics as batches only" in str(failure.value)
    assert "UnboundLocalError" not in str(failure.value)
