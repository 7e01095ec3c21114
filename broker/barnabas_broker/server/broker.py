"""One broker: its parts, started in Kafka's order and stopped in the reverse order.

`Broker` names no real clock, socket, file or ZooKeeper: `main.py` passes the real ones, the
simulator its own.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import ControlledShutdownRequest, ControlledShutdownResponse
from barnabas_common.runtime import Listen, Listener, Runtime, Service, TaskScope
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.config import ControllerConfig
from barnabas_controller.store import znodes
from barnabas_controller.zookeeper.session import Connect

from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.router import handlers_of
from barnabas_broker.config import Config, DynamicConfig, keys
from barnabas_broker.coordinator.group.coordinator import CoordinatorContext, GroupCoordinator
from barnabas_broker.coordinator.internal_topic import InternalTopic, TopicShape
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_broker.coordinator.transaction.coordinator import (
    TransactionContext,
    TransactionCoordinator,
)
from barnabas_broker.coordinator.transaction.verification_channel import VerificationChannel
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.replica_manager import ReplicaContext, ReplicaManager
from barnabas_broker.server.compaction_report import report_compaction
from barnabas_broker.server.config_changes import ConfigChanges, ConfigListeners
from barnabas_broker.server.connection_watch import ConnectionWatch, CountConnections
from barnabas_broker.server.internal_topics import may_exist, shape_of
from barnabas_broker.server.isr_writer import LeaderFacts, ZooKeeperIsrWriter
from barnabas_broker.server.log_dir_stamps import LogDirStamps
from barnabas_broker.server.membership import Membership, MembershipConfig
from barnabas_broker.server.session_file import SessionFile
from barnabas_broker.server.start_report import report_start

logger = logging.getLogger(__name__)

# Time for the requests in progress when the broker stops.
_LISTENER_GRACE_SECONDS = 0.5


@dataclass(frozen=True)
class World:
    """The parts that are real in production and simulated in a simulation.

    `count_connections` is None where the number of connections is not limited.
    """

    runtime: Runtime
    disk: Disk
    listen: Listen
    connect_zookeeper: Connect
    count_connections: CountConnections | None = None


class Broker:
    """`start` it, wait for `failed` or a stop request, then `stop` it."""

    def __init__(self, config: Config, world: World) -> None:
        config.check_broker()
        self.config = DynamicConfig(config.properties)
        self.broker_id = config[keys.BROKER_ID]
        self._world = world
        self._runtime = world.runtime
        self._listeners: list[Listener] = []
        self._opened = AsyncExitStack()
        self.failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.events = EventLog(self.broker_id, world.runtime.clock.wall_ms)
        self.log_manager = LogManager(
            self.config,
            world.runtime,
            world.disk,
            on_directory_failure=self._directory_failed,
            on_descriptors=self._descriptors_changed,
            on_compaction=lambda report: report_compaction(self.events, report),
        )
        self._connection_watch: ConnectionWatch | None = None
        self._session_file = SessionFile(world.disk, self.log_manager.live_log_dirs)
        self.metadata_cache = MetadataCache()
        self.membership = Membership(
            world.runtime,
            world.connect_zookeeper,
            self._membership_config(),
            self._fail,
            self.events,
        )
        self.log_dir_stamps = LogDirStamps(
            self.log_manager,
            lambda: self.membership.store,
            self.broker_id,
            self.config[keys.LOG_DIR_STAMP_INTERVAL_MS] / 1000,
            self.events,
            lambda: self.membership.ahead_since,
        )
        self._verifications = self._verification_channel()
        self.replica_manager = ReplicaManager(self._replica_context())
        self.groups = GroupCoordinator(self._coordinator_context())
        self._producer_ids = ProducerIdManager(
            self.broker_id,
            lambda: self.membership.store,
            lambda: self.log_dir_stamps.is_ahead,
            world.runtime.clock.wall_ms,
        )
        self.transactions = TransactionCoordinator(self._transaction_context())
        self.config_changes = ConfigChanges(
            self.config, self.broker_id, self.events, self._config_listeners()
        )

    async def start(self) -> None:
        """Lock the directories, join the cluster, answer requests.

        If the start fails or is cancelled, everything that was opened is closed.

        Raises:
            InvalidConfig: the settings contradict each other.
            DirectoryLockedError: another process uses a data directory.
            InconsistentDirectoryError: a data directory belongs to another cluster or broker.
            DuplicateBrokerId, EndpointTaken: another broker uses the id or an address.
            ZooKeeperUnreachable: no server answered in time.
            OSError: a port is in use, or all data directories have failed.
        """
        try:
            await self._start()
        except BaseException:
            await self._opened.aclose()
            raise

    async def _start(self) -> None:
        """Enter each part in `_opened` before it starts; `_opened` closes them in reverse order."""
        opened = self._opened
        opened.callback(self.log_manager.unlock_directories)
        self.log_manager.lock_directories()
        predecessors = self._session_file.read()
        opened.push_async_callback(self.membership.leave)
        cluster_id = await self.membership.connect(predecessors)
        self.log_manager.check_identity(cluster_id)
        await self.log_dir_stamps.compare()
        await self.log_manager.start()
        opened.push_async_callback(self.log_manager.stop)
        report_start(self.events, self.log_manager, is_first=not predecessors)
        opened.push_async_callback(self.replica_manager.shutdown)
        await self.replica_manager.start()
        self.groups.start()
        self.transactions.start()
        opened.push_async_callback(self._close_listeners)
        opened.push_async_callback(self._verifications.close)
        opened.push_async_callback(self.transactions.close)
        opened.push_async_callback(self.groups.close)
        await self._open_listeners(cluster_id)
        self._watch_connections()
        opened.push_async_callback(self.config_changes.close)
        await self.membership.join(self._registration())
        await self.log_manager.write_history(self.membership.unbroken_since)
        await self._producer_ids.take_first_block()
        opened.push_async_callback(self.log_dir_stamps.close)
        await self.log_dir_stamps.start()
        logger.info("broker %d serves", self.broker_id)

    async def stop(self) -> None:
        """Move leaderships, then stop the parts; every log is flushed and closed."""
        why = self.failed.result() if self.failed.done() else "it was told to stop"
        self.events.record(EventKind.BROKER_STOPPING, why)
        if self.config[keys.CONTROLLED_SHUTDOWN_ENABLE] and self.membership.broker_epoch >= 0:
            await self._controlled_shutdown()
        self.events.close()
        await self.membership.stay_out()
        await self._opened.aclose()
        logger.info("broker %d stopped", self.broker_id)

    def _watch_connections(self) -> None:
        if self._world.count_connections is not None:
            count, offload = self._world.count_connections, self._runtime.offload
            self._connection_watch = ConnectionWatch(self.events, offload, count)
            self._connection_watch.start()

    async def _close_listeners(self) -> None:
        if self._connection_watch is not None:
            await self._connection_watch.close()
        for listener in self._listeners:
            await listener.close(_LISTENER_GRACE_SECONDS)

    async def _open_listeners(self, cluster_id: str) -> None:
        parts = BrokerParts(
            broker_id=self.broker_id,
            config=self.config,
            runtime=self._runtime,
            metadata_cache=self.metadata_cache,
            replica_manager=self.replica_manager,
            groups=self.groups,
            transactions=self.transactions,
            producer_ids=self._producer_ids,
            controller=lambda: self.membership.controller,
            store=lambda: self.membership.store,
            cluster_id=cluster_id,
            registered=self.membership.registered,
            events=self.events,
            reregister=self.membership.reregister,
        )
        for listener in self.config.listeners:
            inter_broker = listener.name == self.config.inter_broker_listener
            handlers = handlers_of(parts, inter_broker=inter_broker)
            self._listeners.append(
                await self._world.listen(listener.name, listener.address, handlers)
            )

    def _registration(self) -> znodes.Broker:
        history = self.log_manager.history()
        bound = {
            listener.name: serving.address
            for listener, serving in zip(self.config.listeners, self._listeners, strict=True)
        }
        return znodes.Broker(
            broker_id=self.broker_id,
            endpoints=tuple(
                znodes.Endpoint(
                    advertised.name,
                    advertised.address.host,
                    advertised.address.port or bound[advertised.name].port,
                )
                for advertised in self.config.advertised_listeners
            ),
            rack=self.config[keys.BROKER_RACK],
            unbroken_since=history.unbroken_since or znodes.UNBROKEN_SINCE_REGISTRATION,
            is_new=history.is_new,
            ahead_since=self.log_dir_stamps.ahead_since,
        )

    def _replica_context(self) -> ReplicaContext:
        return ReplicaContext(
            runtime=self._runtime,
            config=self.config,
            broker_id=self.broker_id,
            log_manager=self.log_manager,
            metadata_cache=self.metadata_cache,
            broker_epoch=lambda: self.membership.broker_epoch,
            topic_config=lambda topic: self.config_changes.topic_overrides(topic),
            topic_id=self.membership.topic_id,
            events=self.events,
            ask_for_roles=self.membership.ask_for_roles,
            replica_lost=self.membership.reregister_after_loss,
            isr_writer=ZooKeeperIsrWriter(
                lambda: self.membership.store, self._leader_facts(), self.events
            ),
            ask_transaction_coordinator=self._verifications.ask,
        )

    def _coordinator_context(self) -> CoordinatorContext:
        return CoordinatorContext(
            self._runtime,
            self.config,
            self.replica_manager,
            self.metadata_cache,
            self.events,
            self._read_shape,
            self._may_exist,
        )

    async def _may_exist(self, partition: TopicPartition) -> bool:
        return await may_exist(partition, self.membership.store)

    async def _read_shape(self, topic: str) -> TopicShape | None:
        return await shape_of(topic, self.membership.store)

    def _transaction_context(self) -> TransactionContext:
        return TransactionContext(
            self._runtime,
            self.config,
            self.replica_manager,
            self.metadata_cache,
            self.events,
            self._producer_ids.generate,
            self._verifications.topic,
            self._may_exist,
        )

    def _verification_channel(self) -> VerificationChannel:
        network, listener = self._runtime.network, self.config.inter_broker_listener
        topic = InternalTopic(TRANSACTION_STATE_TOPIC, self.metadata_cache, self._read_shape)
        return VerificationChannel(network, self.metadata_cache, topic, listener)

    def _leader_facts(self) -> LeaderFacts:
        config = self._controller_config
        return LeaderFacts(
            broker_id=self.broker_id,
            broker_epoch=lambda: self.membership.broker_epoch,
            hears_a_broker=lambda: self.replica_manager.hears_a_broker(),
            topic_id=lambda partition: self.replica_manager.topic_id(partition),
            min_insync=lambda: config().min_insync_replicas,
            eligible_leader_replicas=config().eligible_leader_replicas_enable,
            take_role=lambda request: self.replica_manager.become_leader_or_follower(request),
        )

    def _membership_config(self) -> MembershipConfig:
        return MembershipConfig(
            session_timeout_ms=self.config[keys.ZOOKEEPER_SESSION_TIMEOUT_MS],
            connection_timeout_ms=self.config.zookeeper_connection_timeout_ms,
            controller=self._controller_config,
            keep_session=self._session_file.write,
            on_session=lambda store: self.config_changes.follow(store),
            suspects=lambda: self.metadata_cache.suspects,
            highest_epoch=lambda: self.replica_manager.highest_controller_epoch,
            newest_state=self.metadata_cache.newest_state,
        )

    def _controller_config(self) -> ControllerConfig:
        config = self.config
        return ControllerConfig(
            inter_broker_listener=config.inter_broker_listener,
            delete_topic_enable=config[keys.DELETE_TOPIC_ENABLE],
            unclean_leader_election_enable=config[keys.UNCLEAN_LEADER_ELECTION_ENABLE],
            auto_leader_rebalance_enable=config[keys.AUTO_LEADER_REBALANCE_ENABLE],
            leader_imbalance_per_broker_percentage=config[
                keys.LEADER_IMBALANCE_PER_BROKER_PERCENTAGE
            ],
            leader_imbalance_check_interval_seconds=float(
                config[keys.LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS]
            ),
            request_timeout=config[keys.CONTROLLER_SOCKET_TIMEOUT_MS] / 1000,
            suspects_on_evidence=config[keys.FAILURE_DETECTION] == "evidence",
            min_insync_replicas=config[keys.MIN_INSYNC_REPLICAS],
            eligible_leader_replicas_enable=(
                config[keys.ELIGIBLE_LEADER_REPLICAS_ENABLE]
                and config[keys.HIGH_WATERMARK_MIN_ISR_GATE_ENABLE]
            ),
            eligible_leader_replicas_wait=(config[keys.ELIGIBLE_LEADER_REPLICAS_WAIT_MS] / 1000),
        )

    def _config_listeners(self) -> ConfigListeners:
        return ConfigListeners(
            open_topics=self.log_manager.configured_topics,
            configure_logs=self.replica_manager.configure_logs,
            topic_changed=self._topic_changed,
            broker_changed=self.membership.reconfigure_controller,
            usable_again=self.membership.ask_for_roles,
        )

    def _topic_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        controller = self.membership.controller
        config = self.config.log_config(overrides)
        if controller is not None and config.unclean_leader_election_enable:
            controller.unclean_elections_enabled(topic)

    async def _controlled_shutdown(self) -> None:
        """Have all leaderships moved. Without ZooKeeper no controller can do that; if only this
        broker is cut off, the others elect new leaders as soon as it has ended."""
        watch = TaskScope("controlled shutdown")
        try:
            async with asyncio.timeout(None) as limit:
                watch.spawn(self._end_when_cut_off(limit), "ZooKeeper")
                await self._move_leaderships()
        except TimeoutError:
            logger.warning("ZooKeeper does not serve this broker: it keeps its leaderships")
        finally:
            await watch.close()

    async def _end_when_cut_off(self, limit: asyncio.Timeout) -> None:
        await self.membership.cut_off()
        limit.reschedule(asyncio.get_running_loop().time())

    async def _move_leaderships(self) -> None:
        retries = self.config[keys.CONTROLLED_SHUTDOWN_MAX_RETRIES]
        pause = self.config[keys.CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS] / 1000
        for attempt in range(1, retries + 1):
            problem = await self._ask_controlled_shutdown()
            if problem is None:
                return
            logger.warning("controlled shutdown, attempt %d: %s", attempt, problem)
            if attempt < retries:
                await asyncio.sleep(pause)
        logger.warning("stopping without having moved every leadership")

    async def _ask_controlled_shutdown(self) -> str | None:
        """Ask the controller once; return what went wrong, or None once all leaderships moved."""
        controller_id = self.metadata_cache.controller_id
        address = self.metadata_cache.address_of(controller_id, self.config.inter_broker_listener)
        if address is None:
            return "no controller is known"
        channel = self._runtime.network.connect(address, Service.CONTROL)
        request = ControlledShutdownRequest(self.broker_id, self.membership.broker_epoch)
        try:
            response: ControlledShutdownResponse = await channel.call(
                request, self.config[keys.CONTROLLER_SOCKET_TIMEOUT_MS] / 1000
            )
        except TransportError as error:
            return f"controller {controller_id} at {address}: {error}"
        finally:
            await channel.close()
        if response.error_code:
            return f"controller {controller_id}: {ErrorCode(response.error_code).name}"
        if response.remaining:
            return f"{len(response.remaining)} partitions have no other in-sync replica"
        return None

    def _directory_failed(self, directory: str, error: OSError) -> None:
        self.events.record(EventKind.LOG_DIRECTORY_FAILED, str(error), directory=directory)
        self.replica_manager.directory_failed(directory)
        if self.log_manager.live_log_dirs():
            self.membership.ask_for_roles()
        else:
            self._fail(f"all log directories have failed; the last: {directory}: {error}")

    def _descriptors_changed(self, error: OSError | None) -> None:
        """`error` is None once files can be opened again: the refused roles are requested again."""
        if error is not None:
            self.events.record(
                EventKind.DESCRIPTORS_EXHAUSTED,
                f"{error}; work that needs a file is refused or delayed, and nothing is lost"
                " (raise the limit of open files, or lower max.connections)",
            )
        else:
            self.events.record(EventKind.DESCRIPTORS_FREED, "files can be opened again")
            self.membership.ask_for_roles()

    def _fail(self, reason: str) -> None:
        """Report that the broker cannot continue; the caller of `start` then stops it."""
        if not self.failed.done():
            self.failed.set_result(reason)
