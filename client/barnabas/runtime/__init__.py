"""The seams: time, randomness, tasks, blocking work and the network.

Nothing outside this package may read a clock, draw a random number or open a socket, so that the
simulator can put a virtual world under unchanged code. The gRPC adapter is imported by its own
name (`barnabas.runtime.grpc_network`), never from here.
"""

from barnabas.runtime.clock import Clock, SystemClock
from barnabas.runtime.network import (
    Address,
    Channel,
    DropConnection,
    Handler,
    Knock,
    Listen,
    Listener,
    Message,
    Network,
    Peer,
    Service,
)
from barnabas.runtime.offload import InlineOffload, Offload, ThreadOffload
from barnabas.runtime.pauses import PausePoint, Pauses
from barnabas.runtime.randomness import Randomness, new_uuid, system_randomness
from barnabas.runtime.runtime import Runtime
from barnabas.runtime.tasks import TaskScope

__all__ = [
    "Address",
    "Channel",
    "Clock",
    "DropConnection",
    "Handler",
    "InlineOffload",
    "Knock",
    "Listen",
    "Listener",
    "Message",
    "Network",
    "Offload",
    "PausePoint",
    "Pauses",
    "Peer",
    "Randomness",
    "Runtime",
    "Service",
    "SystemClock",
    "TaskScope",
    "ThreadOffload",
    "new_uuid",
    "system_randomness",
]
