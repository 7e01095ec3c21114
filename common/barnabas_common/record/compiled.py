"""The compiled record codec: aiokafka's, built with Cython, many times faster than a Python loop.

Nothing else of aiokafka is used. If it has no compiled part (on a platform without a binary wheel,
on PyPy, or with AIOKAFKA_NO_EXTENSIONS set), its Python implementation is used. That is slow, and
one warning says so.
"""

import warnings

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from barnabas_common.record.batch import Buffer

__all__ = [
    "IS_COMPILED",
    "MALFORMED",
    "CorruptRecordException",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "guarded",
]

MALFORMED = (CorruptRecordException, ValueError, OverflowError, MemoryError, SystemError)
"""The errors that the decoder raises if lengths inside the records are invalid."""

_GUARD = bytes(128)
"""More bytes than the decoder reads of one record without checking where the batch ends."""

IS_COMPILED = all(
    "_crecords" in part.__module__ for part in (DefaultRecordBatch, DefaultRecordBatchBuilder)
)
"""Whether records are packed and unpacked by compiled code."""

if not IS_COMPILED:
    warnings.warn(
        "the installed aiokafka has no compiled record codec: producing and consuming will be"
        " many times slower; install its binary wheel and unset AIOKAFKA_NO_EXTENSIONS",
        RuntimeWarning,
        stacklevel=2,
    )


def guarded(batch: Buffer) -> memoryview:
    """A copy of `batch` that is safe for the compiled decoder, whatever it contains.

    The decoder reads the lengths inside a record without checking where the batch ends. At the end
    of a mapped page that would end the process. So zeros follow the copy; the decoder rejects them
    as a malformed record.
    """
    return memoryview(b"".join((batch, _GUARD)))[: len(batch)]
