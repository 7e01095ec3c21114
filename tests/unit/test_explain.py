"""The reasoning of `explain`, on plain data: chains of leaders, dropped events, silent brokers."""

from barnabas.explain import About, Explanation, PartitionView, explain
from barnabas_broker.replica.leader.hosting import describe_absence
from barnabas_broker.replica.leader.in_sync import NEVER, UNKNOWN_OFFSET, describe_lag
from barnabas_broker.replica.leader.in_sync import RemoteReplica as Follower
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.metadata import PartitionMetadata
from barnabas_common.messages.replicas import RemoteReplica, ReplicaDescription
from barnabas_common.topic_partition import TopicPartition

TP = TopicPartition("flights", 0)


class Story:
    """Events in the order in which they are added, one per second."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(
        self,
        broker: int,
        kind: EventKind,
        cause: str,
        key: TopicPartition | None = TP,
        **more: object,
    ) -> None:
        number = len(self.events) + 1
        self.events.append(Event(number, number * 1000, broker, kind, cause, key, more))  # type: ignore[arg-type]

    def elect(self, leader: int, epoch: int, cause: str, isr: list[int], before: list[int]) -> None:
        """Add the election that broker 9, the controller, recorded."""
        self.tell(
            9,
            EventKind.LEADER_ELECTED,
            cause,
            leader=leader,
            leader_before=before[0] if before else -1,
            leader_epoch=epoch,
            isr=isr,
            isr_before=before,
            passed_over=[],
        )


def leading(broker: int, epoch: int, isr: list[int], **more: object) -> ReplicaDescription:
    replica = ReplicaDescription(*TP, is_leader=True, leader_id=broker, leader_epoch=epoch)
    replica.in_sync_replicas, replica.min_in_sync_replicas = isr, 2
    replica.high_watermark = replica.log_end_offset = 100
    for name, value in more.items():
        setattr(replica, name, value)
    return replica


def view(
    story: Story,
    leader: ReplicaDescription | None,
    live: tuple[int, ...] = (1, 2, 3),
    **more: object,
) -> PartitionView:
    isr = leader.in_sync_replicas if leader else [1]
    metadata = PartitionMetadata(
        0,
        leader_id=leader.leader_id if leader else -1,
        leader_epoch=leader.leader_epoch if leader else 1,
        replicas=[1, 2, 3],
        in_sync_replicas=isr,
    )
    replicas = {leader.leader_id: leader} if leader else {}
    return PartitionView(TP, metadata, 9, live, replicas, story.events, **more)  # type: ignore[arg-type]


def first(explanation: Explanation, about: About) -> str:
    return explanation.of(about)[0]


def test_the_chain_of_leaders_is_followed_back() -> None:
    story = Story()
    story.elect(1, 0, "the partition is new", [1, 2, 3], [])
    story.elect(2, 1, "broker 1 died", [2, 3], [1, 2, 3])
    story.elect(3, 2, "broker 2 is shutting down", [3], [2, 3])
    told = explain(view(story, leading(3, 2, [3])))
    assert told.of(About.LEADER) == [
        "broker 3 has led since epoch 2: broker 2 is shutting down",
        "before that, broker 2 led from epoch 1: broker 1 died",
        "before that, broker 1 led from epoch 0: the partition is new",
    ]


def test_an_epoch_that_only_changed_the_isr_is_no_new_term() -> None:
    story = Story()
    story.elect(1, 0, "the partition is new", [1, 2, 3], [])
    story.tell(
        9,
        EventKind.ISR_CHANGED,
        "broker 2 died",
        leader=1,
        leader_before=1,
        leader_epoch=1,
        isr=[1, 3],
        isr_before=[1, 2, 3],
    )
    told = explain(view(story, leading(1, 1, [1, 3])))
    assert told.of(About.LEADER) == [
        "broker 1 has led since epoch 0 (now 1, because the ISR has changed): the partition is new"
    ]
    assert first(told, About.ISR) == "broker 2 is out of the ISR: broker 2 died"


def test_followers_remember_why_when_the_controller_is_gone() -> None:
    story = Story()
    new = "the partition is new"
    story.tell(3, EventKind.BECAME_FOLLOWER, new, leader=1, leader_epoch=0)
    story.tell(3, EventKind.BECAME_FOLLOWER, "broker 1 died", leader=2, leader_epoch=1)
    story.tell(2, EventKind.BECAME_LEADER, "sent again: broker 9 came up", leader_epoch=1)
    told = explain(view(story, leading(2, 1, [2, 3])))
    assert first(told, About.LEADER) == "broker 2 has led since epoch 1: broker 1 died"


def test_the_cause_of_a_role_that_is_sent_again_is_not_that_of_the_election() -> None:
    story = Story()
    again = "sent again: broker 3 became controller, epoch 3"
    story.tell(1, EventKind.BECAME_FOLLOWER, again, leader=2, leader_epoch=2)
    told = explain(view(story, leading(2, 2, [1, 2, 3])))
    assert told.of(About.LEADER) == ["broker 2 leads in epoch 2; the cause is no longer known"]


def test_an_epoch_that_may_only_have_changed_the_isr_is_not_given_as_an_election() -> None:
    story = Story()
    cause = "broker 3 vanished"
    story.tell(1, EventKind.BECAME_FOLLOWER, cause, leader=2, leader_epoch=2)
    told = explain(view(story, leading(2, 2, [1, 2])))
    assert told.of(About.LEADER) == ["broker 2 leads in epoch 2; the cause is no longer known"]
    story.tell(1, EventKind.BECAME_LEADER, "broker 2 stopped", leader_epoch=1)
    told = explain(view(story, leading(2, 2, [1, 2])))
    assert first(told, About.LEADER) == f"broker 2 has led since epoch 2: {cause}"


def test_a_chain_with_a_missing_epoch_ends_there() -> None:
    story = Story()
    story.elect(1, 0, "the partition is new", [1, 2, 3], [])
    story.elect(1, 5, "broker 2 died", [1, 3], [2, 1, 3])
    told = explain(view(story, leading(1, 5, [1, 3])))
    assert told.of(About.LEADER) == ["broker 1 has led since epoch 5: broker 2 died"]


def test_what_no_one_remembers_is_not_made_up() -> None:
    told = explain(view(Story(), leading(2, 7, [2, 3]), forgotten_ms={2: 5_000, 3: 0}))
    assert first(told, About.LEADER) == "broker 2 leads in epoch 7; the cause is no longer known"
    assert first(told, About.ISR) == "broker 1 is out of the ISR; when it left is no longer known"
    assert told.of(About.DOUBT) == ["broker 2 has dropped its events up to this moment"]


def test_silent_and_absent_brokers_are_named() -> None:
    told = explain(view(Story(), leading(2, 1, [2]), live=(2, 3), errors={3: "no answer"}))
    assert told.unreachable == [1, 3]
    assert told.of(About.DOUBT) == [
        "broker 3 does not answer, so what it knows is missing here: no answer",
        "broker 1 is not registered, so what only it knew is missing here",
    ]


def test_without_a_leader_the_refusal_and_who_is_waited_for_are_told() -> None:
    story = Story()
    story.tell(
        9,
        EventKind.ELECTION_REFUSED,
        "broker 1 died; none is online",
        passed_over=["broker 1 is offline"],
    )
    told = explain(view(story, None, live=(2, 3)))
    assert told.of(About.LEADER)[:4] == [
        "there is no leader now",
        "no leader could be elected: broker 1 died; none is online",
        "the candidates, in assignment order: broker 1 is offline",
        "it waits for broker 1: only members of the ISR [1] have every record",
    ]
    assert first(told, About.HIGH_WATERMARK) == "the high watermark cannot move: there is no leader"
    assert "LEADER_NOT_AVAILABLE" in first(told, About.REFUSED)


def test_the_leaders_word_on_its_high_watermark_is_passed_on() -> None:
    leader = leading(
        1,
        0,
        [1, 2],
        high_watermark=40,
        held_back_because="broker 2 has fetched only up to offset 40",
        held_back_by=[2],
        followers=[RemoteReplica(2, 40, 3_200)],
    )
    told = explain(view(Story(), leader))
    assert told.of(About.HIGH_WATERMARK) == [
        "the high watermark is 40, 60 below the end 100 of the leader's log:"
        " broker 2 has fetched only up to offset 40",
        "broker 2 was last caught up 3.2 s ago",
    ]
    assert told.held_back_by == [2] and not told.of(About.REFUSED)


def test_of_two_that_believe_to_lead_the_newer_is_believed() -> None:
    story = Story()
    old, new = leading(1, 0, [1, 2, 3]), leading(2, 1, [2, 3])
    seen = view(story, new)
    both = PartitionView(TP, seen.metadata, 9, (1, 2, 3), {1: old, 2: new})
    assert (explain(both).leader, explain(both).leader_epoch) == (2, 1)


def test_only_what_concerns_a_replica_is_told_of_it() -> None:
    story = Story()
    story.tell(
        1,
        EventKind.ISR_CHANGED,
        "broker 2 has not caught up for 31 s; broker 3 has not caught up for 45 s",
        isr=[1],
        isr_before=[1, 2, 3],
    )
    told = explain(view(story, leading(1, 0, [1])))
    assert told.of(About.ISR)[0].endswith("out of the ISR: broker 2 has not caught up for 31 s")
    assert told.of(About.ISR)[1].endswith("out of the ISR: broker 3 has not caught up for 45 s")


def test_whatever_the_reasons_of_those_that_leave_together_each_is_told_its_own() -> None:
    def late(broker: int, offset: int, fetched: float) -> Follower:
        return Follower(broker, offset, last_fetch_time=fetched, last_caught_up_time=fetched)

    reasons = {
        2: describe_lag(late(2, UNKNOWN_OFFSET, NEVER), NEVER, 100, 60.0, 30.0),
        3: describe_lag(late(3, 40, 59.0), 59.0, 100, 60.0, 30.0, max_messages=10),
        4: describe_absence(4),
        5: describe_lag(late(5, 40, 10.0), 10.0, 100, 60.0, 30.0),
    }
    assert "never fetched" in reasons[2] and "keeps up" in reasons[3]
    story = Story()
    cause = "; ".join([*reasons.values(), "written to ZooKeeper by the leader"])
    left = {"isr": [1], "isr_before": [1, *reasons]}
    story.tell(1, EventKind.ISR_CHANGED, cause, partition_epoch=1, **left)
    seen = view(story, leading(1, 0, [1]))
    seen.metadata.replicas = [1, *reasons]
    told = [text for text in explain(seen).of(About.ISR) if "out of the ISR" in text]
    assert told == [
        f"broker {broker} is out of the ISR: {reason}; written to ZooKeeper by the leader"
        for broker, reason in reasons.items()
    ]


def test_the_events_of_groups_do_not_hide_those_of_brokers_and_what_is_left_out_is_said() -> None:
    story = Story()
    for _ in range(9):
        suspicion = Event(1, 1, 1, EventKind.BROKER_SUSPECTED, "it broke", details={"broker": 2})
        story.events.append(suspicion)
    for kind in (EventKind.GROUP_STABLE, EventKind.GROUP_MEMBER_LEFT):
        story.tell(1, kind, "the group", None, group="g")
    story.tell(1, EventKind.TRANSACTION_FENCED, "another", None, transactional_id="t")
    told = explain(view(story, leading(1, 0, [1, 2, 3]))).of(About.BROKER)
    suspected = "broker 2 was suspected to be dead: it broke"
    assert told == ["3 earlier events are not shown", *[suspected] * 6]


def test_a_deposed_controller_and_who_deposed_it_are_named() -> None:
    story = Story()
    why = "a new connection was refused"
    deposed = Event(1, 1000, 1, EventKind.CONTROLLER_DEPOSED, why, details={"broker": 2})
    story.events.append(deposed)
    told = explain(view(story, leading(1, 0, [1, 2, 3])))
    assert told.of(About.BROKER) == [f"broker 2 was removed as controller by broker 1: {why}"]


def test_a_fetch_that_works_again_is_no_obstacle() -> None:
    story = Story()
    story.tell(2, EventKind.FETCH_FAILED, "connection refused", None, leader=1)
    seen = view(story, leading(1, 0, [1, 3]))
    assert any("could not fetch" in text for text in explain(seen).of(About.ISR))
    story.tell(2, EventKind.FETCH_RESUMED, "the leader answers again", None, leader=1)
    assert not any("could not fetch" in text for text in explain(seen).of(About.ISR))


def test_changes_of_the_isr_are_ordered_by_version_not_by_clock() -> None:
    story = Story()
    out, back = {"isr": [1, 3], "isr_before": [1, 2, 3]}, {"isr": [1, 2, 3], "isr_before": [1, 3]}
    story.tell(1, EventKind.ISR_CHANGED, "broker 2 caught up", partition_epoch=2, **back)
    story.tell(9, EventKind.ISR_CHANGED, "broker 2 died", partition_epoch=1, **out)
    story.tell(9, EventKind.ISR_CHANGED, "broker 2 died again", partition_epoch=3, **out)
    told = explain(view(story, leading(1, 0, [1, 3])))
    assert first(told, About.ISR) == "broker 2 is out of the ISR: broker 2 died again"


def test_an_earlier_topic_of_that_name_is_not_mixed_in() -> None:
    story = Story()
    story.elect(3, 0, "the partition is new", [1, 2, 3], [])
    story.elect(2, 1, "broker 3 died", [1, 2], [1, 2, 3])
    story.tell(9, EventKind.TOPIC_DELETED, "somebody asked", None, topic="flights")
    story.elect(1, 0, "the partition is new", [1, 2, 3], [])
    told = explain(view(story, leading(1, 0, [1, 2, 3])))
    assert told.of(About.LEADER) == ["broker 1 has led since epoch 0: the partition is new"]
    assert "broker 3 died" not in told.text
