"""A broker that is not the controller watches the one that is.

When the controller's broker dies there is nobody to notice it as the controller notices the death
of others. So every other broker holds a control stream to it, and judges by the same rule.
"""

import logging
from collections.abc import Callable

from barnabas.runtime import Channel, Runtime, Service, TaskScope

from barnabas_controller.config import ControllerConfig
from barnabas_controller.controller_election import Incumbent, broker_of
from barnabas_controller.lifeline import Lifeline, Testimony
from barnabas_controller.store import Store
from barnabas_controller.znodes import Broker

logger = logging.getLogger(__name__)


class ControllerWatch:
    """Follows one controller at a time; `on_evidence(incumbent, why)` must only enqueue."""

    def __init__(
        self,
        runtime: Runtime,
        config: ControllerConfig,
        on_evidence: Callable[[Incumbent, str], None],
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._on_evidence = on_evidence
        self._incumbent: Incumbent | None = None
        self._lifeline: Lifeline | None = None
        self._channel: Channel | None = None
        self._tasks: TaskScope | None = None

    @property
    def testimony(self) -> Testimony | None:
        """What is known of the last controller followed; None if there was none."""
        return self._lifeline.testimony if self._lifeline is not None else None

    async def follow(self, store: Store, incumbent: Incumbent) -> None:
        """Watch this controller from now on, and no other."""
        if incumbent == self._incumbent or not self._config.suspects_on_evidence:
            return
        await self.close()
        self._incumbent = incumbent
        broker = await broker_of(store, incumbent)
        listener = self._config.inter_broker_listener
        endpoint = broker.endpoint(listener) if broker is not None else None
        if broker is None or endpoint is None:
            logger.info("controller %d cannot be watched", incumbent.broker_id)
            return
        network = self._runtime.network
        self._channel = network.connect(endpoint.address, Service.CONTROL)

        def dead(_: Broker, why: str) -> None:
            self._on_evidence(incumbent, why)

        now = self._runtime.clock.monotonic
        self._lifeline = Lifeline(network, self._channel, now, broker, dead)
        self._tasks = TaskScope(f"watch of controller {broker.broker_id}")
        self._tasks.spawn(self._lifeline.run(), "lifeline")

    async def close(self) -> None:
        """Watch nobody."""
        tasks, channel = self._tasks, self._channel
        self._incumbent = self._lifeline = self._channel = self._tasks = None
        if tasks is not None:
            await tasks.close()
        if channel is not None:
            await channel.close()
