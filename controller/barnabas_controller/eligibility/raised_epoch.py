"""Elections above a leader epoch that brokers already hold.

Kafka has no such election, because it assumes that ZooKeeper is never older than the brokers. A
state znode that was set to an older value, or a ZooKeeper that was restored from an older copy, has
a leader epoch that is over, and every replica refuses its role. The refusals say what each replica
holds. That is newer than the state, so the refusals decide, and not the ISR in the state.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from barnabas_common.messages.control import HeldRole

from barnabas_controller.election.decision import Decision, Elected, Unchanged
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def is_outdated(state: LeaderAndIsr, held: Mapping[int, HeldRole]) -> bool:
    """Whether a replica holds a newer role, or one of the same epoch under another leader."""
    return any(
        h.leader_epoch > state.leader_epoch
        or (h.leader_epoch == state.leader_epoch and h.leader not in (-1, state.leader))
        for h in held.values()
    )


def elect_above(
    state: LeaderAndIsr,
    held: Mapping[int, HeldRole],
    assignment: Sequence[int],
    online: Collection[int],
    cause: str,
) -> Decision:
    """Elect under a leader epoch above all of `held`.

    `held` has, by broker id, what each replica held when it refused its role.

    If no held role is newer than the state, its leader gets the next epoch: it has restarted, and
    cannot know which leader wrote the records of the present epoch in its log. Otherwise the leader
    of the newest epoch continues with the members of its own ISR that the state has too: another
    one may have been taken out since because it lost records. If that leader is not online, the
    replica with the newest log leads, by the epoch of its last record and then by its end. It is
    alone in the ISR, because nothing shows which other logs are complete. The others catch up and
    join.
    """
    newest = max((h.leader_epoch for h in held.values()), default=-1)
    if newest < state.leader_epoch:
        return Unchanged("the leader epoch is newer than all that the replicas hold")
    live = tuple(replica for replica in assignment if replica in online)
    leader: int = state.leader
    isr: Sequence[int] = state.isr
    if is_outdated(state, held):
        leader, isr = _by_what_is_held(state, held, live, newest)
    elected = state.with_leader(leader, [replica for replica in isr if replica in assignment])
    return Elected(replace(elected, leader_epoch=newest + 1), live, cause)


def _by_what_is_held(
    state: LeaderAndIsr, held: Mapping[int, HeldRole], live: Sequence[int], newest: int
) -> tuple[int, Sequence[int]]:
    """The leader and the ISR; those of the state if no replica that refused is online."""
    present = {replica: held[replica] for replica in live if replica in held}
    for replica, h in present.items():
        if (h.leader_epoch, h.leader) == (newest, replica) and h.in_sync_replicas:
            return replica, [m for m in h.in_sync_replicas if m == replica or m in state.isr]
    if not present:
        return state.leader, state.isr

    def newest_log(replica: int) -> tuple[int, int, bool]:
        h = present[replica]
        return h.log_epoch, h.log_end_offset, replica == state.leader

    best = max(present, key=newest_log)
    return best, (best,)
