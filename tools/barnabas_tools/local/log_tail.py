"""The end of a growing text file, and what is appended to it."""

import os
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from pathlib import Path

_POLL_SECONDS = 0.2


def last_lines(path: Path, count: int | None) -> tuple[str, int]:
    """Return the last `count` lines, all if None, and the position after them."""
    content = path.read_bytes()
    text = content.decode(errors="replace")
    if count is not None:
        kept = text.splitlines(keepends=True)
        text = "".join(kept[len(kept) - count :]) if count < len(kept) else text
    return text, len(content)


def follow_file(
    path: Path, position: int, waiting: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """Yield what is appended after `position`, forever; starts again if the file was replaced.

    Calls `waiting` again and again while there is nothing new.
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    while True:
        size = os.stat(path).st_size if path.exists() else 0
        if size < position:
            position = 0
            decoder.reset()
        if size > position:
            with path.open("rb") as file:
                file.seek(position)
                content = file.read(size - position)
            position += len(content)
            yield decoder.decode(content)
        else:
            waiting()
            time.sleep(_POLL_SECONDS)
