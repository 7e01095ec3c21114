"""A real ZooKeeper session whose event loop stalls is given up, but not before its time.

The session lasts as long as kazoo's threads run, so without the watchdog it would survive any
stall.
"""

import asyncio
import threading
import time

from barnabas_controller.zookeeper.session import State
from barnabas_controller.zookeeper.watchdog import PATIENCE

from tests.contract.zookeeper_servers import SESSION_TIMEOUT_MS, Events, RealEnsemble

BOUND = PATIENCE * SESSION_TIMEOUT_MS / 1000


async def test_a_loop_that_stands_still_loses_its_session(real_ensemble: RealEnsemble) -> None:
    session = await real_ensemble.session()
    states = Events()
    session.on_state(states)
    await session.create("/leader", ephemeral=True)
    time.sleep(BOUND + 1.0)
    await states.until(lambda seen: State.EXPIRED in seen)
    assert session.state is State.EXPIRED
    assert "the event loop had not run for" in session.end_cause
    other = await real_ensemble.session()
    assert await other.exists("/leader") is None
    await other.close()
    await session.close()


async def test_a_loop_that_stands_still_for_a_second_keeps_it(real_ensemble: RealEnsemble) -> None:
    session = await real_ensemble.session()
    await session.create("/leader", ephemeral=True)
    for _ in range(3):
        time.sleep(1.0)  # blocks the event loop: the fault itself
        assert await session.exists("/leader") is not None, "the loop has run again"
    assert session.state is State.CONNECTED
    await session.close()


async def test_a_closed_session_is_watched_no_longer(real_ensemble: RealEnsemble) -> None:
    others = _watchdogs()
    session = await real_ensemble.session()
    (own,) = _watchdogs() - others
    await session.close()
    await asyncio.to_thread(own.join, BOUND)
    assert not own.is_alive()
    assert session.state is State.CLOSED


def _watchdogs() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "loop-watchdog"}
