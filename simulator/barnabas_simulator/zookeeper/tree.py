"""ZooKeeper's tree of znodes, in memory: plain data and its changes; no sessions, no clock.

Every change has one zxid; a multi is one atomic change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas_controller.zookeeper.session import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    OperationResult,
    RolledBack,
    SetData,
    Stat,
    WatchEvent,
    ZooKeeperError,
)


@dataclass
class Znode:
    """One node; `created_children` counts all children ever created: the sequence number."""

    data: bytes
    czxid: int
    mzxid: int
    ephemeral_owner: int
    created_ms: int
    modified_ms: int
    version: int = 0
    created_children: int = 0
    children: dict[str, None] = field(default_factory=dict)

    @property
    def stat(self) -> Stat:
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            version=self.version,
            ephemeral_owner=self.ephemeral_owner,
            created_ms=self.created_ms,
            modified_ms=self.modified_ms,
            children=len(self.children),
        )


class Tree:
    """All znodes by path. `changed` is the events of the last change, in ZooKeeper's order."""

    def __init__(self) -> None:
        self.zxid = 0
        self.changed: list[WatchEvent] = []
        self._nodes = {"/": Znode(b"", 0, 0, 0, 0, 0)}
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._undo: list[Callable[[], None]] = []

    def node(self, path: str) -> Znode:
        """Raises NoNode."""
        if path not in self._nodes:
            raise NoNode(path)
        return self._nodes[path]

    def find(self, path: str) -> Znode | None:
        return self._nodes.get(path)

    def apply(self, operation: Operation, owner: int, now_ms: int) -> OperationResult:
        """Carry out one operation for the session `owner`; raises its ZooKeeperError."""
        self._begin()
        return self._do(operation, owner, now_ms)

    def create_sequential(self, operation: Create, owner: int, now_ms: int) -> str:
        """Create with ZooKeeper's ten digits appended to the path."""
        self._begin()
        return self._create_sequential(operation, owner, now_ms)

    def multi(
        self, operations: Sequence[Operation], owner: int, now_ms: int
    ) -> list[OperationResult]:
        """Apply all or none; the result of a failed operation is its error, others RolledBack."""
        self._begin()
        results: list[OperationResult] = []
        for index, operation in enumerate(operations):
            try:
                results.append(self._do(operation, owner, now_ms))
            except ZooKeeperError as error:
                for undo in reversed(self._undo):
                    undo()
                self._begin()
                results = [RolledBack(other.path) for other in operations]
                results[index] = error
                break
        return results

    def delete_ephemerals(self, owner: int) -> None:
        """Delete a session's ephemerals as one change."""
        self._begin()
        for path in list(self._ephemerals.get(owner, ())):
            self._delete(Delete(path))

    def _begin(self) -> None:
        self.zxid += 1
        self.changed = []
        self._undo = []

    def _do(self, operation: Operation, owner: int, now_ms: int) -> OperationResult:
        match operation:
            case Create(sequential=True):
                return self._create_sequential(operation, owner, now_ms)
            case Create():
                return self._create(operation, owner, now_ms)
            case Delete():
                self._delete(operation)
                return None
            case SetData():
                return self._set(operation, now_ms)
            case Check():
                _expect(self.node(operation.path), operation.path, operation.version)
                return None

    def _create_sequential(self, operation: Create, owner: int, now_ms: int) -> str:
        number = self.node(parent_of(operation.path)).created_children
        path = f"{operation.path}{number:010d}"
        return self._create(Create(path, operation.data, operation.ephemeral), owner, now_ms)

    def _create(self, operation: Create, owner: int, now_ms: int) -> str:
        path = operation.path
        parent = self._nodes.get(parent_of(path))
        if parent is None:
            raise NoNode(f"{path}: its parent does not exist")
        if path in self._nodes:
            raise NodeExists(path)
        if parent.ephemeral_owner:
            raise NoChildrenForEphemerals(path)
        owner = owner if operation.ephemeral else 0
        self._attach(path, Znode(operation.data, self.zxid, self.zxid, owner, now_ms, now_ms))
        parent.created_children += 1
        self.changed += [
            WatchEvent(EventType.CREATED, path),
            WatchEvent(EventType.CHILDREN, parent_of(path)),
        ]

        def undo() -> None:
            self._detach(path)
            parent.created_children -= 1

        self._undo.append(undo)
        return path

    def _delete(self, operation: Delete) -> None:
        path = operation.path
        node = self.node(path)
        _expect(node, path, operation.version)
        if node.children:
            raise NotEmpty(path)
        if path == "/":
            raise ZooKeeperError("/: the root cannot be deleted")
        self._detach(path)
        self.changed += [
            WatchEvent(EventType.DELETED, path),
            WatchEvent(EventType.CHILDREN, parent_of(path)),
        ]
        self._undo.append(lambda: self._attach(path, node))

    def _set(self, operation: SetData, now_ms: int) -> Stat:
        node = self.node(operation.path)
        _expect(node, operation.path, operation.version)
        before = (node.data, node.mzxid, node.modified_ms, node.version)
        node.data, node.mzxid, node.modified_ms = operation.data, self.zxid, now_ms
        node.version += 1
        self.changed.append(WatchEvent(EventType.CHANGED, operation.path))

        def undo() -> None:
            node.data, node.mzxid, node.modified_ms, node.version = before

        self._undo.append(undo)
        return node.stat

    def _attach(self, path: str, node: Znode) -> None:
        self._nodes[path] = node
        self._nodes[parent_of(path)].children[name_of(path)] = None
        if node.ephemeral_owner:
            self._ephemerals.setdefault(node.ephemeral_owner, {})[path] = None

    def _detach(self, path: str) -> None:
        node = self._nodes.pop(path)
        del self._nodes[parent_of(path)].children[name_of(path)]
        if node.ephemeral_owner:
            del self._ephemerals[node.ephemeral_owner][path]


def _expect(node: Znode, path: str, version: int) -> None:
    if version not in (ANY_VERSION, node.version):
        raise BadVersion(f"{path}: version {node.version}, not {version}")


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    return path.rpartition("/")[2]
