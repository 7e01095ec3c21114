"""Errors of a file name the file, even if the call had only a descriptor."""

import errno
import os
from pathlib import Path

import pytest
from barnabas_broker.disk.disk import FlushFailed
from barnabas_broker.disk.posix_disk import PosixDisk


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_named_by_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "segment")
    file = PosixDisk().open(path, create=True)
    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(OSError, match="No space left on device") as failure:
        file.append([b"records"])
    assert failure.value.filename == path and path in str(failure.value)


def test_a_failed_flush_is_named_by_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = PosixDisk(), str(tmp_path / "segment")
    file = disk.open(path, create=True)
    monkeypatch.setattr(os, "fsync", full)
    for _ in range(2):
        with pytest.raises(FlushFailed) as failure:
            file.flush()
        assert failure.value.filename == path
    with pytest.raises(FlushFailed) as failure:
        disk.write_file(str(tmp_path / "meta.properties"), b"1")
    assert failure.value.filename == str(tmp_path / "meta.properties.tmp")
