"""Checks each request of a controller to a broker: fenced by epoch, meant for this incarnation."""

from collections.abc import Callable

from barnabas_broker.server.broker import Broker
from barnabas_common.messages.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas_common.runtime import Message

from barnabas_simulator.cluster import Observer
from barnabas_simulator.invariants import control_rules
from barnabas_simulator.invariants.findings import Findings


class ControllerRequests:
    """An observer of the service CONTROL."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._accepted: dict[Broker, int] = {}  # the newest controller epoch of each

    def __call__(self, broker: Broker, request: Message) -> Callable[[Message | None], None]:
        if not isinstance(
            request, LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest
        ):
            return lambda _: None
        name = f"{type(request).__name__} to broker {broker.broker_id}"
        newest, own = self._accepted.get(broker, 0), broker.membership.broker_epoch
        hold = self._findings.hold

        def answered(response: Message | None) -> None:
            answer = int(getattr(response, "error_code", 0))
            epoch = own if own >= 0 else broker.membership.broker_epoch
            sent_by, meant_for = request.controller_epoch, request.broker_epoch
            hold(None, control_rules.orders_are_fenced, name, sent_by, newest, answer)
            rule = control_rules.requests_are_for_this_incarnation
            hold(None, rule, name, meant_for, epoch, answer)
            if not answer:
                self._accepted[broker] = max(sent_by, self._accepted.get(broker, 0))

        return answered


def all_of(*observers: Observer) -> Observer:
    """Show each request, and its answer, to several observers."""

    def observe(broker: Broker, request: Message) -> Callable[[Message | None], None]:
        answered = [observer(broker, request) for observer in observers]

        def tell(response: Message | None) -> None:
            for told in answered:
                told(response)

        return tell

    return observe
