"""A lab prints a broker's last events before it stops the broker."""

from typing import Any, cast

from barnabas import Admin
from barnabas.admin.events import BrokerEvents
from barnabas_common.errors import LeaderNotAvailableError, NoBrokerReachableError
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.labs.framework.event_printer import EventPrinter
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.local.cluster import LocalCluster

LETTERS = TopicPartition("letters", 0)
CUT = Event(7, 1_000, 1, EventKind.LOG_TRUNCATED, "", LETTERS, {"to_offset": 2})
SILENT = BrokerEvents(1, error=LeaderNotAvailableError("not connected yet"))
OTHER = BrokerEvents(2)


class ScriptedAdmin:
    """Answers with the next of the given lists; an error is raised."""

    def __init__(self, *answers: list[BrokerEvents] | Exception) -> None:
        self._answers = list(answers)

    async def describe_events(self) -> list[BrokerEvents]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class StoppingCluster:
    """A cluster of which a lab only stops brokers; `told` is noted at that moment."""

    def __init__(self, told: list[str]) -> None:
        self._told = told
        self.told_at_stop: list[str] = []

    def stop_broker(self, broker_id: int) -> None:
        self.told_at_stop = list(self._told)


async def stopped_after(*answers: Any, patience: float = 30.0) -> list[str]:
    """Return what the reader was told before broker 1 was stopped."""
    told: list[str] = []
    printer = EventPrinter("127.0.0.1:1", told.append)
    printer._admin = cast(Admin, ScriptedAdmin(*answers))
    cluster = StoppingCluster(told)
    stage = LabCluster(
        cast(LocalCluster, cluster), told.append, printer.catch_up, patience=patience
    )
    stage.view = cast(Any, type("View", (), {"away": set()})())
    await stage.stop(1)
    return cluster.told_at_stop


async def test_a_broker_that_does_not_answer_yet_is_asked_again() -> None:
    told = await stopped_after(
        [SILENT, OTHER],
        NoBrokerReachableError("none"),
        [OTHER],
        [BrokerEvents(1, [CUT]), OTHER],
    )
    assert any("log-truncated" in line and "to_offset=2" in line for line in told)


async def test_an_event_is_printed_once() -> None:
    told = await stopped_after(
        [BrokerEvents(1, [CUT], error=SILENT.error)], [BrokerEvents(1, [CUT])]
    )
    assert sum("log-truncated" in line for line in told) == 1


async def test_events_that_cannot_be_had_are_said_to_be_missing() -> None:
    told = await stopped_after(*[[SILENT]] * 1_000, patience=0.1)
    assert any("broker 1 does not answer" in line for line in told)
