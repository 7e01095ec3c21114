"""The records that `java/WriteSegments.java` writes, by number and by the same rule."""

from dataclasses import dataclass

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_BATCH = 10
RECORDS_PER_SEGMENT = 200
RECORDS = RECORDS_PER_SEGMENT * len(CODECS)
START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Expected:
    """Record number `offset`."""

    offset: int

    @property
    def timestamp(self) -> int:
        return START_MS + self.offset

    @property
    def key(self) -> bytes | None:
        return None if self.offset % 7 == 0 else b"key-%d" % self.offset

    @property
    def value(self) -> bytes | None:
        return None if self.offset % 11 == 0 else b"value-%d " % self.offset * (self.offset % 50)

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        return [] if self.offset % 3 == 0 else [("number", b"%d" % self.offset)]

    @property
    def leader_epoch(self) -> int:
        return self.offset // RECORDS_PER_SEGMENT
