"""What coordinators are asked and answer, and what leaders are told: I14 and I17.

An answer is judged after the turn in which it was given: by then the checker has seen what that
turn has committed. A coordinator that was deposed may answer before the next leader has committed
what all its followers have; that is judged at rest.
"""

from collections.abc import Callable

from barnabas_broker.server.broker import Broker
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.transactions import rules
from barnabas_simulator.invariants.transactions.model import Producer
from barnabas_simulator.invariants.transactions.seen import TransactionsSeen

IsWritten = Callable[[], bool]
Answered = Callable[[Message | None], None]


class TransactionAnswers:
    """An observer of two services. `promised`: what was answered by a coordinator that was deposed,
    and must be in the log in the end."""

    def __init__(self, seen: TransactionsSeen) -> None:
        self.promised: list[tuple[str, Producer, IsWritten]] = []
        self._seen = seen
        self._hold = seen.findings.hold
        self._waiting: list[Callable[[], None]] = []

    def __call__(self, broker: Broker, request: Message) -> Answered:
        match request:
            case EndTxnRequest():
                return self._end(broker, request)
            case InitProducerIdRequest() if request.transactional_id:
                return lambda response: self._initialized(broker, request, response)
            case AddPartitionsToTxnRequest():
                return self._add(broker, request)
            case WriteTxnMarkersRequest():
                for marker in request.markers:
                    self._marker(marker)
        return lambda _: None

    def settle(self) -> None:
        """Judge what was answered in this turn."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for judge in waiting:
                judge()

    def _end(self, broker: Broker, request: EndTxnRequest) -> Answered:
        name, producer = request.transactional_id, Producer(*_producer(request))
        state, what = self._seen.state(name), f"EndTxn of {name!r}"
        is_fenced = state.fences(producer)

        def is_written() -> bool:
            markers = (producer, Producer(producer.producer_id, producer.epoch + 1))
            found = (state.decisions.get(marker) for marker in markers)
            return any(one is not None and one.is_commit == request.committed for one in found)

        def answered(response: Message | None) -> None:
            assert isinstance(response, EndTxnResponse)
            if not response.error_code:
                self._succeeded(broker, name, what, producer, is_fenced, is_written)

        return answered

    def _initialized(
        self, broker: Broker, request: InitProducerIdRequest, response: Message | None
    ) -> None:
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code:
            return
        name = request.transactional_id
        state, what = self._seen.state(name), f"InitProducerId of {name!r}"
        given = Producer(response.producer_id, response.producer_epoch)
        state.given_out.append(given)
        self._succeeded(broker, name, what, given, False, lambda: given in state.initialized)

    def _add(self, broker: Broker, request: AddPartitionsToTxnRequest) -> Answered:
        asked = [(item, self._is_fenced(item)) for item in request.transactions]

        def answered(response: Message | None) -> None:
            assert isinstance(response, AddPartitionsToTxnResponse)
            for (item, is_fenced), result in zip(asked, response.results, strict=True):
                added = {
                    TopicPartition(one.topic, one.partition)
                    for one in result.partitions
                    if not one.error_code
                }
                if added:
                    self._added(broker, item, is_fenced, added)

        return answered

    def _is_fenced(self, item: AddPartitionsToTxnTransaction) -> bool:
        return self._seen.state(item.transactional_id).fences(Producer(*_producer(item)))

    def _added(
        self,
        broker: Broker,
        item: AddPartitionsToTxnTransaction,
        is_fenced: bool,
        added: set[TopicPartition],
    ) -> None:
        name, producer = item.transactional_id, Producer(*_producer(item))
        verb = "verification" if item.verify_only else "AddPartitionsToTxn"
        what, state = f"{verb} of {sorted(map(str, added))} for {name!r}", self._seen.state(name)

        def is_written() -> bool:
            return added <= state.added.get(producer, set())

        # A deposed coordinator that does not know it yet verifies from memory, as Kafka's does. The
        # marker of the fenced producer reaches the partition, because the transaction's log names
        # it. I14 to I17 judge what was appended there.
        leads = self._seen.leads(name, broker.replica_manager.partitions)
        is_judged = leads or not item.verify_only
        self._succeeded(broker, name, what, producer, is_fenced and is_judged, is_written)

    def _marker(self, item: WritableTxnMarker) -> None:
        marker, commit = Producer(item.producer_id, item.producer_epoch), item.transaction_result
        partitions = [TopicPartition(p.topic, p.partition) for p in item.partitions]
        decision, name = self._seen.decision(marker), self._seen.id_of(item.producer_id)
        epoch = None if name is None else self._seen.coordinator_epoch(name)
        if decision is None and epoch != item.coordinator_epoch:
            decided = self._seen.decision
            self.promised.append(("a marker", marker, lambda: decided(marker) is not None))
            return
        rule = rules.marker_is_decided
        self._hold(None, rule, marker, commit, partitions, decision)

    def _succeeded(
        self,
        broker: Broker,
        name: str,
        what: str,
        producer: Producer,
        is_fenced: bool,
        is_written: IsWritten,
    ) -> None:
        def judge() -> None:
            self._hold(None, rules.fenced_is_refused, what, producer, is_fenced)
            if is_written() or self._seen.leads(name, broker.replica_manager.partitions):
                rule = rules.answered_is_written
                self._hold(None, rule, what, producer, is_written())
            else:
                self.promised.append((what, producer, is_written))

        self._waiting.append(judge)


def _producer(request: EndTxnRequest | AddPartitionsToTxnTransaction) -> tuple[int, int]:
    return request.producer_id, request.producer_epoch
