"""Offsets as runs of successive ones: a few numbers for a million records."""

from bisect import bisect_right


class Runs:
    """A set of offsets, cheap if most are added in order."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int]] = []
        self._open: tuple[int, int] | None = None

    def add(self, first: int, last: int | None = None) -> None:
        """Add the offsets from `first` to `last`, both included."""
        last = first if last is None else last
        if self._open is None:
            self._open = (first, last)
        elif first == self._open[1] + 1:
            self._open = (self._open[0], last)
        else:
            self._runs.append(self._open)
            self._open = (first, last)

    def __contains__(self, offset: int) -> bool:
        runs = self._merged()
        at = bisect_right(runs, (offset, float("inf"))) - 1
        return at >= 0 and runs[at][0] <= offset <= runs[at][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._merged())

    def _merged(self) -> list[tuple[int, int]]:
        if self._open is None:
            return self._runs
        found: list[tuple[int, int]] = []
        for first, last in sorted([*self._runs, self._open]):
            if found and first <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], last))
            else:
                found.append((first, last))
        self._runs, self._open = found, None
        return found
