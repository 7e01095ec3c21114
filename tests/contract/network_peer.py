"""A peer for the network's contract tests: its handler does what the request's topic says.

It also runs as a separate process (`python network_peer.py PORT`) that a test can kill.
"""

import asyncio
import sys
from dataclasses import dataclass, field, fields
from typing import Any, get_args, get_origin, get_type_hints

from barnabas_broker.rpc.grpc_server import grpc_listen
from barnabas_common.messages import SERVICES, ProduceRequest, ProduceResponse
from barnabas_common.messages.produce import ProducedPartition, ProducePartition
from barnabas_common.runtime import Address, DropConnection, Handler, Peer, Service

SAMPLES: dict[Any, Any] = {int: 7, str: "t", bytes: b"b", bool: True}


@dataclass
class ScriptedPeer:
    """Handlers for every service, and the requests that they received."""

    received: list[Any] = field(default_factory=list)
    senders: list[Peer] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    permits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def handlers(self, *services: Service) -> dict[Service, Handler]:
        return {service: self._handler(service) for service in services or Service}

    def _handler(self, service: Service) -> Handler:
        async def handle(request: Any, peer: Peer) -> Any:
            self.received.append(request)
            self.senders.append(peer)
            if isinstance(request, ProduceRequest):
                return await self._produce(request)
            return filled(SERVICES[service][type(request)])

        return handle

    async def _produce(self, request: ProduceRequest) -> ProduceResponse | None:
        topic = request.partitions[0].topic
        verb, _, argument = topic.partition(":")
        if verb == "wait":
            await self.gate.wait()
        elif verb == "permit":
            await self.permits.acquire()
        elif verb == "sleep":
            await asyncio.sleep(float(argument))
        elif verb == "drop":
            raise DropConnection
        elif verb == "fail":
            raise ZeroDivisionError("planted")
        self.finished.append(topic)
        if request.acks == 0:
            return None
        text = "x" * int(argument) if verb == "answer" else topic
        return ProduceResponse([ProducedPartition(text, request.partitions[0].partition)])


def filled(cls: type[Any]) -> Any:
    """Return a message of this class in which no field is empty."""
    hints = get_type_hints(cls)
    return cls(**{each.name: _sample(hints[each.name]) for each in fields(cls)})


def _sample(hint: Any) -> Any:
    if get_origin(hint) is list:
        return [_sample(get_args(hint)[0])]
    return SAMPLES[hint] if hint in SAMPLES else filled(hint)


def produce(topic: str, partition: int = 0, records: bytes = b"", acks: int = 1) -> ProduceRequest:
    return ProduceRequest(acks, 1000, [ProducePartition(topic, partition, records)])


async def _serve(port: int) -> None:
    handlers = ScriptedPeer().handlers(Service.DATA)
    listener = await grpc_listen()("PEER", Address("127.0.0.1", port), handlers)
    print(listener.address.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
