"""Faults that lose records, or write them twice, where the settings permit it: positive controls.

A checker that never finds a loss may be blind, and a fault that never causes one may be none.
"""

import time

from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, wait_until
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.faults.fault import Fault
from barnabas_tools.chaos.faults.network import OneWayCut
from barnabas_tools.chaos.faults.processes import Killed, Paused, Restarted
from barnabas_tools.chaos.faults.toolbox import Toolbox

_SUCCESSOR_SECONDS = 90.0
_IN_SYNC_SECONDS = 120.0
_PARTITION = 0
_MOST_CONTROLLERS = 6


class _OfALeader:
    """What they have in common: the leader of partition 0 dies, and another leads at the end."""

    verb = ""

    def __init__(self, cluster: ComposeCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._begun: list[Fault] = []
        self._killed = ""
        self._successor = ""

    @property
    def name(self) -> str:
        return f"{self.verb} {self._topic}-{_PARTITION}"

    def verify(self) -> str:
        if not self._successor:
            raise NotInEffect(f"{self.name}: no other broker leads")
        return f"{self._killed} was killed, {self._successor} leads"

    def heal(self) -> None:
        while self._begun:
            self._begun.pop().heal()
        for service in self._cluster.brokers:
            self._cluster.start(service)

    def _roles(self) -> tuple[str, list[str]]:
        """The leader and its followers."""
        self._killed = self._successor = ""
        leader = self._cluster.leader(self._topic, _PARTITION)
        if leader is None:
            raise FaultError(f"{self.name}: it has no leader")
        return leader, [each for each in self._cluster.brokers if each != leader]

    def _begin(self, fault: Fault) -> None:
        self._begun.append(fault)
        fault.inject()

    def _let_a_follower_lead(self, leader: str) -> None:
        """Kill the leader, and let its followers return."""
        Killed(self._cluster, leader).inject()
        self._killed = leader
        while self._begun:
            self._begun.pop().heal()
        self._wait_for_successor()

    def _wait_for_successor(self) -> None:
        wait_until(
            f"{self._topic}-{_PARTITION} is led by another than {self._killed}",
            lambda: self._leader_now() not in (None, self._killed),
            _SUCCESSOR_SECONDS,
        )
        self._successor = self._leader_now() or ""

    def _leader_now(self) -> str | None:
        return self._cluster.leader(self._topic, _PARTITION)


class LeaderAhead(_OfALeader):
    """The followers stand still while the leader writes alone; then it is killed.

    With acks=1 it has acknowledged records that no other replica has.
    """

    verb = "kill the leader ahead of its followers:"
    alone_seconds = 1.5

    def inject(self) -> None:
        leader, followers = self._roles()
        for follower in followers:
            self._begin(Paused(self._cluster, follower))
        time.sleep(self.alone_seconds)
        self._let_a_follower_lead(leader)


class LastInSync(_OfALeader):
    """The followers are killed, the ISR shrinks to the leader, it is killed, the followers return.

    With unclean elections one of them leads without what the last one in sync had acknowledged.
    """

    verb = "lose the last replica in sync:"
    alone_seconds = 2.0

    def inject(self) -> None:
        leader, followers = self._roles()
        number = int(leader.removeprefix("broker"))
        for follower in followers:
            self._begin(Killed(self._cluster, follower))
        wait_until(
            f"the ISR is {leader} alone", lambda: self._isr() == [number], _SUCCESSOR_SECONDS
        )
        time.sleep(self.alone_seconds)
        self._let_a_follower_lead(leader)

    def _isr(self) -> list[int]:
        found = self._cluster.partitions(self._topic).get(_PARTITION)
        return [] if found is None else list(found.in_sync_replicas)


class StaleHighWatermark(_OfALeader):
    """A follower does not receive the high watermark, gets a new epoch, and its leader dies.

    It has what was acknowledged, and does not know that it is committed. If it truncates to its
    own high watermark (Kafka before KIP-101), the records are lost when it leads.
    """

    verb = "elect a follower with a late high watermark:"

    def __init__(self, tools: Toolbox, topic: str) -> None:
        super().__init__(tools.cluster, topic)
        self._tools = tools

    def inject(self) -> None:
        self._part_leader_and_controller()
        leader, (follower, third) = self._roles()
        self._begin(OneWayCut(self._tools, leader, follower))
        epoch = self._epoch()
        self._begin(Killed(self._cluster, third))
        wait_until(
            "the partition has a new epoch", lambda: self._epoch() > epoch, _SUCCESSOR_SECONDS
        )
        self._begin(Killed(self._cluster, leader))
        self._killed = leader
        self._wait_for_successor()

    def _part_leader_and_controller(self) -> None:
        """The controller must reach the follower, so it must not be the leader."""
        for _ in range(_MOST_CONTROLLERS):
            wait_until("every replica is in sync", self._cluster.in_sync, _IN_SYNC_SECONDS)
            controller = self._cluster.controller()
            if controller != self._leader_now():
                return
            Restarted(self._cluster, controller).inject()
        raise FaultError(f"{self.name}: the leader is the controller again and again")

    def _epoch(self) -> int:
        found = self._cluster.partitions(self._topic).get(_PARTITION)
        return -1 if found is None else found.leader_epoch
