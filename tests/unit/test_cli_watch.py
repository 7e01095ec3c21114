"""What `watch` prints: lanes, lines and rows."""

import json

from barnabas.admin import BrokerReplicas, Interruption
from barnabas_common.errors import BarnabasError
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.observe.event_lines import event_line, event_row, interruption_row
from barnabas_tools.cli.observe.lanes import bar, lanes

TP = TopicPartition("flights", 0)


def replica(end: int, high_watermark: int, isr: list[int] | None = None) -> ReplicaDescription:
    return ReplicaDescription(
        *TP,
        is_leader=isr is not None,
        leader_epoch=1,
        log_start_offset=0,
        log_end_offset=end,
        high_watermark=high_watermark,
        in_sync_replicas=isr or [],
    )


def test_a_lane_shows_what_is_committed_what_is_not_and_what_is_missing() -> None:
    found = lanes(
        [BrokerReplicas(1, [replica(100, 50, [1])]), BrokerReplicas(2, [replica(50, 50)])], {}
    )
    leader, follower = found.values()
    assert bar(leader, 0, 100, 8) == "████▒▒▒▒"
    assert bar(follower, 0, 100, 8) == "████····"
    assert (leader.in_sync, follower.in_sync) == (True, False)


def test_the_smallest_difference_is_seen() -> None:
    (leader,) = lanes([BrokerReplicas(1, [replica(1_000_000, 999_999, [1])])], {}).values()
    assert bar(leader, 0, 1_000_000, 8) == "███████▒"
    (behind,) = lanes([BrokerReplicas(2, [replica(999_999, 999_999)])], {}).values()
    assert bar(behind, 0, 1_000_000, 8) == "███████·"


def test_what_an_open_transaction_hides_is_seen_between_both_offsets() -> None:
    opened = replica(100, 75, [1])
    opened.last_stable_offset = 50
    (leader,) = lanes([BrokerReplicas(1, [opened])], {}).values()
    assert bar(leader, 0, 100, 8) == "████▓▓▒▒"
    opened.last_stable_offset = 74
    (leader,) = lanes([BrokerReplicas(1, [opened])], {}).values()
    assert bar(leader, 0, 100, 8) == "█████▓▒▒"
    opened.last_stable_offset = 75
    (leader,) = lanes([BrokerReplicas(1, [opened])], {}).values()
    assert bar(leader, 0, 100, 8) == "██████▒▒"


def test_an_empty_log_has_an_empty_lane() -> None:
    (leader,) = lanes([BrokerReplicas(1, [replica(0, 0, [1])])], {}).values()
    assert bar(leader, 0, 0, 4) == "····"


def test_a_silent_broker_keeps_its_lane_and_is_marked() -> None:
    before = lanes([BrokerReplicas(1, [replica(10, 10, [1])])], {})
    silent = BrokerReplicas(1, error=BarnabasError("no answer"))
    (lane,) = lanes([silent], before).values()
    assert lane.is_gone and lane.log_end_offset == 10
    (back,) = lanes([BrokerReplicas(1, [replica(20, 20, [1])])], {(*TP, 1): lane}).values()
    assert not back.is_gone and back.log_end_offset == 20
    assert lanes([BrokerReplicas(1, [])], {(*TP, 1): lane}) == {}, "deleted, not gone"


def test_an_event_is_one_line_with_who_what_and_why() -> None:
    event = Event(
        7, 0, 3, EventKind.LEADER_ELECTED, "broker 1 died", TP, {"leader": 2, "isr": [2, 3]}
    )
    assert event_line(event).endswith(
        "broker 3 flights-0 leader-elected: broker 1 died  [leader=2 isr=2,3]"
    )
    registered = Event(7, 0, 3, EventKind.BROKER_REGISTERED, "it came", None, {"broker": 1})
    assert event_line(registered).endswith("broker 3 broker-registered: it came  [broker=1]")
    moved = Event(
        8,
        0,
        2,
        EventKind.OFFSETS_MOVED,
        "every member of the ISR has it all",
        TP,
        {
            "log_end_offset_before": 1,
            "log_end_offset": 9,
            "high_watermark_before": 4,
            "high_watermark": 4,
        },
    )
    assert event_line(moved).endswith("[LEO 1 -> 9]")


def test_the_fields_of_json_are_the_same_for_every_event() -> None:
    about_partition = event_row(Event(1, 2, 3, EventKind.ISR_CHANGED, "slow", TP, {"isr": [1]}))
    about_topic = event_row(Event(1, 2, 3, EventKind.TOPIC_CREATED, "new", None, {"topic": "a"}))
    missed = interruption_row(Interruption(3, 2, "broker 3 had already dropped 5 events", 5))
    assert list(about_partition) == list(about_topic) == list(missed)
    assert (about_topic["topic"], about_topic["partition"]) == ("a", None)
    assert json.loads(json.dumps(about_partition))["details"] == {"isr": [1]}
    assert missed["details"] == {"missed": 5}
