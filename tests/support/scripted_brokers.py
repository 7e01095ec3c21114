"""Minimal brokers for tests of the client, with real messages over the memory network.

`ScriptedBrokers` keeps one log per partition and answers as a broker would. A test adds `faults`:
each is answered, raised or waited for once, in order, before anything else.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas_common.errors import (
    InvalidProducerEpochError,
    KafkaError,
    MessageTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchedPartition, FetchRequest, FetchResponse
from barnabas_common.messages.metadata import (
    BrokerInfo,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas_common.messages.offsets import (
    EpochEndOffset,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from barnabas_common.messages.produce import ProducedPartition, ProduceRequest, ProduceResponse
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.record.batch import STAMP_SIZE, BatchHeader, batches, stamp
from barnabas_common.record.reader import Record, records_from
from barnabas_common.runtime import (
    Address,
    InlineOffload,
    Listener,
    Peer,
    Runtime,
    Service,
    SystemClock,
    system_randomness,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.network import MemoryNetwork

# Given the broker's id and the request: an answer, or None to let the broker answer itself.
Fault = Callable[[int, Any], Awaitable[Any]]


@dataclass
class ScriptedProducer:
    """The last five batches of a producer id: base sequence, next sequence, base offset."""

    epoch: int
    window: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class ScriptedLog:
    """One partition: its leadership, and its bytes as on disk."""

    leader: int
    epoch: int = 1
    start: int = 0
    end: int = 0
    data: bytearray = field(default_factory=bytearray)
    epoch_ends: dict[int, int] = field(default_factory=dict)
    max_batch: int = 1 << 30
    max_append: int = 1 << 30
    producers: dict[int, ScriptedProducer] = field(default_factory=dict)

    def append(self, records: bytes) -> int:
        """The offset of the first record, or of its first copy; raises a refusal."""
        headers = [header for _, header in batches(records)]
        count, known = self._known(headers)
        if count == len(headers):
            return known
        self._check_sizes(headers[count:])
        self._note(headers[count:])
        base = self.end if count == 0 else known
        for position, header in batches(records):
            if position < sum(header.size for header in headers[:count]):
                continue
            self.data += stamp(self.end, self.epoch, header.batch_length)
            self.data += records[position + STAMP_SIZE : position + header.size]
            self.end += header.last_offset_delta + 1
        return base

    def _check_sizes(self, headers: list[BatchHeader]) -> None:
        if any(header.size > self.max_batch for header in headers):
            raise MessageTooLargeError("a batch")
        if sum(header.size for header in headers) > self.max_append:
            raise RecordListTooLargeError("the batches together")

    def _known(self, headers: list[BatchHeader]) -> tuple[int, int]:
        """Kafka's rules for sequences: how many of the batches are stored already, and where."""
        first = headers[0]
        if first.producer_id < 0:
            return 0, -1
        state = self.producers.get(first.producer_id)
        if state is not None and first.producer_epoch < state.epoch:
            raise InvalidProducerEpochError(f"epoch {first.producer_epoch}")
        same_epoch = state is not None and first.producer_epoch == state.epoch
        if state is not None and same_epoch:
            kept = {sequence: offset for sequence, _, offset in state.window}
            for count in range(len(headers), 0, -1):
                last = headers[count - 1].base_sequence
                if last in kept and (count == len(headers) or last == state.window[-1][0]):
                    before = sum(h.last_offset_delta + 1 for h in headers[: count - 1])
                    return count, kept[last] - before
        expected = state.window[-1][1] if state is not None and same_epoch else 0
        if state is not None and first.base_sequence != expected:
            raise OutOfOrderSequenceNumberError(f"{first.base_sequence}, not {expected}")
        return 0, -1

    def _note(self, headers: list[BatchHeader]) -> None:
        first = headers[0]
        if first.producer_id < 0:
            return
        state = self.producers.get(first.producer_id)
        if state is None or state.epoch != first.producer_epoch:
            state = self.producers[first.producer_id] = ScriptedProducer(first.producer_epoch)
        offset = self.end
        for header in headers:
            records = header.last_offset_delta + 1
            after = (header.base_sequence + records) % 2**31
            state.window = [*state.window[-4:], (header.base_sequence, after, offset)]
            offset += records

    def read(self, offset: int, max_bytes: int) -> bytes:
        read = bytearray()
        for position, header in batches(bytes(self.data)):
            if header.last_offset < offset:
                continue
            if read and len(read) + header.size > max_bytes:
                break
            read += self.data[position : position + header.size]
        return bytes(read)

    def records(self) -> list[Record]:
        return list(records_from(bytes(self.data), 0))


class ScriptedBrokers:
    """Three brokers by default, ids from 1; broker n listens on `broker-n:9092`."""

    services = (Service.DATA, Service.ADMIN, Service.COORDINATOR)

    def __init__(self, partitions: int = 1, brokers: int = 3, topic: str = "flights") -> None:
        self.network = MemoryNetwork()
        self.topic = topic
        self.topic_id = "id-of-" + topic
        self.brokers = list(range(1, brokers + 1))
        self.logs = {
            TopicPartition(topic, p): ScriptedLog(self.brokers[p % brokers])
            for p in range(partitions)
        }
        self.produced: list[tuple[int, ProduceRequest]] = []
        self.fetched: list[FetchRequest] = []
        self.metadata_requests = 0
        self.asked_for_metadata: set[int] = set()
        self.faults: list[Fault] = []
        self.id_faults: list[Fault] = []
        self.given_ids: list[int] = []
        self.fetch_faults: list[Fault] = []
        self.epoch_faults: list[Fault] = []
        self.offset_faults: list[Fault] = []
        self.change = asyncio.Event()
        self._listeners: dict[int, Listener] = {}

    async def __aenter__(self) -> "ScriptedBrokers":
        for broker_id in self.brokers:
            await self.start(broker_id)
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker_id in list(self._listeners):
            await self.stop(broker_id)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"broker-{broker_id}:9092" for broker_id in self.brokers)

    @property
    def runtime(self) -> Runtime:
        network = self.network.node("client")
        return Runtime(SystemClock(), system_randomness(), InlineOffload(), network)

    def log(self, partition: int = 0) -> ScriptedLog:
        return self.logs[TopicPartition(self.topic, partition)]

    async def start(self, broker_id: int) -> None:
        async def handle(request: Any, peer: Peer) -> Any:
            return await self._handle(broker_id, request)

        node = self.network.node(f"broker-{broker_id}")
        self._listeners[broker_id] = await node.listen(
            "CLIENT",
            Address(f"broker-{broker_id}", 9092),
            dict.fromkeys(self.services, handle),
        )

    async def stop(self, broker_id: int) -> None:
        await self._listeners.pop(broker_id).close()

    def kill(self, broker_id: int) -> None:
        """Break the broker's connections, without answers, and refuse new ones."""
        self._listeners.pop(broker_id)
        self.network.kill(f"broker-{broker_id}")

    def elect(self, partition: int, leader: int) -> None:
        """Let a broker lead under a new leader epoch; the old epoch ends at the log's end."""
        log = self.log(partition)
        log.epoch_ends[log.epoch] = log.end
        log.leader, log.epoch = leader, log.epoch + 1

    async def _handle(self, broker_id: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            self.produced.append((broker_id, request))
            answer = await self._fault(self.faults, broker_id, request)
            return answer if answer is not None else self.produce(broker_id, request)
        if isinstance(request, FetchRequest):
            self.fetched.append(request)
            answer = await self._fault(self.fetch_faults, broker_id, request)
            return answer if answer is not None else await self.fetch(broker_id, request)
        if isinstance(request, MetadataRequest):
            self.metadata_requests += 1
            self.asked_for_metadata.add(broker_id)
            return self.metadata(request)
        if isinstance(request, InitProducerIdRequest):
            answer = await self._fault(self.id_faults, broker_id, request)
            self.given_ids.append(1_000 + len(self.given_ids))
            return answer or InitProducerIdResponse(0, self.given_ids[-1], 0)
        if isinstance(request, ListOffsetsRequest):
            answer = await self._fault(self.offset_faults, broker_id, request)
            return answer or self._list_offsets(broker_id, request)
        assert isinstance(request, OffsetForLeaderEpochRequest)
        answer = await self._fault(self.epoch_faults, broker_id, request)
        return answer or self.epoch_ends(request)

    async def _fault(self, faults: list[Fault], broker_id: int, request: Any) -> Any:
        return await faults.pop(0)(broker_id, request) if faults else None

    def produce(self, broker_id: int, request: ProduceRequest) -> ProduceResponse | None:
        """Append as the broker would; None with acks=0."""
        answers = []
        for part in request.partitions:
            answer = ProducedPartition(part.topic, part.partition)
            log = self.logs[TopicPartition(part.topic, part.partition)]
            if log.leader != broker_id:
                answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                answer.current_leader_id, answer.current_leader_epoch = log.leader, log.epoch
            else:
                answer.log_start_offset = log.start
                try:
                    answer.base_offset = log.append(part.records)
                except KafkaError as error:
                    answer.error_code = error.code
            answers.append(answer)
        self.changed()
        return ProduceResponse(answers) if request.acks else None

    async def append_and_fall_silent(self, broker_id: int, request: Any) -> None:
        """A fault: the records are stored, and the answer is lost."""
        self.produce(broker_id, request)
        await asyncio.Event().wait()

    def changed(self) -> None:
        """Wake the parked fetches."""
        self.change.set()
        self.change = asyncio.Event()

    async def fetch(self, broker_id: int, request: FetchRequest) -> FetchResponse:
        deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while True:
            answers = [self._read(broker_id, part) for part in request.partitions]
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or any(a.records or a.error_code for a in answers):
                return FetchResponse(partitions=answers)
            try:
                async with asyncio.timeout(left):
                    await self.change.wait()
            except TimeoutError:
                pass

    def _read(self, broker_id: int, part: Any) -> FetchedPartition:
        log = self.logs[TopicPartition(part.topic, part.partition)]
        answer = FetchedPartition(
            part.topic, part.partition, high_watermark=log.end, log_start_offset=log.start
        )
        if log.leader != broker_id:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif part.current_leader_epoch < log.epoch:
            answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif part.current_leader_epoch > log.epoch:
            answer.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif not log.start <= part.fetch_offset <= log.end:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            answer.records = log.read(part.fetch_offset, part.max_bytes)
        return answer

    def grow(self, count: int) -> None:
        """Let the topic have `count` partitions from now on."""
        for number in range(len(self.logs), count):
            self.logs[TopicPartition(self.topic, number)] = ScriptedLog(self.brokers[0])

    def create_again(self, partitions: int) -> None:
        """The topic is deleted, and created again under another id."""
        self.topic_id += "-again"
        self.logs.clear()
        self.grow(partitions)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = [self.topic] if request.all_topics else request.topics
        topics = [
            self._describe(name)
            if name == self.topic
            else TopicMetadata(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in names
        ]
        brokers = [BrokerInfo(b, f"broker-{b}", 9092) for b in self._listeners]
        return MetadataResponse("scripted", self.brokers[0], brokers, topics)

    def _describe(self, name: str) -> TopicMetadata:
        partitions = [
            PartitionMetadata(
                tp.partition,
                ErrorCode.NONE if log.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                log.leader,
                log.epoch,
                self.brokers,
                self.brokers,
            )
            for tp, log in self.logs.items()
        ]
        return TopicMetadata(name, 0, self.topic_id, False, partitions)

    def _list_offsets(self, broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answers = []
        for part in request.partitions:
            log = self.logs[TopicPartition(part.topic, part.partition)]
            answer = ListedOffset(part.topic, part.partition, leader_epoch=log.epoch)
            if log.leader != broker_id:
                answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif part.timestamp < 0:
                answer.offset = log.end if part.timestamp == -1 else log.start
            else:
                late = [r for r in log.records() if r.timestamp >= part.timestamp]
                if late:
                    answer.offset, answer.timestamp = late[0].offset, late[0].timestamp
            answers.append(answer)
        return ListOffsetsResponse(answers)

    def epoch_ends(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        answers = []
        for part in request.partitions:
            log = self.logs[TopicPartition(part.topic, part.partition)]
            epoch, end = part.leader_epoch, log.epoch_ends.get(part.leader_epoch, log.end)
            if epoch > log.epoch:
                epoch, end = -1, -1
            answers.append(EpochEndOffset(part.topic, part.partition, 0, epoch, end))
        return OffsetForLeaderEpochResponse(answers)


async def never_acknowledged(broker_id: int, request: Any) -> None:
    """A fault: the records are neither stored nor answered."""
    await asyncio.Event().wait()


def refuse(code: ErrorCode) -> Fault:
    """Return a fault that answers a produce or fetch with this error for every partition."""

    async def fault(broker_id: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            return ProduceResponse(
                [ProducedPartition(p.topic, p.partition, code) for p in request.partitions]
            )
        return FetchResponse(
            partitions=[FetchedPartition(p.topic, p.partition, code) for p in request.partitions]
        )

    return fault
