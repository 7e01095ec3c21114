"""Records what one process of a client does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from barnabas_common.history.operations import Operation, Stage

Kind = TypeVar("Kind", bound=Operation)


class Recorder:
    """Numbers the operations of a process and passes them to `write`, at once and in order.

    `clock` is monotonic, in ns, and the same for all clients of the run.
    """

    def __init__(
        self,
        write: Callable[[Operation], None],
        clock: Callable[[], int],
        client: str,
        incarnation: int = 1,
    ) -> None:
        self.client = client
        self.incarnation = incarnation
        self._write = write
        self._clock = clock
        self._number = 0

    def begin(self, kind: type[Kind], **fields: Any) -> Kind:
        """Record that an operation is about to be asked for; `end` records its outcome."""
        return self._add(kind, Stage.INVOKE, fields)

    def note(self, kind: type[Kind], **fields: Any) -> Kind:
        """Record what was read or has come to pass."""
        return self._add(kind, Stage.OK, fields)

    def end(self, operation: Operation, stage: Stage = Stage.OK, **told: Any) -> None:
        """Record the outcome of an operation, with what else is known now."""
        self._write(replace(operation, time=self._clock(), stage=stage, **told))

    def _add(self, kind: type[Kind], stage: Stage, fields: dict[str, Any]) -> Kind:
        self._number += 1
        operation = kind(
            time=self._clock(),
            client=self.client,
            incarnation=self.incarnation,
            number=self._number,
            stage=stage,
            **fields,
        )
        self._write(operation)
        return operation
