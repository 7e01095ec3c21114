"""The answer of a log to an append by its leader."""

from typing import NamedTuple


class Appended(NamedTuple):
    """The offsets of an append. `log_append_time_ms` is -1 unless the topic has LogAppendTime, or a
    retry is answered. `first_offset` is -1 if the first batches were appended earlier and others
    lie between."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
