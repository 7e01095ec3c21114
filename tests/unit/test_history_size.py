"""500,000 acknowledged records are judged in a minute and in less than 1 GiB."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_WRITE_AND_JUDGE = """
import json, resource, sys, time
from pathlib import Path
from barnabas_common.history.checker import check
from barnabas_common.history.files import HistoryWriter, history_files, read_files
from barnabas_common.history.operations import FinalRead, Poll, Send, Stage

folder, count, partitions = Path(sys.argv[1]), int(sys.argv[2]), 12
values = {f"orders-{p}": [] for p in range(partitions)}
with HistoryWriter(folder / "producer.1.jsonl") as writer:
    for n in range(count):
        name = f"orders-{n % partitions}"
        fields = {"client": "producer", "number": n, "partition": name}
        fields["value"] = f"{name}-producer-1-{n:08}-0123abcd"
        writer.write(Send(time=4 * n, stage=Stage.INVOKE, **fields))
        writer.write(Send(time=4 * n + 2, offset=len(values[name]), **fields))
        values[name].append(fields["value"])
for client, kind in (("reader", Poll), ("judge", FinalRead)):
    with HistoryWriter(folder / f"{client}.1.jsonl") as writer:
        for name, all_values in values.items():
            for at in range(0, len(all_values), 500):
                got = list(enumerate(all_values[at : at + 500], at))
                writer.write(kind(time=4 * count, client=client, number=at, records={name: got}))
        if kind is FinalRead:
            bounds = {name: (0, len(each)) for name, each in values.items()}
            writer.write(FinalRead(time=4 * count, client=client, bounds=bounds))
del values
began = time.process_time()
judged = check(read_files(history_files(folder)))
print(json.dumps({
    "good": judged.good, "acknowledged": judged.acknowledged, "read": judged.read,
    "seconds": time.process_time() - began,
    "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


@pytest.mark.slow
def test_half_a_million_acknowledged_records(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITE_AND_JUDGE, str(tmp_path), "500000"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert told["good"]
    assert told["acknowledged"] == told["read"] == 500_000
    assert told["seconds"] < 60
    assert told["mib"] < 1024
