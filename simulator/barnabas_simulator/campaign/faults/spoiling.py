"""Writes to znodes past the brokers, as an operator's tool would make them."""

import random

from barnabas_controller.store.znodes import CONFIG_CHANGES, DELETE_TOPICS

from barnabas_simulator.cluster import SimulatedCluster

DEFAULTS = "brokers/<default>"
SETTINGS_PATH = f"/config/{DEFAULTS}"
NO_SETTINGS = b'{"version":1,"config":{}}'
BAD_SETTINGS = (b"{", b"7", b'{"version":1,"config":{"broker.id":"7"}}')


def spoil_settings(cluster: SimulatedCluster, chance: random.Random) -> None:
    """Overwrite the settings of all brokers with malformed or inapplicable ones."""
    write_settings(cluster, chance.choice(BAD_SETTINGS))


def write_settings(cluster: SimulatedCluster, data: bytes = NO_SETTINGS) -> None:
    """Write the settings of all brokers, and the notification of the change."""
    cluster.zookeeper.put(SETTINGS_PATH, data)
    note = b'{"version":2,"entity_path":"%s"}' % DEFAULTS.encode()
    cluster.zookeeper.put(f"{CONFIG_CHANGES}/config_change_", note, sequential=True)


def request_deletion(cluster: SimulatedCluster, topic: str) -> None:
    """Request a topic's deletion past the brokers, which might refuse it."""
    cluster.zookeeper.put(f"{DELETE_TOPICS}/{topic}", b"")
