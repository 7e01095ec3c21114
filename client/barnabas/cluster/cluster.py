"""The client's view of the cluster, kept fresh: bootstrap, metadata refresh, channels by broker id.

Producer, consumer and admin each have one. `ClusterMetadata` is the data; this class refreshes it
when something looks stale, spaces the requests, and notifies its listeners.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from barnabas_common.errors import (
    BarnabasError,
    ClosedError,
    LeaderNotAvailableError,
    NotApplied,
    TransportError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.configs import DescribeConfigsRequest
from barnabas_common.messages.groups import FindCoordinatorRequest
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.reassignments import ListPartitionReassignmentsRequest
from barnabas_common.runtime import Address, Channel, Message, Runtime, Service, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.backoff import Backoff
from barnabas.cluster.connections import Connections, unreachable
from barnabas.cluster.lower_epochs import LowerEpochs
from barnabas.cluster.metadata import ClusterMetadata, Leader, TopicInfo
from barnabas.cluster.options import check_topic

logger = logging.getLogger(__name__)

# Long enough for a connection across the world, short enough that a wrong address fails in seconds.
ASK_TIMEOUT = 3.0
# A request is given at least this long, however little time is left.
LEAST_SECONDS = 0.1
# How long a topic may be unknown before that is final: brokers learn of a new topic one by one.
UNKNOWN_TOPIC_GRACE = 2.0
# Requests that are sent to another broker if one does not answer soon, because they change nothing.
# InitProducerId is one of them: a lost answer only wastes an id. (With a transactional id it fences
# the present producer: that is a change.)
_READING = (
    MetadataRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListPartitionReassignmentsRequest,
)


@dataclass(frozen=True)
class ClusterConfig:
    """The options that the three clients have in common; times in milliseconds."""

    bootstrap_servers: tuple[Address, ...]
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    allow_auto_create_topics: bool = True


class Cluster:
    """Bootstrap, metadata and channels of one client.

    `metadata` is replaced as a whole on every update; then the listeners run.
    """

    def __init__(self, config: ClusterConfig, runtime: Runtime) -> None:
        self.config = config
        self.metadata = ClusterMetadata()
        self.last_failure: BarnabasError | None = None
        self.clock = runtime.clock
        self._randomness = runtime.randomness
        self._connections = Connections(runtime.network)
        self.backoff = Backoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.randomness
        )
        self._tasks = TaskScope("cluster")
        self._lower_epochs = LowerEpochs()
        self._topics: dict[str, None] = {}
        self._every_topic = False
        self._wanted = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._failed_recently: dict[Address, None] = {}
        self._asked_in_vain: dict[Address, None] = {}
        self._answered_last: Address | None = None

    async def start(self) -> None:
        """Find the cluster. Raises `NoBrokerReachableError` within seconds if no broker answers."""
        response = await self._connections.first_answer(
            self.config.bootstrap_servers, MetadataRequest(), self._ask_timeout()
        )
        self._merge(response)
        self._tasks.spawn(self._keep_fresh(), "metadata")

    async def close(self) -> None:
        """Stop refreshing the metadata, and close all connections."""
        try:
            await self._tasks.close()
        finally:
            await self._connections.close()

    def check_open(self) -> None:
        """Raise `ClosedError` after `close`: who goes on trying must not go on then."""
        self._connections.check_open()

    def on_update(self, listener: Callable[[], None]) -> None:
        """Call `listener()` after every change of `metadata`."""
        self._listeners.append(listener)

    def watch(self, topics: Iterable[str]) -> None:
        """Keep these topics fresh from now on."""
        self._topics.update(dict.fromkeys(topics))

    def watch_every_topic(self, every: bool) -> None:
        """Whether to keep all topics fresh, as a pattern needs it, and not only those named."""
        self._every_topic = every

    def request_refresh(self) -> None:
        """Refresh stale metadata soon, in the background, spaced by the backoff."""
        self._wanted.set()

    def note_failure(self, broker_id: int) -> None:
        """A call to this broker failed in transit: prefer other brokers, and refresh now."""
        broker = self.metadata.brokers.get(broker_id)
        if broker is not None:
            self._failed_recently[Address(broker.host, broker.port)] = None
        self.request_refresh()

    def learn_leader(self, topic_partition: TopicPartition, broker_id: int, epoch: int) -> bool:
        """Apply a leader named in a refusal; True if it is newer than the known one."""
        metadata = self.metadata.with_leader(topic_partition, Leader(broker_id, epoch))
        if metadata is self.metadata:
            return False
        logger.info("%s is now led by broker %d, epoch %d", topic_partition, broker_id, epoch)
        self._replace(metadata)
        return True

    def channel(self, broker_id: int, service: Service) -> Channel:
        """The channel to a broker. Raises `LeaderNotAvailableError` if its address is unknown."""
        broker = self.metadata.brokers.get(broker_id)
        if broker is None:
            raise LeaderNotAvailableError(f"the address of broker {broker_id} is not known")
        return self._connections.channel(Address(broker.host, broker.port), service)

    def channel_to(self, address: Address, service: Service) -> Channel:
        """The channel to a broker whose address another broker has named."""
        return self._connections.channel(address, service)

    async def topic(self, name: str, timeout: float, count: int = 1) -> TopicInfo:
        """The topic's partitions, requested until known or `timeout` seconds have passed.

        `count`: if fewer are known, the topic may have grown. After the time in which brokers learn
        of that, fewer are returned. The client keeps the topic fresh from then on. A failed lookup
        does not end an earlier `watch`.

        Raises `InvalidArgumentError` for what is no name, and the broker's refusal;
        `UnknownTopicOrPartitionError` earlier, once a topic has been unknown for longer than
        brokers need to learn of a new one.
        """
        check_topic(name)
        start = self.clock.monotonic()
        failures = 0
        while not self._knows(name, count):
            await self._ask_about(name, start + timeout)
            if self._knows(name, count):
                break
            failures += 1
            waited = self.clock.monotonic() - start
            if self._knows(name):
                if waited >= min(timeout, UNKNOWN_TOPIC_GRACE):
                    break
                self._ask_others_first()
            else:
                refusal = self._refusal(name, waited, timeout)
                if refusal is not None:
                    raise refusal
            await asyncio.sleep(self.backoff.seconds(failures))
        self.watch([name])
        return self.metadata.topics[name]

    def _knows(self, name: str, count: int = 1) -> bool:
        info = self.metadata.topics.get(name)
        return info is not None and (count == 1 or info.partition_count >= count)

    async def ask(
        self,
        request: Message,
        timeout: float | None = None,
        service: Service = Service.ADMIN,
        avoid: Address | None = None,
        deadline: float | None = None,
    ) -> Message:
        """Send a request to any broker that answers; the one that answered last is first.

        `avoid`: a broker to ask after all others, because its view may be out of date. `deadline`:
        after this time by the clock, a broker gets little more time to answer.

        Brokers learn of changes one by one: a client that stays with one broker sees no older
        state than before, and finds the topic that it has just created.

        If a broker may have applied the request, no other is asked: `MaybeApplied` is raised,
        unless the request only reads.
        """
        failures: dict[Address, BarnabasError] = {}
        for address in self._candidates(avoid):
            try:
                channel = self._connections.channel(address, service)
                limit = self.time_for(request, timeout)
                if deadline is not None:
                    limit = min(limit, self.time_left(deadline))
                answer = await channel.call(request, limit)
            except TransportError as error:
                failures[address] = error
                self._failed_recently[address] = None
                if not may_ask_another(request, error):
                    raise
            else:
                self._failed_recently.pop(address, None)
                self._answered_last = address
                return answer
        raise unreachable(failures)

    async def refresh(
        self, request: MetadataRequest, deadline: float | None = None
    ) -> MetadataResponse:
        """Send the request, merge the answer into the metadata, and return it."""
        response: MetadataResponse = await self.ask(request, deadline=deadline)
        self._merge(response, every_topic=request.all_topics)
        return response

    async def _ask_about(self, name: str, deadline: float) -> None:
        allow = self.config.allow_auto_create_topics
        try:
            await self.refresh(MetadataRequest([name], allow_auto_topic_creation=allow), deadline)
            self.last_failure = None
        except ClosedError:
            raise
        except BarnabasError as error:
            self.last_failure = error

    def _refusal(self, name: str, waited: float, timeout: float) -> BarnabasError | None:
        """The error to raise about an unknown topic, once its time is over."""
        code = self.metadata.errors.get(name, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        retriable = ErrorCode(code).retriable
        patience = min(timeout, UNKNOWN_TOPIC_GRACE) if unknown else timeout
        if self.last_failure is not None:
            return self.last_failure if waited >= timeout else None
        if retriable and waited < patience:
            return None
        return error_for(code, f"topic {name!r}, after {waited:.1f} s")

    async def _keep_fresh(self) -> None:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(self.config.metadata_max_age_ms / 1000):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            before = self.metadata
            try:
                await self.refresh(MetadataRequest(list(self._topics), self._every_topic))
                self.last_failure = None
            except BarnabasError as error:
                self.last_failure = error
                self._wanted.set()
                level = logging.WARNING if failures == 0 else logging.DEBUG
                logger.log(level, "metadata could not be refreshed, will try again: %s", error)
            if self.metadata != before:
                failures = 0
                self._asked_in_vain.clear()
            else:
                failures += 1
                self._ask_others_first()
            await asyncio.sleep(self.backoff.seconds(failures))

    def _ask_others_first(self) -> None:
        """Nothing changed: the broker that answered last may be isolated, and those that failed may
        have recovered. Isolated brokers name only each other, so each is asked once in a round."""
        if self._answered_last is not None:
            self._asked_in_vain[self._answered_last] = None
        self._answered_last = None
        asked = {*self._asked_in_vain, *self._failed_recently}
        if asked.issuperset(self._candidates(None)):
            self._asked_in_vain.clear()
        self._failed_recently = dict(self._asked_in_vain)

    def _merge(self, response: MetadataResponse, every_topic: bool = False) -> None:
        believed = self._lower_epochs.believed(self.metadata, response, self.clock.monotonic())
        self._replace(self.metadata.merged(response, every_topic, believed))

    def _replace(self, metadata: ClusterMetadata) -> None:
        self.metadata = metadata
        for listener in self._listeners:
            listener()

    def _candidates(self, avoid: Address | None) -> list[Address]:
        """The broker that answered last, then from a random one on; failed ones come last."""
        brokers = [Address(b.host, b.port) for b in self.metadata.brokers.values()]
        if brokers:
            turn = self._randomness.randrange(len(brokers))
            brokers = brokers[turn:] + brokers[:turn]
        every = list(dict.fromkeys([*brokers, *self.config.bootstrap_servers]))
        last = self._answered_last
        return sorted(
            every,
            key=lambda address: (
                address in self._failed_recently,
                address == avoid,
                address != last,
            ),
        )

    @property
    def request_timeout(self) -> float:
        """How long one request may take, in seconds."""
        return self.config.request_timeout_ms / 1000

    def request_time(self, deadline: float) -> float:
        """How long a request may take that should be answered by then, in seconds."""
        return min(self.request_timeout, self.time_left(deadline))

    def time_left(self, deadline: float) -> float:
        """The seconds until then, and never less than a request needs as a rule."""
        return max(deadline - self.clock.monotonic(), LEAST_SECONDS)

    def time_for(self, request: Message, timeout: float | None) -> float:
        """Seconds for one broker's answer: `timeout`, or a few if another broker may be asked."""
        if timeout is None or only_reads(request):
            return self._ask_timeout()
        return timeout

    def _ask_timeout(self) -> float:
        return min(ASK_TIMEOUT, self.request_timeout)


def may_ask_another(request: Message, error: TransportError) -> bool:
    """Whether a request that failed in transit may be sent to another broker."""
    return isinstance(error, NotApplied) or only_reads(request)


def only_reads(request: Message) -> bool:
    """Whether the request changes nothing, however often it is sent."""
    if isinstance(request, InitProducerIdRequest):
        return not request.transactional_id
    return isinstance(request, _READING)
