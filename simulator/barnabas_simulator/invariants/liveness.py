"""What must hold once faults have stopped: L1 to L7, and L8 and L9 in `groups`.

Each returns what is missing, or None.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica, Running

Readers = Mapping[str, Mapping[TopicPartition, tuple[int, int]]]
"""Position and end of each client that reads, by partition."""

FETCH_ROUND_SECONDS = 2.0  # a follower whose last fetch is older does not fetch


@dataclass(frozen=True)
class Rest:
    """The cluster at one moment: `live` brokers must serve; `replicas` by partition and broker.

    `unresolved` are the records without an answer so far; `since`: when the faults stopped.
    `fetching`: the followers that fetch from a leader of each partition.
    """

    live: Collection[int]
    replicas: Mapping[TopicPartition, Mapping[int, Replica]]
    unresolved: Mapping[TopicPartition, Collection[bytes]]
    since: float
    fetching: Mapping[TopicPartition, Collection[int]] = field(default_factory=dict)


def fetching(brokers: Iterable[Running], now: float) -> dict[TopicPartition, set[int]]:
    """The followers that fetch from a leader at present, with or without success."""
    found: dict[TopicPartition, set[int]] = {}
    lately = now - FETCH_ROUND_SECONDS
    for running in brokers:
        for partition in running.partitions:
            if partition.leadership is not None:
                sessions = partition.delayed_operations.followers.items()
                found.setdefault(partition.topic_partition, set()).update(
                    b for b, cached in sessions if cached.session.last_fetch_time >= lately
                )
    return found


@rule("L1 EveryPartitionHasALeader")
def has_leader(truth: Truth, rest: Rest) -> str | None:
    """ZooKeeper's leader runs, and leads in the epoch of the state znode."""
    state = truth.state
    leader = rest.replicas[truth.partition].get(state.leader)
    if leader is None:
        return f"no broker leads; {state}; live are {sorted(rest.live)}"
    if leader.led_epoch != state.leader_epoch:
        return f"the leader does not know that it leads; {state}; {leader}"
    return None


@rule("L2 IsrIsLiveReplicas")
def isr_is_full(truth: Truth, rest: Rest) -> str | None:
    """The ISR consists of all replicas on live brokers."""
    wanted = {replica for replica in truth.replicas if replica in rest.live}
    if set(truth.state.isr) == wanted:
        return None
    return f"the ISR is not {sorted(wanted)}; {truth.state}; {_replicas(truth, rest)}"


@rule("L3 EveryProduceResolves")
def produces_resolve(truth: Truth, rest: Rest) -> str | None:
    """Every record that was sent has been acknowledged, or its error reported."""
    waiting = rest.unresolved.get(truth.partition, ())
    if not waiting:
        return None
    return (
        f"{len(waiting)} records have had no answer: {list(waiting)[:3]}; {_replicas(truth, rest)}"
    )


@rule("L4 NothingUnseen")
def nothing_unseen(truth: Truth, rest: Rest) -> str | None:
    """Consumers have read all acknowledged records of each partition that they read, except what
    compaction or retention may have removed."""
    if not truth.consumed:
        return None
    unseen = sorted(
        offset
        for offset in truth.acked.keys() - truth.consumed.keys()
        if offset >= truth.log_start
        and (truth.keyed is None or truth.keyed.is_newest(offset, truth.acked[offset]))
    )
    return f"offsets {unseen[:5]} were acknowledged and not read" if unseen else None


@rule("L5 HighWatermarkReachesTheEnd")
def high_watermark_at_end(truth: Truth, rest: Rest) -> str | None:
    """All live replicas have the leader's log end offset, and it is their high watermark too."""
    wanted = set(truth.replicas) & set(rest.live)
    replicas = [r for r in rest.replicas[truth.partition].values() if r.broker_id in wanted]
    ends = {offset for r in replicas for offset in (r.high_watermark, r.log_end)}
    return None if len(ends) <= 1 else f"the ends differ; {_replicas(truth, rest)}"


@rule("L6 NoLivelock")
def leadership_settles(truth: Truth, rest: Rest, now: float, per_minute: int) -> str | None:
    """Leadership changes at most `per_minute` times a minute once faults have stopped."""
    changes = [at for at in truth.leader_changes if at >= rest.since]
    allowed = per_minute * max(1.0, (now - rest.since) / 60)
    if len(changes) <= allowed:
        return None
    return f"{len(changes)} changes of the leader in {now - rest.since:.1f} s"


@rule("L7 EveryFetchMakesProgress")
def fetches_progress(truth: Truth, rest: Rest) -> str | None:
    """No follower fetches, and does not get what its leader has."""
    replicas = rest.replicas[truth.partition]
    leader = replicas.get(truth.state.leader)
    if leader is None or leader.led_epoch is None:
        return None
    stuck = [
        replica
        for replica in replicas.values()
        if replica.broker_id in rest.live
        and replica.broker_id in rest.fetching.get(truth.partition, ())
        and replica.log_end < leader.log_end
    ]
    if not stuck:
        return None
    at = ", ".join(f"broker {replica.broker_id} at {replica.log_end}" for replica in stuck)
    return f"fetches of {truth.partition} go round without progress: {at}; {leader}"


@rule("L7 EveryFetchMakesProgress")
def readers_progress(readers: Readers) -> str | None:
    """Every reader's position reaches its end, and no client waits for anything else."""
    behind = [
        f"{reader} is at {position} of {end} in {partition}"
        for reader, positions in readers.items()
        for partition, (position, end) in positions.items()
        if position < end
    ]
    return "; ".join(behind) if behind else None


LIVENESS = (
    has_leader,
    fetches_progress,
    isr_is_full,
    produces_resolve,
    nothing_unseen,
    high_watermark_at_end,
)


def _replicas(truth: Truth, rest: Rest) -> str:
    found: Sequence[Replica] = list(rest.replicas[truth.partition].values())
    return "; ".join(str(replica) for replica in found)
