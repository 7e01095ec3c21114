"""Ask the controller, wherever it is now: for requests that only the controller answers."""

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas_common.errors import LeaderNotAvailableError, NotControllerError, TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.runtime import Service

from barnabas.cluster.cluster import Cluster, may_ask_another


def whole_request_refused(response: Any) -> bool:
    """Whether the broker refused the whole request because it is not the controller."""
    return bool(response.error_code == ErrorCode.NOT_CONTROLLER)


async def ask_controller(
    cluster: Cluster,
    request: Any,
    timeout: float,
    patience: float,
    not_controller: Callable[[Any], bool] = whole_request_refused,
) -> Any:
    """The controller's answer; each attempt takes up to `timeout` s (see `Cluster.time_for`).

    Looks for another controller for up to `patience` s while the asked broker is not the
    controller, or does not answer. Raises NotControllerError if none was found, and MaybeApplied
    for a request that was sent and not answered: it may have been applied, so it is not sent again
    (unless it only reads).
    """
    deadline = cluster.clock.monotonic() + patience
    failures = 0
    why = "there is no controller now"
    while True:
        controller_id = (await cluster.refresh(MetadataRequest())).controller_id
        try:
            channel = cluster.channel(controller_id, Service.ADMIN)
            response = await channel.call(request, cluster.time_for(request, timeout))
            if not not_controller(response):
                return response
            why = "there is no controller now"
        except LeaderNotAvailableError:
            cluster.note_failure(controller_id)
        except TransportError as error:
            cluster.note_failure(controller_id)
            if not may_ask_another(request, error):
                raise
            why = f"the controller, broker {controller_id}, does not answer: {error}"
        failures += 1
        pause = cluster.backoff.seconds(failures)
        if cluster.clock.monotonic() + pause >= deadline:
            raise NotControllerError(why)
        await asyncio.sleep(pause)
