"""Small histories, each with planted anomalies, and the operations that prove them.

A module adds its cases to `CASES` when it is imported.
"""

from tests.support.history_cases import clean, groups, reads, writes
from tests.support.history_cases.story import CASES, P, Story

__all__ = ["CASES", "P", "Story", "clean", "groups", "reads", "writes"]
