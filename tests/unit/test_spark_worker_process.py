"""What the data source does to make a worker's next task faster, and what it must leave alone."""

import importlib
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark_barnabas.worker_process import drop_finders

PAGE = 4096
BLOCK = 4 * 1024 * 1024


def archive(path: Path, package: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name in ("__init__", "first", "second"):
            file.writestr(f"{package}/{name}.py", f"NAME = {name!r}\n")
    return str(path)


def finders(path: str) -> list[str]:
    return [where for where in sys.path_importer_cache if where.startswith(path)]


def test_finders_in_spark_s_archives_are_dropped_and_imports_still_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_spark = archive(tmp_path / "spark.zip", "of_spark")
    of_job = archive(tmp_path / "job.zip", "of_job")
    monkeypatch.setenv("PYTHONPATH", f"/nowhere:{of_spark}")
    monkeypatch.syspath_prepend(of_spark)
    monkeypatch.syspath_prepend(of_job)
    importlib.import_module("of_spark.first")
    importlib.import_module("of_job.first")
    of_job_before = finders(of_job)
    assert len(finders(of_spark)) == 2 == len(of_job_before)

    drop_finders()
    assert finders(of_spark) == []
    assert finders(of_job) == of_job_before

    importlib.invalidate_caches()
    assert importlib.import_module("of_spark.second").NAME == "second"
    # A job's archive that was replaced is read again, as Spark wants it.
    Path(of_job).unlink()
    with zipfile.ZipFile(of_job, "w") as file:
        file.writestr("of_job/third.py", "NAME = 'third'\n")
    importlib.invalidate_caches()
    assert importlib.import_module("of_job.third").NAME == "third"


def in_a_process(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc learns")
def test_blocks_that_are_allocated_again_cost_no_page_faults() -> None:
    code = f"""
import resource
from pyspark_barnabas.worker_process import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * {BLOCK} for _ in range(8)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
keep_freed_memory()
print(faults(), faults())
"""
    first, again = in_a_process(code)
    assert first >= 8 * BLOCK // PAGE // 2
    assert again < first // 10


def test_what_is_imported_is_looked_at_by_the_collector_only_once() -> None:
    code = """
import gc
import pyspark_barnabas
from pyspark_barnabas.worker_process import settle
before = len(gc.get_objects())
settle()
frozen = gc.get_freeze_count()
cycle = []
cycle.append(cycle)
settle()
print(before, frozen, gc.get_freeze_count() - frozen, len(gc.get_objects()))
"""
    before, frozen, again, left = in_a_process(code)
    assert frozen > before // 2
    assert again <= 0
    assert left < 1000
