"""The compiled record codec: aiokafka's, built with Cython, many times faster than a Python loop.

Nothing else of aiokafka is used. Where its wheel has no compiled part (an exotic platform, PyPy, or
AIOKAFKA_NO_EXTENSIONS is set), its Python twin takes over: all works, slowly, and one warning
says so.
"""

import warnings

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

__all__ = [
    "IS_COMPILED",
    "CorruptRecordException",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
]

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
