"""An asyncio event loop on virtual time: one seed, one exact run.

Time does not advance while any handle is ready; otherwise it jumps to the next timer, so that a
simulated minute costs milliseconds. When nothing more can happen the run fails with a list of what
every task waits for.

Each handle belongs to a node, by the context variable `NODE` that tasks inherit. Within a node
handles run first in, first out, as asyncio promises; between nodes, which in the real world are
different processes, the seed decides. `kill_node` is kill -9: not one more step of that node runs,
clean-up included. `pause_node` is SIGSTOP, or a frozen machine: timers that become due in the
meantime fire late and all together when `resume_node` lets the node continue.
"""

import asyncio
import heapq
import random
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The node whose code is running: a name unique to one incarnation, such as "broker-1/2".
NODE: ContextVar[str] = ContextVar("NODE", default="")

# Turns of the loop at one moment of time, after which the tasks are considered to spin.
MAX_TURNS_WITHOUT_TIME = 200_000


@dataclass
class _Parked:
    """What a node that does not run would do next; a dead node has no timers."""

    handles: deque[asyncio.Handle] = field(default_factory=deque)
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class Stuck(AssertionError):
    """Nothing more can happen, or the tasks spin without end."""


class VirtualLoop(BaseEventLoop):
    """See the module. `max_time` in virtual seconds ends a run that would never end."""

    # BaseEventLoop's own attributes, which the type stubs omit.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _clock_resolution: float

    def __init__(self, seed: int | None = None, max_time: float = 24 * 3600.0) -> None:
        super().__init__()
        self._now = 0.0
        self._max_time = max_time
        self._turns = 0
        self._order = None if seed is None else random.Random(seed)
        self._dead: set[str] = set()
        self._is_over = False
        self._still: dict[str, _Parked] = {}  # the nodes that do not run, killed or paused
        self._tasks: dict[asyncio.Task[Any], str] = {}
        self._selector = self
        self.after_turn: Callable[[set[str]], None] | None = None
        """Called after each turn with the nodes that ran; an exception it raises ends the run."""
        self._running: set[str] = set()
        self.set_task_factory(_remembering_task)

    def time(self) -> float:
        return self._now

    # ---- what BaseEventLoop asks of a selector

    def select(self, timeout: float | None) -> list[Any]:
        """Called once a turn: None means that nothing is ready and no timer is set."""
        if timeout is None:
            self._give_up("nothing can happen any more")
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when())
            self._turns = 0
        self._turns += 1
        if self._turns > MAX_TURNS_WITHOUT_TIME:
            self._give_up("tasks spin without end")
        if self._now > self._max_time:
            self._give_up("still running")
        return []

    def _give_up(self, what: str) -> NoReturn:
        self._turns = 0
        self._max_time = float("inf")  # the tasks have not been cancelled yet
        raise Stuck(f"{what} at {self._now:.6f} s; {self._waiting()}")

    def _process_events(self, event_list: list[Any]) -> None:
        """Record whose handles this turn will run; there are no file events here."""
        if self.after_turn is not None:
            self._running = {_node_of(handle) for handle in self._ready}
            self._running.update(_node_of(timer) for timer in self._due())

    def _due(self) -> Iterator[asyncio.TimerHandle]:
        """Yield the timers of this turn: the top of the heap."""
        timers, waiting = self._scheduled, [0]
        end = self._now + self._clock_resolution
        while waiting:
            index = waiting.pop()
            if index < len(timers) and timers[index].when() < end:
                yield timers[index]
                waiting += [2 * index + 1, 2 * index + 2]

    def _write_to_self(self) -> None:
        """Do nothing: no other thread wakes this loop."""

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        raise RuntimeError(f"blocking work goes through Runtime.offload here: {func}")

    # ---- nodes

    def _run_once(self) -> None:
        if self._order is not None and len(self._ready) > 1:
            self._interleave_nodes(self._order)
        super()._run_once()  # type: ignore[misc]
        if self.after_turn is not None:
            self.after_turn(self._running)

    def _interleave_nodes(self, order: random.Random) -> None:
        """Shuffle the nodes' ready handles; within a node they keep their order."""
        by_node: dict[str, deque[asyncio.Handle]] = {}
        turns = []
        for handle in self._ready:
            node = _node_of(handle)
            by_node.setdefault(node, deque()).append(handle)
            turns.append(node)
        if len(by_node) > 1:
            order.shuffle(turns)
            self._ready = deque(by_node[node].popleft() for node in turns)

    def kill_node(self, node: str) -> None:
        """Stop a node permanently, in the middle of whatever it is doing.

        Its tasks are neither cancelled nor resumed until the loop closes. Not to be called by the
        node itself.
        """
        if self._is_over:
            return  # all nodes unwind now, and a parked one would keep the loop from closing
        self._dead.add(node)
        self._park(node)
        self._still[node].timers.clear()

    def pause_node(self, node: str) -> None:
        """Suspend a node until `resume_node`; not to be called by the node itself."""
        self._park(node)

    def resume_node(self, node: str) -> None:
        """Undo `pause_node`; no effect on a node that runs or is dead."""
        if node not in self._dead and node in self._still:
            parked = self._still.pop(node)
            self._ready.extend(parked.handles)
            for timer in parked.timers:
                if not timer.cancelled():
                    timer._scheduled = True  # type: ignore[attr-defined]
                    heapq.heappush(self._scheduled, timer)

    def _park(self, node: str) -> None:
        """Take a node's ready handles and timers out of the loop, now and from now on."""
        parked = self._still.setdefault(node, _Parked())
        for position, handle in enumerate(self._ready):
            if _node_of(handle) == node:
                parked.handles.append(handle)
                self._ready[position] = self._nothing()  # this turn counts on their number
        timers = [timer for timer in self._scheduled if _node_of(timer) == node]
        for timer in timers:
            self._park_timer(timer, parked)
        if timers:
            self._scheduled = [timer for timer in self._scheduled if timer._scheduled]  # type: ignore[attr-defined]
            heapq.heapify(self._scheduled)

    @staticmethod
    def _park_timer(timer: asyncio.TimerHandle, parked: "_Parked") -> None:
        timer._scheduled = False  # type: ignore[attr-defined]
        parked.timers.append(timer)

    def _nothing(self) -> asyncio.Handle:
        handle = asyncio.Handle(lambda: None, (), self, context=Context())
        handle.cancel()
        return handle

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = super().call_soon(callback, *args, context=context)
        if self._still and (parked := self._still.get(_node_of(handle))) is not None:
            parked.handles.append(self._ready.pop())
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, callback, *args, context=context)
        if self._still and (parked := self._still.get(_node_of(timer))) is not None:
            self._scheduled.remove(timer)
            heapq.heapify(self._scheduled)
            self._park_timer(timer, parked)
        return timer

    def remember(self, task: asyncio.Task[Any], node: str) -> None:
        """Keep a task alive until it is done, as a node's own memory would."""
        self._tasks[task] = node
        task.add_done_callback(self._forget, context=Context())

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def bury(self) -> None:
        """Let the tasks of parked nodes unwind; what they do then affects no result."""
        self._is_over = True
        for node in self._dead:
            self._still[node].timers.clear()
        self._dead.clear()
        for node in list(self._still):
            self.resume_node(node)

    def _waiting(self) -> str:
        tasks = [
            f"  {task.get_name()} [{node or '-'}{', dead' if node in self._dead else ''}]"
            f" waits in {_innermost(task)}"
            for task, node in self._tasks.items()
            if not task.done()
        ]
        return "\n".join(["tasks:", *tasks])


def run(main: Coroutine[Any, Any, T], seed: int | None = None, max_time: float = 24 * 3600.0) -> T:
    """Run a coroutine on a new virtual loop; returns its result.

    With a `seed`, nodes interleave at random; the same seed gives the same run. Raises `Stuck`
    when nothing more can happen or `max_time` virtual seconds have passed.
    """
    failure: BaseException | None = None
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed, max_time)) as runner:
            loop = runner.get_loop()
            assert isinstance(loop, VirtualLoop)
            try:
                return runner.run(main)
            except BaseException as error:
                failure = error
                raise
            finally:
                loop.bury()
    except BaseException as error:
        if failure is None or failure is error:
            raise
        raise failure from None  # an error of the clean-up must not hide it


class VirtualClock:
    """The loop's time as a `Clock`; the wall starts at `start_ms` and may be off by `skew_ms`."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self.start_ms = start_ms
        self.skew_ms = 0

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return self.start_ms + self.skew_ms + int(self.monotonic() * 1000)


def _remembering_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None
) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    context = context if context is not None else copy_context()
    task = asyncio.Task(coroutine, loop=loop, context=context)
    loop.remember(task, context.get(NODE, ""))
    return task


def _node_of(handle: asyncio.Handle) -> str:
    context: Context = handle._context  # type: ignore[attr-defined]
    return context.get(NODE, "")


def _innermost(task: asyncio.Task[Any]) -> str:
    """Return where a task is suspended: its innermost coroutine's function and line."""
    coroutine: Any = task.get_coro()
    while getattr(inner := getattr(coroutine, "cr_await", None), "cr_frame", None) is not None:
        coroutine = inner
    frame = getattr(coroutine, "cr_frame", None)
    return f"{coroutine.__qualname__}:{frame.f_lineno}" if frame else coroutine.__qualname__
