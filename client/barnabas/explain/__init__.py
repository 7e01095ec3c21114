"""Why a partition is as it is, in sentences: from the brokers' states and their events."""

from barnabas.explain.explanation import About, Explanation, Sentence
from barnabas.explain.reasoning import explain
from barnabas.explain.view import PartitionView

__all__ = ["About", "Explanation", "PartitionView", "Sentence", "explain"]
