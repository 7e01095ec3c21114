"""The check of a run's records; its code is in the simulator, whose campaigns use it too."""

from barnabas_simulator.delivery import History, Verdict, judge

__all__ = ["History", "Verdict", "judge"]
