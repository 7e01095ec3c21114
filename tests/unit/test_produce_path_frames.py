"""How far a produced batch travels on the broker: from the task of its request to `pwritev`.

Each frame is a function that a reader must follow, and a call that every batch pays for.
"""

import asyncio
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.api.router import handlers_of
from barnabas_broker.config import DynamicConfig
from barnabas_broker.coordinator.group.coordinator import CoordinatorContext, GroupCoordinator
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_broker.coordinator.transaction.coordinator import (
    TransactionContext,
    TransactionCoordinator,
)
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.replica_manager import ReplicaContext, ReplicaManager
from barnabas_broker.rpc.acceptor import Acceptor, Limits
from barnabas_broker.rpc.exchange import Exchange
from barnabas_common.events import EventLog
from barnabas_common.messages.control import LeaderAndIsrPartition, LeaderAndIsrRequest
from barnabas_common.messages.produce import ProducePartition, ProduceRequest, ProduceResponse
from barnabas_common.runtime import InlineOffload, Runtime, Service, SystemClock
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_common.transport.codec import REQUESTS, RESPONSES

from tests.support.raw import batch

MOST_FRAMES = 8
MOST_FILES = 21
BROKER = "barnabas_broker" + os.sep


class OneRequest:
    """A stream with one request, which keeps the answer."""

    def __init__(self, request: bytes) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._requests = [request]

    async def read(self) -> bytes | None:
        if self._requests:
            return self._requests.pop()
        await self.answer
        return None

    async def write(self, frame: bytes) -> None:
        self.answer.set_result(frame)

    def close(self) -> None: ...


async def leader_of_one_partition(directory: Path) -> BrokerParts:
    config = DynamicConfig({"broker.id": "1", "log.dirs": str(directory)})
    runtime = Runtime(SystemClock(), random.Random(1), InlineOffload(), None)  # type: ignore[arg-type]
    logs = LogManager(config, runtime, PosixDisk(), on_directory_failure=lambda *_: None)
    logs.lock_directories()
    await logs.start()
    cache = MetadataCache()

    async def topic_config(_topic: str) -> dict[str, str]:
        return {}

    context = ReplicaContext(runtime, config, 1, logs, cache, lambda: 1, topic_config)
    manager = ReplicaManager(context)
    state = LeaderAndIsrPartition("flights", 0, "", 1, 1, 0, 0, [1], [1], is_new=True)
    await manager.become_leader_or_follower(LeaderAndIsrRequest(1, 1, 1, [state]))
    events = EventLog(1)

    async def read_shape(_topic: str) -> None:
        return None

    async def may_exist(_partition: TopicPartition) -> bool:
        return True

    groups = GroupCoordinator(
        CoordinatorContext(runtime, config, manager, cache, events, read_shape, may_exist)
    )
    producer_ids = ProducerIdManager(1, lambda: None)
    topic = InternalTopic(TRANSACTION_STATE_TOPIC, cache, read_shape)
    transactions = TransactionCoordinator(
        TransactionContext(
            runtime, config, manager, cache, events, producer_ids.generate, topic, may_exist
        )
    )
    return BrokerParts(
        1, config, runtime, cache, manager, groups, transactions, producer_ids, lambda: None,
        lambda: None, "", asyncio.Event(), events, lambda *_: None,
    )  # fmt: skip


def frames_to(exchange: FrameType | None) -> list[str]:
    """Return the broker's functions on the stack, from the request's task to the write."""
    names: list[str] = []
    while exchange is not None and exchange.f_code is not Exchange._serve.__code__:
        names.append(exchange.f_code.co_qualname)
        exchange = exchange.f_back
    assert exchange is not None, "not called by the task of a request"
    return [exchange.f_code.co_qualname, *reversed(names)]


async def produce(
    parts: BrokerParts, acks: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str], ProduceResponse]:
    """Return the frames and the files on the way to `pwritev`, and the answer."""
    request = ProduceRequest(acks, 5000, [ProducePartition("flights", 0, batch(b"a"))])
    stream = OneRequest(REQUESTS[Service.DATA].encode(7, request))
    frames: list[str] = []
    files: dict[str, None] = {}
    pwritev = os.pwritev

    def write(descriptor: int, buffers: Sequence[bytes], offset: int) -> int:
        sys.setprofile(None)
        frames.extend(frames_to(sys._getframe(1)))
        return pwritev(descriptor, buffers, offset)

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        _, package, path = frame.f_code.co_filename.rpartition(BROKER)
        if event == "call" and package and (files or frame.f_code is Exchange._serve.__code__):
            files[path] = None

    limits = Limits()
    handlers = handlers_of(parts, inter_broker=False)
    acceptor = Acceptor("EXTERNAL", handlers, limits, limits.for_broker())
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", write)
        sys.setprofile(note)
        try:
            await acceptor.serve(Service.DATA, stream, "client")
        finally:
            sys.setprofile(None)
    response = RESPONSES[Service.DATA].decode(stream.answer.result()).message
    assert isinstance(response, ProduceResponse)
    return frames, list(files), response


@pytest.mark.parametrize("acks", [1, -1])
async def test_a_batch_crosses_few_frames_and_files_on_its_way_to_the_disk(
    acks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = await leader_of_one_partition(tmp_path)
    await asyncio.sleep(0.05)  # the epoch file of the new leader is written in the background
    await produce(parts, acks, monkeypatch)  # the first also looks at the checkpoint of its log
    frames, files, response = await produce(parts, acks, monkeypatch)
    assert response.partitions[0].error_code == 0
    assert len(frames) <= MOST_FRAMES, frames
    assert len(files) <= MOST_FILES, files
