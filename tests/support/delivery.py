"""The judge of a run; it lives with the simulator, whose campaigns use it too."""

from barnabas_simulator.delivery import History, Verdict, judge

__all__ = ["History", "Verdict", "judge"]
