"""Makes the tasks of Spark's Python workers cheaper: a worker runs one task after the other."""

import gc
import os
import sys
from functools import cache
from zipimport import zipimporter

# glibc keeps up to twice as much freed memory as the largest block was, up to blocks of 32 MiB.
_LARGEST_BLOCK = 32 * 1024 * 1024 - 64 * 1024


@cache
def keep_freed_memory() -> None:
    """Let glibc keep the memory that a task frees, for its next blocks.

    Fetched data and its columns are blocks of some MB. If their memory went back to the kernel each
    time, page faults would take a fifth of a task. glibc learns from the blocks that are freed how
    much to keep: see M_MMAP_THRESHOLD in mallopt(3). This block is never written to, so it takes no
    memory itself.
    """
    bytes(_LARGEST_BLOCK)


def settle() -> None:
    """Take work off the tasks that follow; called where a task, or a step of planning, ends."""
    _freeze_imported()
    drop_finders()


@cache
def _freeze_imported() -> None:
    """What is imported now lives as long as the process. Spark runs the garbage collector after
    each task, which would look at all of it each time."""
    gc.collect()
    gc.freeze()


def drop_finders() -> None:
    """Drop Python's cached finders in the archives that Spark puts on the path of its workers.

    Each task begins with `importlib.invalidate_caches()`. Each finder in an archive then reads the
    archive's whole directory again, and there is a finder for each package: together 0.1 s a task.
    Python makes finders again when it needs them, from the directory that it has read. What is on
    PYTHONPATH does not change under a worker; files that are added to a job are not on it.
    """
    archives = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and finder.archive in archives:
            del sys.path_importer_cache[path]
