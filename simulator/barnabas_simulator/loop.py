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
import itertools
import random
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The node whose code is running: a name unique to one incarnation, such as "broker-1/2".
NODE: ContextVar[str] = ContextVar("NODE", default="")

# Turns of the loop at one moment of time, after which the tasks are considered to spin.
MAX_TURNS_WITHOUT_TIME = 200_000

# Cancelled timers are dropped at once when they are this share of so many, as in asyncio.
MANY_TIMERS = 100
MANY_CANCELLED = 0.5


@dataclass
class _Parked:
    """What a node that does not run would do next; a dead node has no timers."""

    handles: deque[asyncio.Handle] = field(default_factory=deque)
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class Stuck(AssertionError):
    """Nothing more can happen, or the tasks spin without end."""


class VirtualLoop(BaseEventLoop):
    """See the module. `max_time` in virtual seconds ends a run that would never end."""

    # BaseEventLoop's own attributes, which the type stubs omit, as they omit those of the handles.
    _ready: deque[Any]
    _clock_resolution: float
    _stopping: bool
    _timer_cancelled_count: int
    _check_closed: Callable[[], None]

    def __init__(self, seed: int | None = None, max_time: float = 24 * 3600.0) -> None:
        super().__init__()
        self._now = 0.0
        self._max_time = max_time
        self._turns = 0
        self._order = None if seed is None else random.Random(seed)
        self._dead: set[str] = set()
        self._is_over = False
        self._timers: list[tuple[float, int, Any]] = []
        """A heap: when, a number that keeps the order of those for one moment, the timer."""
        self._numbers = itertools.count()
        self._still: dict[str, _Parked] = {}  # the nodes that do not run, killed or paused
        self._tasks: dict[asyncio.Task[Any], str] = {}
        self.after_turn: Callable[[set[str]], None] | None = None
        """Called after each turn with the nodes that ran; an exception it raises ends the run."""
        self.set_task_factory(_remembering_task)

    def time(self) -> float:
        return self._now

    # ---- time

    def _advance(self) -> None:
        """Jump to the next timer if nothing is ready, and make those ready that are due."""
        self._drop_cancelled_timers()
        timers, ready = self._timers, self._ready
        if not ready and not self._stopping:
            if not timers:
                self._give_up("nothing can happen any more")
            if timers[0][0] > self._now:
                self._now, self._turns = timers[0][0], 0
        self._turns += 1
        if self._turns > MAX_TURNS_WITHOUT_TIME:
            self._give_up("tasks spin without end")
        if self._now > self._max_time:
            self._give_up("still running")
        end = self._now + self._clock_resolution
        while timers and timers[0][0] < end:
            ready.append(self._pop_timer())

    def _set_timer(self, timer: Any) -> None:
        timer._scheduled = True  # so that the loop counts its cancellation
        heapq.heappush(self._timers, (timer._when, next(self._numbers), timer))

    def _pop_timer(self) -> Any:
        timer = heapq.heappop(self._timers)[2]
        timer._scheduled = False
        return timer

    def _keep_timers(self, keep: Callable[[Any], bool]) -> None:
        for _, _, timer in self._timers:
            timer._scheduled = keep(timer)
        self._timers = [entry for entry in self._timers if entry[2]._scheduled]
        heapq.heapify(self._timers)

    def _drop_cancelled_timers(self) -> None:
        """Those that come first, or all once they are many."""
        cancelled = self._timer_cancelled_count
        if len(self._timers) > MANY_TIMERS and cancelled > len(self._timers) * MANY_CANCELLED:
            self._keep_timers(lambda timer: not timer._cancelled)
            self._timer_cancelled_count = 0
        while self._timers and self._timers[0][2]._cancelled:
            self._pop_timer()
            self._timer_cancelled_count -= 1

    def _give_up(self, what: str) -> NoReturn:
        self._turns = 0
        self._max_time = float("inf")  # the tasks have not been cancelled yet
        raise Stuck(f"{what} at {self._now:.6f} s; {self._waiting()}")

    def _write_to_self(self) -> None:
        """Do nothing: no other thread wakes this loop."""

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        raise RuntimeError(f"blocking work goes through Runtime.offload here: {func}")

    # ---- nodes

    def _run_once(self) -> None:
        """One turn, as asyncio's but without a selector: there are no file events here."""
        if self._order is not None and len(self._ready) > 1:
            self._interleave_nodes(self._order)
        self._advance()
        ready, ran = self._ready, set[str]()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                ran.add(handle._context.get(NODE, ""))
                handle._run()
        if self.after_turn is not None:
            self.after_turn(ran)

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
                    self._set_timer(timer)

    def _park(self, node: str) -> None:
        """Take a node's ready handles and timers out of the loop, now and from now on."""
        parked = self._still.setdefault(node, _Parked())
        for position, handle in enumerate(self._ready):
            if _node_of(handle) == node:
                parked.handles.append(handle)
                self._ready[position] = self._nothing()  # this turn counts on their number
        parked.timers += [timer for _, _, timer in sorted(self._timers) if _node_of(timer) == node]
        self._keep_timers(lambda timer: _node_of(timer) != node)

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
        self._check_closed()
        handle = asyncio.Handle(callback, args, self, context)
        if self._still and (parked := self._still.get(_node_of(handle))) is not None:
            parked.handles.append(handle)
        else:
            self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()
        timer: Any = asyncio.TimerHandle(when, callback, args, self, context)
        if self._still and (parked := self._still.get(_node_of(timer))) is not None:
            parked.timers.append(timer)
        else:
            self._set_timer(timer)
        return timer  # type: ignore[no-any-return]

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


def _node_of(handle: Any) -> str:
    context: Context = handle._context
    return context.get(NODE, "")


def _innermost(task: asyncio.Task[Any]) -> str:
    """Return where a task is suspended: its innermost coroutine's function and line."""
    coroutine: Any = task.get_coro()
    while getattr(inner := getattr(coroutine, "cr_await", None), "cr_frame", None) is not None:
        coroutine = inner
    frame = getattr(coroutine, "cr_frame", None)
    return f"{coroutine.__qualname__}:{frame.f_lineno}" if frame else coroutine.__qualname__
