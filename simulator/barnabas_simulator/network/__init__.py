"""A network in memory, with the faults of a real one."""

from barnabas_simulator.network.links import NetworkConditions
from barnabas_simulator.network.network import MemoryNetwork

__all__ = ["MemoryNetwork", "NetworkConditions"]
