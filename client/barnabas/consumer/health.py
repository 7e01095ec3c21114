"""Why a consumer makes no progress, in words."""

from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.consumer.membership import Membership
from barnabas.consumer.subscription_state import SubscriptionState, TopicPartitionState
from barnabas.group.awaiting import in_words
from barnabas.group.states import MemberState

# A heartbeat this many intervals old is worth a word.
_QUIET_INTERVALS = 3


def health(
    cluster: Cluster, positions: SubscriptionState, membership: Membership | None
) -> list[str]:
    """Sentences; the first is about the group if there is one. Never empty."""
    now = cluster.clock.monotonic()
    said = [] if membership is None else _of_group(membership, now)
    for tp, state in positions.states.items():
        said += _of_partition(cluster, tp, state, now)
    if not positions.states and membership is None:
        said.append("no partitions are assigned")
    return said or [f"it reads {len(positions.states)} partitions"]


def _of_group(membership: Membership, now: float) -> list[str]:
    member, config, beats = membership.member, membership.config, membership.heartbeats
    group = f"group {config.group_id}"
    if membership.subscription is None:
        return _of_coordinator(membership) if not membership.coordinator.known else []
    said = []
    seconds = now - member.since
    state = member.state
    if state is MemberState.STABLE:
        who = f"{group}: {member.generation.member_id} in generation {member.generation.number}"
        if member.assignment:
            said.append(f"{who} reads {len(member.assignment)} partitions")
        else:
            said.append(f"{who} has no partitions: {_why_none(membership)}")
    elif state is MemberState.UNJOINED:
        said.append(f"{group}: not joined; the next poll joins")
    elif state is MemberState.FAILED:
        said.append(f"{group}: failed: {member.failure}; the next poll raises it")
    elif state is MemberState.PREPARING_REBALANCE:
        said.append(
            f"{group}: the member {state.value} to join for {seconds:.0f} s ({member.why});"
            f" one that does not join within {config.max_poll_interval:.0f} s is removed"
        )
        said += _of_others(membership)
    else:
        said.append(f"{group}: the member {state.value} for {seconds:.0f} s ({member.why})")
        said += _of_others(membership)
    if beats.seconds_late > 0:
        late = beats.seconds_late
        said.append(
            f"{group}: the last poll was {late + config.max_poll_interval:.0f} s ago, {late:.0f} s"
            " more than max_poll_interval_ms allows: other members read its partitions"
        )
    elif state.needs_application and not beats.polls:
        said.append(f"{group}: nothing goes on before the application polls")
    quiet = now - beats.last_success
    if state.beats and quiet > _QUIET_INTERVALS * config.heartbeat_interval:
        left = config.session_timeout - quiet
        said.append(
            f"{group}: no answer to heartbeats for {quiet:.0f} s; without one the group goes on"
            f" without this member {f'in {left:.0f} s' if left > 0 else 'now'}"
        )
    if membership.commits.last_failure is not None:
        said.append(f"{group}: the last commit failed: {membership.commits.last_failure}")
    return said + _of_coordinator(membership)


def _of_others(membership: Membership) -> list[str]:
    """Whom the coordinator waits for; the member itself has done its part."""
    group = f"group {membership.config.group_id}"
    return [f"{group}: its coordinator {words}" for words in in_words(membership.wait.known())]


def _of_coordinator(membership: Membership) -> list[str]:
    coordinator = membership.coordinator
    if coordinator.known or coordinator.last_failure is None:
        return []
    group = f"group {coordinator.group_id}"
    return [f"{group}: the coordinator is unknown: {coordinator.last_failure}"]


def _why_none(membership: Membership) -> str:
    topics = membership.member.topics
    if not topics:
        return "no topic matches its pattern"
    missing = [t for t in topics if t not in membership.coordinator.cluster.metadata.topics]
    if missing:
        return f"there is no topic {', '.join(missing)}"
    return "other members read all of them"


def _of_partition(
    cluster: Cluster, tp: TopicPartition, state: TopicPartitionState, now: float
) -> list[str]:
    if state.paused:
        return [f"{tp}: paused"]
    if state.blocked:
        return [f"{tp}: stopped by an error, which a poll raises"]
    if state.awaits_committed:
        return [f"{tp}: waits for the group's committed offset"]
    if state.reset_to is not None:
        return [f"{tp}: its position is being looked up"]
    if not state.known:
        return [f'{tp}: no position, and auto_offset_reset is "none": seek first']
    if cluster.metadata.leader(tp) is None:
        return [f"{tp}: has no leader"]
    if now < state.not_before:
        return [
            f"{tp}: fetching failed {state.failures} times, again in {state.not_before - now:.1f} s"
        ]
    return []
