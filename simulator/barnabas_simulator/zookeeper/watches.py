"""The watches that one server holds."""

from barnabas_controller.zookeeper.session import EventType, Watch, WatchEvent

from barnabas_simulator.zookeeper.session import Event, MemorySession, Watching, WatchKind

_FIRES = {
    EventType.CREATED: (WatchKind.DATA,),
    EventType.CHANGED: (WatchKind.DATA,),
    EventType.DELETED: (WatchKind.DATA, WatchKind.CHILDREN),
    EventType.CHILDREN: (WatchKind.CHILDREN,),
}


class Watches:
    """Armed watches by kind and path; each fires once."""

    def __init__(self) -> None:
        self._armed: dict[tuple[WatchKind, str], dict[Watching, None]] = {}

    def arm(
        self, session: MemorySession, kind: WatchKind, path: str, watch: Watch
    ) -> Watching | None:
        """Arm a watch; returns None if the same watch is already armed there."""
        watching = self._armed.get((kind, path), {})
        if any(w.session is session and w.watch == watch for w in watching):
            return None
        armed = Watching(session, kind, path, watch)
        self.add(armed)
        return armed

    def add(self, watching: Watching) -> None:
        self._armed.setdefault((watching.kind, watching.path), {})[watching] = None

    def disarm(self, watching: Watching) -> None:
        self._armed.get((watching.kind, watching.path), {}).pop(watching, None)

    def take(self, session_id: int | None = None) -> list[Watching]:
        """Remove the watches of a session, or all, and return them."""
        taken = [
            watching
            for by_path in self._armed.values()
            for watching in by_path
            if session_id in (None, watching.session.session_id)
        ]
        for watching in taken:
            self.disarm(watching)
        return taken

    def fire(self, events: list[WatchEvent]) -> None:
        for event in events:
            for kind in _FIRES[event.type]:
                for watching in self._armed.pop((kind, event.path), {}):
                    watching.session.send_event(Event(watching, event))
