"""The invariants of replication and control, checked while a simulation runs.

I1 to I12 and I18 to I25 are safety, checked after every step or sampled; L1 to L9 are liveness,
checked once faults have stopped. `Invariants` is the checker; each rule names its source.
"""

from barnabas_simulator.invariants.checker import Invariants
from barnabas_simulator.invariants.truth import FaultBudget
from barnabas_simulator.invariants.violation import InvariantViolation

__all__ = ["FaultBudget", "InvariantViolation", "Invariants"]
