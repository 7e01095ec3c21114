"""Writing is not offered: the refusal is a plain sentence."""

from pathlib import Path
from typing import Any

import pytest

SERVERS = {"bootstrap.servers": "localhost:1", "subscribe": "numbers"}


def test_writing_a_stream_is_refused_with_a_sentence(spark: Any, tmp_path: Path):
    rates = spark.readStream.format("rate").load()
    sink = rates.writeStream.format("barnabas").option("checkpointLocation", str(tmp_path / "p"))
    with pytest.raises(Exception) as failure:
        query = sink.options(**SERVERS).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert "to write records use barnabas.Producer" in str(failure.value)


def test_writing_a_batch_is_refused_with_a_sentence(spark: Any):
    with pytest.raises(Exception) as failure:
        spark.range(1).write.format("barnabas").mode("append").options(**SERVERS).save()
    assert "to write records use barnabas.Producer" in str(failure.value)
