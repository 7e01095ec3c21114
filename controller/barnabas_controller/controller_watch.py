"""Every other broker watches the controller's broker, by the rule that the controller uses.

The controller watches all brokers except its own, so only the others can detect its failure.
"""

import logging
from collections.abc import Callable

from barnabas_common.runtime import Channel, Runtime, Service, TaskScope

from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_election import ControllerZnode, broker_of
from barnabas_controller.detection.failure_detector import FailureDetector, PeerObservation
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import Broker

logger = logging.getLogger(__name__)


class ControllerWatch:
    """Watches one controller at a time; `on_suspicion(controller_znode, why)` must only enqueue."""

    def __init__(
        self,
        runtime: Runtime,
        config: ControllerConfig,
        on_suspicion: Callable[[ControllerZnode, str], None],
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._on_suspicion = on_suspicion
        self._controller_znode: ControllerZnode | None = None
        self._failure_detector: FailureDetector | None = None
        self._channel: Channel | None = None
        self._tasks: TaskScope | None = None

    @property
    def observation(self) -> PeerObservation | None:
        """What has been observed of the controller that is watched; None if none is."""
        return self._failure_detector.observation if self._failure_detector is not None else None

    async def follow(self, store: Store, controller_znode: ControllerZnode) -> None:
        """Watch this controller instead of the previous one, if failure detection is enabled."""
        if controller_znode == self._controller_znode or not self._config.suspects_on_evidence:
            return
        await self.close()
        self._controller_znode = controller_znode
        broker = await broker_of(store, controller_znode)
        listener = self._config.inter_broker_listener
        endpoint = broker.endpoint(listener) if broker is not None else None
        if broker is None or endpoint is None:
            logger.info("controller %d cannot be watched", controller_znode.broker_id)
            return
        network = self._runtime.network
        self._channel = network.connect(endpoint.address, Service.CONTROL)

        def suspect(_: Broker, why: str) -> None:
            self._on_suspicion(controller_znode, why)

        now = self._runtime.clock.monotonic
        self._failure_detector = FailureDetector(network, self._channel, now, broker, suspect)
        self._tasks = TaskScope(f"watch of controller {broker.broker_id}")
        self._tasks.spawn(self._failure_detector.run(), "failure detector")

    async def close(self) -> None:
        """Stop watching."""
        tasks, channel = self._tasks, self._channel
        self._controller_znode = self._failure_detector = self._channel = self._tasks = None
        if tasks is not None:
            await tasks.close()
        if channel is not None:
            await channel.close()
