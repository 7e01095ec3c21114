"""An in-memory ZooKeeper, with the faults of a real one."""

from barnabas_simulator.zookeeper.server import MemoryClient, MemoryZooKeeper

__all__ = ["MemoryClient", "MemoryZooKeeper"]
