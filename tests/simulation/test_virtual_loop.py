"""The virtual loop: time jumps, deadlocks are reported, a seed gives one run, kill -9 kills."""

import asyncio
import time

import pytest
from barnabas_simulator.loop import NODE, Stuck, VirtualClock, VirtualLoop, run


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def start(node: str, coroutine: object, name: str = "work") -> "asyncio.Task[None]":
    """Start a task that belongs to a node."""
    token = NODE.set(node)
    try:
        return asyncio.get_running_loop().create_task(coroutine, name=name)  # type: ignore[arg-type]
    finally:
        NODE.reset(token)


def test_an_hour_of_sleep_takes_no_time_and_wakes_in_order() -> None:
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        await asyncio.gather(sleeper("late", 3600), sleeper("early", 0.5), sleeper("mid", 60))

    before = time.monotonic()
    run(main())
    assert woken == [("early", 0.5), ("mid", 60.0), ("late", 3600.0)]
    assert time.monotonic() - before < 1.0


def test_timeouts_fire_on_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main()) == 30.0


def test_the_clock_shows_the_loops_time_and_its_own_skew() -> None:
    async def main() -> None:
        clock = VirtualClock(start_ms=1000)
        await asyncio.sleep(2.5)
        assert (clock.monotonic(), clock.wall_ms()) == (2.5, 3500)
        clock.skew_ms = -500
        assert clock.wall_ms() == 3000

    run(main())


def test_a_deadlock_is_reported_with_what_each_task_waits_for() -> None:
    async def waits_for_nothing() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(waits_for_nothing(), name="hopeless")

    with pytest.raises(Stuck, match=r"(?s)nothing can happen.*hopeless.*waits in Event\.wait:\d+"):
        run(main())


def test_a_run_without_end_is_stopped() -> None:
    async def heartbeat() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(Stuck, match="still running"):
        run(heartbeat(), max_time=100)


def test_a_task_that_spins_without_time_is_stopped() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="spin"):
        run(spin())


def test_blocking_work_off_the_seam_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"Runtime\.offload"):
            await asyncio.to_thread(time.sleep, 0)

    run(main())


def interleaving(seed: int | None) -> list[str]:
    """Return the order in which three nodes run three steps each, all ready at the same time."""
    steps: list[str] = []

    async def worker(node: str) -> None:
        for step in range(3):
            steps.append(f"{node}{step}")
            await asyncio.sleep(0)

    async def main() -> None:
        for task in [start(node, worker(node)) for node in "abc"]:
            await task

    run(main(), seed)
    return steps


def test_one_seed_is_one_run_and_seeds_differ() -> None:
    runs = {seed: interleaving(seed) for seed in range(20)}
    assert all(interleaving(seed) == steps for seed, steps in runs.items())
    assert len({tuple(steps) for steps in runs.values()}) > 5


def test_without_a_seed_the_order_is_asyncios() -> None:
    assert interleaving(None) == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]


@pytest.mark.parametrize("seed", range(10))
def test_within_a_node_the_order_is_asyncios(seed: int) -> None:
    order: list[int] = []

    async def step(number: int) -> None:
        order.append(number)

    async def main() -> None:
        for task in [start("a", step(number)) for number in range(20)]:
            await task

    run(main(), seed)
    assert order == list(range(20))


def test_a_killed_node_runs_not_one_step_more_and_its_clean_up_neither() -> None:
    seen: list[str] = []
    event_of_the_living = asyncio.Event()

    async def victim() -> None:
        try:
            seen.append("began")
            await event_of_the_living.wait()
            seen.append("woke")
        finally:
            seen.append("cleaned up")

    async def ticking() -> None:
        while True:
            await asyncio.sleep(1)
            seen.append("tick")

    async def main() -> list[str]:
        start("n/1", victim())
        start("n/1", ticking())
        await asyncio.sleep(2.5)
        virtual_loop().kill_node("n/1")
        event_of_the_living.set()
        await asyncio.sleep(10)
        return list(seen)

    assert run(main()) == ["began", "tick", "tick"]


def test_children_of_a_node_die_with_it_and_its_next_incarnation_is_another() -> None:
    seen: list[str] = []

    async def child(name: str) -> None:
        await asyncio.sleep(1)
        seen.append(name)

    async def parent(name: str) -> None:
        await asyncio.create_task(child(name))

    async def main() -> None:
        start("n/1", parent("first life"))
        await asyncio.sleep(0.5)
        virtual_loop().kill_node("n/1")
        start("n/2", parent("second life"))
        await asyncio.sleep(5)

    run(main())
    assert seen == ["second life"]


def test_a_node_may_be_killed_in_the_same_turn_in_which_it_would_run() -> None:
    seen: list[str] = []

    async def work(name: str) -> None:
        seen.append(name)

    async def killer() -> None:
        virtual_loop().kill_node("victim")

    async def main() -> None:
        kill = start("killer", killer())
        start("victim", work("victim"))
        last = start("other", work("other"))
        await kill
        await last

    run(main())
    assert seen == ["other"]


def test_a_paused_node_stands_still_and_then_everything_due_happens_at_once() -> None:
    events: list[tuple[str, float]] = []

    def now() -> float:
        return asyncio.get_running_loop().time()

    async def ticking(name: str) -> None:
        for _ in range(4):
            await asyncio.sleep(1)
            events.append((name, now()))

    async def timing_out() -> None:
        try:
            async with asyncio.timeout(2):
                await asyncio.Event().wait()
        except TimeoutError:
            events.append(("timeout", now()))

    async def main() -> None:
        tasks = [start("paused", ticking("paused")), start("paused", timing_out())]
        tasks.append(start("other", ticking("other")))
        await asyncio.sleep(1.5)
        virtual_loop().pause_node("paused")
        woken = start("paused", ticking("born in a pause"))
        await asyncio.sleep(8.5)
        virtual_loop().resume_node("paused")
        await asyncio.gather(*tasks, woken)

    run(main(), seed=3)
    of = {name: [when for who, when in events if who == name] for name, _ in events}
    assert of["other"] == [1, 2, 3, 4]
    assert of["timeout"] == [10]
    assert of["paused"] == [1, 10, 11, 12]
    assert of["born in a pause"] == [11, 12, 13, 14]


def test_a_paused_node_may_be_killed_and_a_killed_one_not_resumed() -> None:
    steps: list[int] = []

    async def main() -> None:
        start("node", ticking())
        await asyncio.sleep(1.5)
        virtual_loop().pause_node("node")
        virtual_loop().kill_node("node")
        virtual_loop().resume_node("node")
        await asyncio.sleep(10)

    async def ticking() -> None:
        while True:
            await asyncio.sleep(1)
            steps.append(1)

    run(main(), seed=1)
    assert len(steps) == 1
