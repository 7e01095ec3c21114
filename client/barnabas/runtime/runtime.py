"""Everything a component may ask of the world, as one value handed down from the top."""

from dataclasses import dataclass

from barnabas.runtime.clock import Clock
from barnabas.runtime.network import Network
from barnabas.runtime.offload import Offload
from barnabas.runtime.pauses import Pauses
from barnabas.runtime.randomness import Randomness


@dataclass(frozen=True)
class Runtime:
    """Time, chance, blocking work and the network; `pauses` only where races are to be made exact.

    Chosen in one place: `server.py` for a broker, the constructor for a client, the cluster for a
    simulation. Tasks are spawned through `TaskScope`, which needs no seam: it runs on whatever
    event loop is there.
    """

    clock: Clock
    randomness: Randomness
    offload: Offload
    network: Network
    pauses: Pauses | None = None
