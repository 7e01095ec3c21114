"""Cycles of transactions: each of them read (G1c), or overwrote (G0), what another wrote."""

from collections.abc import Iterator, Mapping

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import Seen

Graph = Mapping[str, set[str]]


def circular_reads(seen: Seen) -> Iterator[Finding]:
    """Yield groups of transactions each of which read what another one of the group wrote.

    An edge leads from the writer of the highest record that a poll returned to the reader.
    """
    graph: dict[str, set[str]] = {name: set() for name in seen.transactions}
    for name, transaction in seen.transactions.items():
        for partition, _, value in transaction.reads:
            sent = seen.partitions[partition].sent.get(value)
            if sent is not None and sent.transaction:
                graph[sent.transaction].add(name)
    yield from _findings(seen, Anomaly.G1C, graph)


def circular_writes(seen: Seen) -> Iterator[Finding]:
    """Yield groups of transactions that wrote between one another, which Kafka allows."""
    graph: dict[str, set[str]] = {name: set() for name in seen.transactions}
    for log in seen.partitions.values():
        before = ""
        for _, read in sorted(log.read.items()) if graph else ():
            sent = log.sent.get(read.value)
            writer = "" if sent is None else sent.transaction
            if before and writer and before != writer:
                graph[before].add(writer)
            before = writer or before
    yield from _findings(seen, Anomaly.G0, graph)


def _findings(seen: Seen, anomaly: Anomaly, graph: Graph) -> Iterator[Finding]:
    for cycle in cycles(graph):
        names = tuple(seen.transactions[name].end_name for name in cycle)
        yield Finding(anomaly, " and ".join(cycle), names)


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        if root in index:
            continue
        path = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while path:
            node, following = path[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    path.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    found += _component(node, stack, on_stack)
    return found


def _component(root: str, stack: list[str], on_stack: set[str]) -> list[list[str]]:
    members: list[str] = []
    while not members or members[-1] != root:
        members.append(stack.pop())
        on_stack.discard(members[-1])
    return [sorted(members)] if len(members) > 1 else []
