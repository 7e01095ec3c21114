"""Everything a component may use of the outside world, as one value passed down from the top."""

from dataclasses import dataclass

from barnabas_common.runtime.clock import Clock
from barnabas_common.runtime.network import Network
from barnabas_common.runtime.offload import Offload
from barnabas_common.runtime.pauses import Pauses
from barnabas_common.runtime.randomness import Randomness


@dataclass(frozen=True)
class Runtime:
    """Time, randomness, blocking work and the network; `pauses` only for tests of exact races.

    Chosen in one place: `server.py` for a broker, the constructor for a client, the cluster for a
    simulation. Tasks are spawned through `TaskScope`, which needs no interface: it runs on any
    event loop.
    """

    clock: Clock
    randomness: Randomness
    offload: Offload
    network: Network
    pauses: Pauses | None = None
