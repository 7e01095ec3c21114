"""Breaks the cluster, one fault after the other, and waits until it is whole again after each."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from barnabas_common.history.operations import Fault as FaultOperation
from barnabas_common.history.operations import Stage
from barnabas_common.history.recorder import Recorder

from barnabas_tools.chaos.faults.compose_cluster import wait_until
from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.chaos.faults.fault import Fault
from barnabas_tools.chaos.run.menu import MENU, Kind, Scene

WHOLE_SECONDS = 120.0


@dataclass
class Tally:
    """`counts`: faults that were seen to take effect, by kind; `not_in_effect`: the others.

    `whole_again`: the longest time from healing until every replica was in sync.
    """

    counts: Counter[str] = field(default_factory=Counter)
    not_in_effect: list[str] = field(default_factory=list)
    whole_again: float = 0.0


class Nemesis:
    """Draws from `mix`, kinds with their weights. All recorders are told of each fault."""

    def __init__(
        self,
        scene: Scene,
        mix: Mapping[str, int],
        recorders: Sequence[Recorder],
        tell: Callable[[str], None],
    ) -> None:
        self.tally = Tally()
        self._scene = scene
        self._mix = mix
        self._recorders = recorders
        self._tell = tell

    def run(self, seconds: float) -> None:
        """Inject faults for so long. Raises FaultError if the cluster does not become whole."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            names, weights = list(self._mix), list(self._mix.values())
            name = self._scene.random.choices(names, weights)[0]
            self.inject(name, MENU[name])

    def inject(self, name: str, kind: Kind) -> None:
        """One fault: injected, seen, endured, healed. Raises FaultError if it cannot be healed."""
        lasts = self._scene.random.uniform(*kind.lasts)
        try:
            fault = kind.make(self._scene)
        except FaultError as error:
            self.tally.not_in_effect.append(f"{name}: {error}")
            return
        with self._recorded(name, fault):
            try:
                fault.inject()
                seen = fault.verify()
            except FaultError as error:
                self.tally.not_in_effect.append(f"{name}: {error}")
                self._tell(f"NOT {error}")
            else:
                self.tally.counts[name] += 1
                self._tell(f"{fault.name}: {seen}")
                time.sleep(lasts)
            finally:
                fault.heal()
        self._wait_until_whole(fault)

    def _wait_until_whole(self, fault: Fault) -> None:
        begun = time.monotonic()
        what = f"every replica is in sync after {fault.name}"
        wait_until(what, self._scene.cluster.in_sync, WHOLE_SECONDS)
        self.tally.whole_again = max(self.tally.whole_again, time.monotonic() - begun)
        self._scene.clients.check()

    @contextmanager
    def _recorded(self, name: str, fault: Fault) -> Iterator[None]:
        noted = [
            (recorder, recorder.begin(FaultOperation, fault=name, target=fault.name))
            for recorder in self._recorders
        ]
        failures = len(self.tally.not_in_effect)
        try:
            yield
        finally:
            failed = "".join(self.tally.not_in_effect[failures:])
            for recorder, operation in noted:
                recorder.end(operation, Stage.INFO if failed else Stage.OK, error=failed)
