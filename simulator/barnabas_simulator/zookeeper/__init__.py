"""An in-memory ZooKeeper, with the faults of a real one."""

from barnabas_simulator.zookeeper.client import MemoryClient
from barnabas_simulator.zookeeper.server import MemoryZooKeeper

__all__ = ["MemoryClient", "MemoryZooKeeper"]
