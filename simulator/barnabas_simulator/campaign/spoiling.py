"""What somebody does to znodes with a tool of his own."""

import random

from barnabas_controller.znodes import CONFIG_CHANGES, DELETE_TOPICS

from barnabas_simulator.cluster import SimulatedCluster

DEFAULTS = "brokers/<default>"
NO_SETTINGS = b'{"version":1,"config":{}}'
BAD_SETTINGS = (b"{", b"7", b'{"version":1,"config":{"broker.id":"7"}}')


def spoil_settings(cluster: SimulatedCluster, chance: random.Random) -> None:
    """Those of all brokers cannot be understood, or not be followed, any more."""
    write_settings(cluster, chance.choice(BAD_SETTINGS))


def write_settings(cluster: SimulatedCluster, data: bytes = NO_SETTINGS) -> None:
    """The znode, and the notification for those who follow it."""
    cluster.zookeeper.put(f"/config/{DEFAULTS}", data)
    note = b'{"version":2,"entity_path":"%s"}' % DEFAULTS.encode()
    cluster.zookeeper.put(f"{CONFIG_CHANGES}/config_change_", note, sequential=True)


def wish_away(cluster: SimulatedCluster, topic: str) -> None:
    """Ask for a topic's deletion past the brokers, which may refuse it."""
    cluster.zookeeper.put(f"{DELETE_TOPICS}/{topic}", b"")
