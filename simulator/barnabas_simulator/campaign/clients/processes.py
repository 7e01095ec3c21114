"""Processes of clients: each runs on its own node of the network, until it ends or is killed."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any

from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import NODE, VirtualLoop


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def run_as(name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Run a client's work as a task of its own node."""
    context = copy_context()
    context.run(NODE.set, name)
    return asyncio.get_running_loop().create_task(work, name=name, context=context)


def kill(cluster: SimulatedCluster, task: asyncio.Task[None]) -> str:
    """kill -9 of what `run_as` began; returns its name."""
    if task.done():
        task.result()  # the kill must not hide the error that ended it
    name = task.get_name()
    virtual_loop().kill_node(name)
    cluster.network.kill(name)
    return name
