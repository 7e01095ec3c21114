"""What coordinators are asked and answer: I18 of SyncGroup, I19 of commits and what is fetched.

An answer is judged after the turn in which it was given: by then the checker has seen what that
turn has committed.
"""

from collections.abc import Callable, Mapping, Sequence

from barnabas_broker.server.broker import Broker
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.messages.transactions import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import assigned, identity
from barnabas_simulator.invariants.groups.rules import Sender
from barnabas_simulator.invariants.groups.seen import GroupsSeen


class Answers:
    """An observer of the service COORDINATOR. `acknowledged` counts commits, by partition."""

    def __init__(self, seen: GroupsSeen) -> None:
        self.acknowledged = 0
        self._seen = seen
        self._hold = seen.findings.hold
        self._waiting: list[Callable[[], None]] = []

    def __call__(self, broker: Broker, request: Message) -> Callable[[Message | None], None]:
        match request:
            case OffsetCommitRequest() | TxnOffsetCommitRequest():
                start = self._sent(request)
                return lambda response: self._later(
                    lambda: self._committed(broker, request, response, start)
                )
            case OffsetFetchRequest():
                known_at = dict(self._seen.known_at)
                return lambda response: self._later(
                    lambda: self._fetched(broker, response, known_at)
                )
            case SyncGroupRequest():
                return lambda response: self._later(lambda: self._synced(broker, request, response))
            case _:
                return lambda _: None

    def _later(self, judge: Callable[[], None]) -> None:
        self._waiting.append(judge)

    def settle(self) -> None:
        """Judge what was answered in this turn."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for judge in waiting:
                judge()

    def _sent(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> int:
        """Remember who sends it; its record comes no earlier in the log than is returned."""
        seen = self._seen
        who = identity(request.member_id, request.group_instance_id)
        for tp, offset, metadata in _commits(request):
            key = (request.group_id, tp, offset, metadata)
            seen.senders.setdefault(key, []).append(Sender(who, request.generation_id))
        truth = seen.truths.get(seen.partition(request.group_id))
        return 0 if truth is None else truth.high_watermark

    def _committed(
        self,
        broker: Broker,
        request: OffsetCommitRequest | TxnOffsetCommitRequest,
        response: Message | None,
        start: int,
    ) -> None:
        assert isinstance(response, OffsetCommitResponse | TxnOffsetCommitResponse)
        seen = self._seen
        errors = [result.error_code for result in response.partitions]
        for (tp, offset, metadata), error in zip(_commits(request), errors, strict=True):
            if error != ErrorCode.NONE:
                continue
            group = request.group_id
            self.acknowledged += 1
            found = [at for at in seen.truth(group).found(tp, offset, metadata) if at >= start]
            if found:
                # What a transaction commits counts with its marker, which comes later.
                if isinstance(request, OffsetCommitRequest):
                    seen.acknowledge(group, tp, min(found))
            elif seen.leads(group, broker.replica_manager.partitions):
                rule = rules.acknowledged_is_written
                self._hold(seen.partition(group), rule, group, tp, offset, metadata, found)
            else:  # deposed, and all its followers had the record
                seen.promised[group, tp, offset, metadata] = None

    def _synced(self, broker: Broker, request: SyncGroupRequest, response: Message | None) -> None:
        assert isinstance(response, SyncGroupResponse)
        if response.error_code != ErrorCode.NONE:
            return
        seen, group, generation = self._seen, request.group_id, request.generation_id
        who = identity(request.member_id, request.group_instance_id)
        seen.own(group, generation, assigned([(who, response.assignment)]))
        if seen.leads(group, broker.replica_manager.partitions):
            rule, newest = rules.assignment_is_written, seen.truth(group).generation
            self._hold(seen.partition(group), rule, group, generation, newest)

    def _fetched(
        self,
        broker: Broker,
        response: Message | None,
        known_at: Mapping[tuple[str, TopicPartition], int],
    ) -> None:
        """What an acting coordinator shows is as new as what was acknowledged before the question.
        One that is deposed, and does not know, may show less."""
        assert isinstance(response, OffsetFetchResponse)
        seen = self._seen
        for found in response.groups:
            group = found.group_id
            if found.error_code or not seen.leads(group, broker.replica_manager.partitions):
                continue
            for item in found.partitions:
                tp = TopicPartition(item.topic, item.partition)
                shown, acknowledged = item.committed_offset, known_at.get((group, tp), -1)
                if not item.error_code and acknowledged >= 0:
                    at = max(seen.truth(group).found(tp, shown, item.metadata), default=-1)
                    rule = rules.not_older_than_acknowledged
                    self._hold(seen.partition(group), rule, group, tp, shown, at, acknowledged)


def _commits(
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
) -> list[tuple[TopicPartition, int, str]]:
    items: Sequence[OffsetCommitPartition | TxnOffsetCommitPartition] = request.partitions
    return [
        (TopicPartition(item.topic, item.partition), item.committed_offset, item.committed_metadata)
        for item in items
    ]
