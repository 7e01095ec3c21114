"""The seams: time, randomness, tasks, blocking work and the network.

Code outside this package reads no clock, draws no random number and opens no socket itself, so that
the simulator can replace all of these under unchanged code. The gRPC adapter is imported under its
own name (`barnabas_common.transport.grpc_network`), never from here.
"""

from barnabas_common.runtime.clock import Clock, SystemClock
from barnabas_common.runtime.network import (
    Address,
    Channel,
    DropConnection,
    Handler,
    Listen,
    Listener,
    Message,
    Network,
    Peer,
    ProbeResult,
    Service,
)
from barnabas_common.runtime.offload import InlineOffload, Offload, ThreadOffload
from barnabas_common.runtime.pauses import PausePoint, Pauses
from barnabas_common.runtime.randomness import Randomness, new_uuid, system_randomness
from barnabas_common.runtime.runtime import Runtime
from barnabas_common.runtime.tasks import TaskScope

__all__ = [
    "Address",
    "Channel",
    "Clock",
    "DropConnection",
    "Handler",
    "InlineOffload",
    "Listen",
    "Listener",
    "Message",
    "Network",
    "Offload",
    "PausePoint",
    "Pauses",
    "Peer",
    "ProbeResult",
    "Randomness",
    "Runtime",
    "Service",
    "SystemClock",
    "TaskScope",
    "ThreadOffload",
    "new_uuid",
    "system_randomness",
]
