"""Znodes that are damaged, deleted or set back by hand, as far as `docs/failures.md` promises that
the cluster goes on, or heals.

What a fault has damaged it mends at its end, unless a broker has written the znode meanwhile.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes

from barnabas_simulator.campaign import state
from barnabas_simulator.campaign.faults.faults import Fault, Undo, Znode, nothing
from barnabas_simulator.cluster import SimulatedCluster

NONSENSE = (b"", b"{", b"nonsense", b"[]", b'{"version":99}', b"\xff\xfe", b"null")
NO_EPOCHS = (b"", b"one", b"-1", b"1.5", b"{}")


class ZnodeFaults:
    """`resolve` returns the running broker that a target means. `damaged`: their paths."""

    def __init__(self, cluster: SimulatedCluster, resolve: Callable[[str], int | None]) -> None:
        self.damaged: dict[str, None] = {}
        self._cluster = cluster
        self._resolve = resolve

    def damage(self, fault: Fault) -> Undo | None:
        """Overwrite a znode with what cannot be understood."""
        chance = fault.chance()
        path = self._path(fault, chance)
        good = None if path is None else self._data(path)
        if path is None or good is None or path in self.damaged:
            return None
        kinds: Sequence[bytes] = NO_EPOCHS if path == znodes.CONTROLLER_EPOCH else NONSENSE
        if Znode(fault.target) is Znode.TOPIC_CONFIG:  # where no data are no overrides
            kinds = [data for data in kinds if data]
        bad = chance.choice(kinds)
        self.damaged[path] = None
        self._cluster.zookeeper.put(path, bad)

        def mend() -> None:
            del self.damaged[path]
            if self._data(path) == bad:
                self._cluster.zookeeper.put(path, good)

        return mend

    def delete(self, fault: Fault) -> Undo | None:
        """Delete the ephemeral znode of a broker, or of the controller, while its session lives."""
        path = self._path(fault, fault.chance())
        if path is None or self._data(path) is None:
            return None
        self._cluster.zookeeper.delete(path)
        return nothing

    def set_back(self, fault: Fault) -> Undo | None:
        """Write an older epoch; at the end another controller is elected, which finds out."""
        chance = fault.chance()
        zookeeper, path = self._cluster.zookeeper, self._path(fault, chance)
        old = None if path is None or path in self.damaged else self._older(path, chance)
        if path is None or old is None:
            return None
        zookeeper.put(path, old)

        def elect_another() -> None:
            if self._data(znodes.CONTROLLER) is not None:
                zookeeper.delete(znodes.CONTROLLER)

        return elect_another

    def _path(self, fault: Fault, chance: random.Random) -> str | None:
        """Return the znode that a fault means; None if there is none, or no server."""
        if not self._cluster.zookeeper.running:
            return None
        partitions = list(state.partition_states(self._cluster))
        partition = chance.choice(partitions) if partitions else TopicPartition("", 0)
        match Znode(fault.target):
            case Znode.REGISTRATION:
                broker = self._resolve(fault.other)
                return None if broker is None else znodes.broker_path(broker)
            case Znode.STATE:
                return znodes.state_path(partition)
            case Znode.TOPIC:
                return znodes.topic_path(partition.topic)
            case Znode.TOPIC_CONFIG:
                return znodes.topic_config_path(partition.topic)
            case Znode.CONTROLLER:
                return znodes.CONTROLLER
            case Znode.CONTROLLER_EPOCH:
                return znodes.CONTROLLER_EPOCH

    def _data(self, path: str) -> bytes | None:
        node = self._cluster.zookeeper.tree.find(path)
        return None if node is None else node.data

    def _older(self, path: str, chance: random.Random) -> bytes | None:
        """Return the data with a lower epoch, None if there is no lower one."""
        if path == znodes.CONTROLLER_EPOCH:
            epoch = int(self._data(path) or b"0")
            return b"%d" % chance.randrange(1, epoch) if epoch > 1 else None
        for partition, found in state.partition_states(self._cluster).items():
            epoch = found.state.leader_epoch
            if znodes.state_path(partition) == path and epoch > 0:
                older = replace(found.state, leader_epoch=chance.randrange(epoch))
                return znodes.encode_state(older)
        return None
