"""Whether a history is well formed: who completes an operation must have begun it, once."""

from collections.abc import Iterable, Iterator

from barnabas_common.history.lines import MalformedHistoryError
from barnabas_common.history.operations import Operation, Stage


def paired(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Pass a history on. Raises `MalformedHistoryError` at the first entry that cannot be."""
    waiting: dict[str, dict[int, str]] = {}
    latest = 0
    for operation in operations:
        if operation.time < latest:
            _refuse(operation, "is earlier than the entry before it")
        latest = operation.time
        if operation.answers_later:
            _pair(operation, waiting.setdefault(operation.process, {}))
        elif operation.stage not in (Stage.OK, Stage.INFO):
            _refuse(operation, f"cannot be {operation.stage}: it is one entry")
        yield operation


def _pair(operation: Operation, waiting: dict[int, str]) -> None:
    number, function = operation.number, operation.function
    if operation.stage is Stage.INVOKE:
        if number in waiting:
            _refuse(operation, f"is invoked while {waiting[number]} has its number")
        waiting[number] = function
    elif waiting.pop(number, None) != function:
        _refuse(operation, "is completed, but was not invoked")


def _refuse(operation: Operation, why: str) -> None:
    raise MalformedHistoryError(f"{operation.function} {operation.name} {why}")
