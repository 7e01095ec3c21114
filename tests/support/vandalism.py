"""One file of a data directory changes while its broker is down, in a random way."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.support import log_files

LEFT_ALONE = ("meta.properties",)
"""A broker with a wrong identity does not start, and says so."""

Damage = Callable[[Random, Path], str]


def damage_a_file(random: Random, data: Path) -> str:
    """Damage one file of a data directory; returns which, and how.

    Four of ten times it is a segment with records, and else one of four times a checkpoint.
    """
    files = [path for path in sorted(data.rglob("*")) if is_file(path)]
    segments = [path for path in files if path.suffix == ".log" and path.stat().st_size]
    checkpoints = [path for path in files if path.parent == data]
    chosen = random.choice(checkpoints if random.random() < 0.25 else files)
    if random.random() < 0.4:
        chosen = random.choice(segments)
    how = random.choice(WAYS)
    return f"{chosen.relative_to(data)}: {how(random, chosen)}"


def is_file(path: Path) -> bool:
    return path.is_file() and path.name not in LEFT_ALONE and not path.name.startswith(".lock")


def _change(file: Path, change: Callable[[bytearray], None]) -> None:
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)


def flip(random: Random, file: Path) -> str:
    size = file.stat().st_size
    if not size:
        return "is empty"
    place, bit = random.randrange(size), 1 << random.randrange(8)

    def change(content: bytearray) -> None:
        content[place] ^= bit

    _change(file, change)
    return f"a bit of byte {place} of {size} flipped"


def shorten(random: Random, file: Path) -> str:
    size = file.stat().st_size
    left = random.randrange(size + 1)
    os.truncate(file, left)
    return f"{left} of {size} bytes left"


def fill_with_zeros(random: Random, file: Path) -> str:
    size = file.stat().st_size
    first = random.randrange(size + 1)

    def change(content: bytearray) -> None:
        content[first:] = bytes(size - first)

    _change(file, change)
    return f"zeros from byte {first} of {size} on"


def lose_the_middle(random: Random, file: Path) -> str:
    first, count = random.randrange(file.stat().st_size + 1), random.randrange(1, 200)

    def change(content: bytearray) -> None:
        del content[first : first + count]

    _change(file, change)
    return f"{count} bytes from {first} on removed"


def append_garbage(random: Random, file: Path) -> str:
    garbage = random.randbytes(random.choice([1, 50, 500]))
    log_files.append(file, garbage)
    return f"{len(garbage)} random bytes appended"


def remove(_: Random, file: Path) -> str:
    file.unlink()
    return "removed"


def remove_the_folder(_: Random, file: Path) -> str:
    if not file.parent.name[-1].isdigit():
        return "left alone"  # not a partition's folder
    log_files.remove(file.parent)
    return "removed with its folder"


def take_another_ones_content(random: Random, file: Path) -> str:
    if file.suffix == ".log":
        return "left alone"  # whole batches of another partition: nobody could notice that
    of_its_kind = [
        path
        for path in sorted(file.parents[1].rglob(f"*{file.suffix}"))
        if is_file(path) and path != file
    ]
    if not of_its_kind:
        return "left alone"
    other = random.choice(of_its_kind)
    shutil.copyfile(other, file)
    return f"has the content of {other.parent.name}/{other.name}"


def copy_under_another_offset(random: Random, file: Path) -> str:
    if not file.stem.isdigit():
        return "left alone"
    name = f"{int(file.stem) + random.choice([1, 7, 100_000]):020}{file.suffix}"
    shutil.copyfile(file, file.with_name(name))
    return f"copied to {name}"


WAYS: list[Damage] = [
    flip,
    flip,
    shorten,
    fill_with_zeros,
    lose_the_middle,
    append_garbage,
    remove,
    remove_the_folder,
    take_another_ones_content,
    copy_under_another_offset,
]
