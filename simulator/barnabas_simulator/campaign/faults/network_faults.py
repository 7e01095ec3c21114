"""The faults of the network; each function returns how to end the fault.

A link that several faults have cut is healed when the last of them ends.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Undo, nothing
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.network.links import Link

FLAKY_CHANCE = 0.03
SLOW_SECONDS = 0.4
DELAY_SECONDS = (0.1, 1.0, 5.0)


class NetworkFaults:
    """`clients` are the hosts of producers, consumers and admin clients."""

    def __init__(self, cluster: SimulatedCluster, clients: Sequence[str]) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._clients = list(clients)
        self._cuts: Counter[Link] = Counter()
        self._rejections: Counter[Link] = Counter()

    def strike(self, fault: Fault, victim: int) -> Undo | None:
        """Start a fault; returns how to end it."""
        here, others = self._host(victim), self._others(victim)
        match fault.kind:
            case FaultKind.CUT:
                return self._cut([(here, self._host(int(fault.other)))])
            case FaultKind.PART:
                return self._cut(list(permutations([here, self._host(int(fault.other))], 2)))
            case FaultKind.DELAY:
                return self._delay((here, self._host(int(fault.other))), fault)
            case FaultKind.ISOLATE:
                return self._cut(_both_ways(here, others))
            case FaultKind.CUT_CLIENTS:
                return self._cut(_both_ways(here, self._clients))
            case FaultKind.RESET:
                self._network.reset(here, self._host(int(fault.other)))
                return nothing
            case FaultKind.REJECT:
                return self._reject([(other, here) for other in others])
            case FaultKind.LOSE_ANSWER:
                chance = fault.chance()
                self._network.links.lose_next((here, chance.choice(self._clients + others)))
                return nothing
            case FaultKind.FLAKY:
                return self._for_each(_both_ways(here, others + self._clients), self._flaky)
            case FaultKind.SLOW:
                return self._for_each(_both_ways(here, others + self._clients), self._slow)
            case _:
                raise ValueError(f"not a fault of the network: {fault}")

    def ring(self) -> Undo | None:
        """Let each broker reach only its neighbours in a ring: a different majority for each."""
        ids = self._cluster.broker_ids
        far = [
            (one, other)
            for one, other in combinations(range(len(ids)), 2)
            if (other - one) % len(ids) not in (1, len(ids) - 1)
        ]
        if not far:  # of three all are neighbours: a chain
            far = [(0, len(ids) - 1)]
        hosts = [(self._host(ids[one]), self._host(ids[other])) for one, other in far]
        return self._cut([*hosts, *((other, one) for one, other in hosts)])

    def unplug(self, victim: int) -> Undo:
        here = self._host(victim)
        return self._cut(_both_ways(here, self._others(victim) + self._clients))

    def cut_between(self, links: Sequence[tuple[int, int]]) -> Undo:
        """Cut links between brokers."""
        return self._cut([(self._host(one), self._host(other)) for one, other in links])

    def _host(self, broker_id: int) -> str:
        return self._cluster.host(broker_id)

    def _others(self, victim: int) -> list[str]:
        return [self._host(b) for b in self._cluster.broker_ids if b != victim]

    def _cut(self, links: Sequence[Link]) -> Undo:
        return _hold(links, self._cuts, self._network.cut, self._network.heal)

    def _reject(self, links: Sequence[Link]) -> Undo:
        return _hold(links, self._rejections, self._network.reject, self._network.admit)

    def _for_each(self, links: Sequence[Link], set_link: Callable[[Link, bool], None]) -> Undo:
        for link in links:
            set_link(link, True)

        def undo() -> None:
            for link in links:
                set_link(link, False)

        return undo

    def _flaky(self, link: Link, on: bool) -> None:
        self._network.links.make_flaky(link, FLAKY_CHANCE * on)

    def _delay(self, link: Link, fault: Fault) -> Undo | None:
        if link[0] == link[1]:
            return None
        seconds = fault.chance().choice(DELAY_SECONDS)
        self._network.links.delay(link, seconds)
        return lambda: self._network.links.delay(link, 0)

    def _slow(self, link: Link, on: bool) -> None:
        self._network.links.delay(link, SLOW_SECONDS * on)


def _hold(
    links: Sequence[Link],
    held: Counter[Link],
    begin: Callable[[str, str], None],
    end: Callable[[str, str], None],
) -> Undo:
    """Begin a fault on each link; on a shared link the last fault to end ends it."""
    held.update(links)
    for link in links:
        begin(*link)

    def undo() -> None:
        held.subtract(links)
        for link in links:
            if not held[link]:
                end(*link)

    return undo


def _both_ways(here: str, others: Sequence[str]) -> list[Link]:
    return [link for other in others for link in ((here, other), (other, here))]
