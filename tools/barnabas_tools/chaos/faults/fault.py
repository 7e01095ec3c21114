"""A fault of the compose cluster: injected, verified, healed. All functions block."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from barnabas_tools.chaos.faults.errors import FaultError


class Fault(Protocol):
    """One fault. It may be used again after it was healed."""

    @property
    def name(self) -> str:
        """What is broken and where, as `pause broker2`."""
        ...

    def inject(self) -> None:
        """Break it; raises FaultError."""
        ...

    def verify(self) -> str:
        """Show that it is broken now; returns what was seen, raises NotInEffect."""
        ...

    def heal(self) -> None:
        """Repair it; nothing happens if it is not broken. Raises FaultError."""
        ...


class Together:
    """Several faults at once, injected in this order and healed in the reverse."""

    def __init__(self, name: str, faults: Sequence[Fault]) -> None:
        self._name = name
        self._faults = faults

    @property
    def name(self) -> str:
        return self._name

    def inject(self) -> None:
        for fault in self._faults:
            try:
                fault.inject()
            except FaultError:
                with suppress(FaultError):
                    self.heal()
                raise

    def verify(self) -> str:
        return "; ".join(fault.verify() for fault in self._faults)

    def heal(self) -> None:
        """Heal every fault, also after one could not be; raises the first failure."""
        failures = []
        for fault in reversed(self._faults):
            try:
                fault.heal()
            except FaultError as error:
                failures.append(error)
        if failures:
            raise failures[0]
