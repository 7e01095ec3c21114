"""Everything a component may use of the outside world, as one value passed down from the top."""

from dataclasses import dataclass

from barnabas_common.runtime.clock import Clock
from barnabas_common.runtime.network import Network
from barnabas_common.runtime.offload import Offload
from barnabas_common.runtime.pauses import Pauses
from barnabas_common.runtime.randomness import Randomness


@dataclass(frozen=True)
class Runtime:
    """Time, randomness, blocking work and the network. Only tests and labs set `pauses`.

    It is chosen in one place: by the broker's program, a client's constructor, or the cluster of a
    simulation. Tasks are started through `TaskScope`, which needs no interface because it runs on
    any event loop.
    """

    clock: Clock
    randomness: Randomness
    offload: Offload
    network: Network
    pauses: Pauses | None = None
