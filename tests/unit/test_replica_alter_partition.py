"""ISR changes sent to the controller: batched, one request at a time, never given up."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from barnabas_broker.replica.leader.alter_partition_manager import (
    AlterPartitionContext,
    AlterPartitionManager,
    AlterPartitionOutcome,
    outcome_of,
)
from barnabas_broker.replica.leader.isr_writer import IsrWriteResult
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from barnabas_common.runtime import Address, Listener, Peer, Service
from barnabas_simulator.loop import run
from barnabas_simulator.network import MemoryNetwork

Answer = Callable[[AlterPartitionRequest], AlterPartitionResponse]


def accept(request: AlterPartitionRequest) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        partitions=[
            AlteredPartition(
                item.topic, item.partition, partition_epoch=1, in_sync_replicas=item.new_isr
            )
            for item in request.partitions
        ]
    )


class Controller:
    """Answers with `answers` in turn, then accepts; records the requests."""

    def __init__(self, network: MemoryNetwork, *answers: Answer) -> None:
        self._network = network
        self._answers = list(answers)
        self.requests: list[AlterPartitionRequest] = []
        self.times: list[float] = []

    async def listen(self, host: str) -> Listener:
        async def handle(request: Any, _peer: Peer) -> Any:
            self.requests.append(request)
            self.times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.1)
            return (self._answers.pop(0) if self._answers else accept)(request)

        node = self._network.node(host)
        return await node.listen("INTERNAL", Address(host, 1), {Service.CONTROL: handle})


class World:
    def __init__(self, *answers: Answer) -> None:
        self.network = MemoryNetwork()
        self.controller = Controller(self.network, *answers)
        self.address: Address | None = Address("controller", 1)
        self.answers: list[AlteredPartition] = []
        self.changes = AlterPartitionManager(
            AlterPartitionContext(
                self.network.node("broker"), 7, lambda: 42, lambda: self.address, timeout=5.0
            )
        )

    def submit(self, partition: int) -> bool:
        item = AlterPartitionItem("t", partition, 3, 0, [1, 2])
        return self.changes.submit(item, lambda answer, _: self.answers.append(answer))

    async def until_answered(self, count: int) -> None:
        async with asyncio.timeout(60.0):
            while len(self.answers) < count:
                await asyncio.sleep(0.01)


def test_what_comes_while_a_request_is_out_travels_together_in_the_next() -> None:
    async def scenario() -> None:
        world = World()
        await world.controller.listen("controller")
        world.submit(0)
        await asyncio.sleep(0.05)
        for partition in range(1, 10):
            world.submit(partition)
        await world.until_answered(10)
        sizes = [len(request.partitions) for request in world.controller.requests]
        assert sum(sizes) <= 19  # unanswered partitions may be named again
        assert len(sizes) == 2
        assert world.controller.requests[0].broker_epoch == 42
        await world.changes.close()

    run(scenario())


def test_a_second_change_of_a_partition_is_refused_while_the_first_is_out() -> None:
    async def scenario() -> None:
        world = World()
        await world.controller.listen("controller")
        assert world.submit(0)
        assert not world.submit(0)
        await world.until_answered(1)
        assert world.submit(0)
        await world.until_answered(2)
        await world.changes.close()
        assert not world.submit(0)

    run(scenario())


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_a_refused_request_is_sent_again_after_a_pause(code: ErrorCode) -> None:
    async def scenario() -> None:
        world = World(
            lambda _: AlterPartitionResponse(code), lambda _: AlterPartitionResponse(code)
        )
        await world.controller.listen("controller")
        world.submit(0)
        await world.until_answered(1)
        assert len(world.controller.requests) == 3
        assert world.controller.times[1] - world.controller.times[0] >= 0.15
        await world.changes.close()

    run(scenario())


def test_a_partition_whose_error_may_pass_is_sent_again_alone() -> None:
    def half(request: AlterPartitionRequest) -> AlterPartitionResponse:
        response = accept(request)
        response.partitions[0].error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return response

    async def scenario() -> None:
        world = World(half)
        await world.controller.listen("controller")
        world.submit(0)
        world.submit(1)
        await world.until_answered(2)
        named = [[i.partition for i in request.partitions] for request in world.controller.requests]
        assert named == [[0, 1], [0]]
        await world.changes.close()

    run(scenario())


def test_the_new_controller_is_found_when_the_old_one_is_gone() -> None:
    async def scenario() -> None:
        world = World()
        world.submit(0)
        await asyncio.sleep(1.0)
        world.address = None
        await asyncio.sleep(1.0)
        await world.controller.listen("successor")
        world.address = Address("successor", 1)
        await world.until_answered(1)
        await world.changes.close()

    run(scenario())


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (ErrorCode.NONE, AlterPartitionOutcome.COMMITTED),
        (ErrorCode.INELIGIBLE_REPLICA, AlterPartitionOutcome.ROLL_BACK),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, AlterPartitionOutcome.ROLL_BACK),
        (ErrorCode.FENCED_LEADER_EPOCH, AlterPartitionOutcome.AWAIT_LEADER_AND_ISR),
        (ErrorCode.INVALID_UPDATE_VERSION, AlterPartitionOutcome.AWAIT_LEADER_AND_ISR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, AlterPartitionOutcome.AWAIT_LEADER_AND_ISR),
        (ErrorCode.UNKNOWN_TOPIC_ID, AlterPartitionOutcome.AWAIT_LEADER_AND_ISR),
        (ErrorCode.INVALID_REQUEST, AlterPartitionOutcome.AWAIT_LEADER_AND_ISR),
        (ErrorCode.NETWORK_EXCEPTION, AlterPartitionOutcome.RETRY),
    ],
)
def test_what_the_controllers_codes_mean(code: ErrorCode, meaning: AlterPartitionOutcome) -> None:
    assert outcome_of(code) is meaning


class Writer:
    """Settles every change at once, under partition epoch 5; `written` are their ISRs."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []

    async def write(
        self, items: Sequence[AlterPartitionItem], _why: str
    ) -> Sequence[IsrWriteResult]:
        self.written += [item.new_isr for item in items]
        return [
            IsrWriteResult(AlteredPartition(item.topic, item.partition, partition_epoch=5), "it")
            for item in items
        ]


def test_a_late_answer_to_a_change_that_was_written_does_not_settle_the_next_one() -> None:
    async def scenario() -> None:
        world = World()
        context = replace(world.changes._context, timeout=60.0, isr_writer=Writer(), patience=0.1)
        world.changes = AlterPartitionManager(context)
        answer_late, numbers = asyncio.Event(), itertools.count(1)

        async def handle(request: Any, _peer: Peer) -> Any:
            number = next(numbers)
            await (answer_late.wait() if number == 1 else asyncio.Event().wait())
            return accept(request)

        node = world.network.node("controller")
        await node.listen("INTERNAL", Address("controller", 1), {Service.CONTROL: handle})
        world.submit(0)
        await world.until_answered(1)
        world.submit(0)
        answer_late.set()
        await asyncio.sleep(0.1)
        assert [answer.partition_epoch for answer in world.answers] == [5]
        await world.changes.close()

    run(scenario())


def without_controller(patience: float) -> tuple[World, Writer]:
    """A leader that knows no controller, and the writer of its changes."""
    world, writer = World(), Writer()
    world.address = None
    context = replace(world.changes._context, isr_writer=writer, patience=patience)
    world.changes = AlterPartitionManager(context)
    return world, writer


def test_each_change_waits_for_a_controller_before_it_is_written() -> None:
    """However long ago the one before was written: there may be a controller by now."""

    async def scenario() -> None:
        world, _ = without_controller(patience=5.0)
        now = asyncio.get_running_loop().time
        for partition in range(2):
            submitted = now()
            world.submit(partition)
            await world.until_answered(partition + 1)
            assert 5.0 <= now() - submitted < 7.0
            await asyncio.sleep(60.0)
        await world.changes.close()

    run(scenario())


def test_what_was_written_instead_of_a_change_is_not_written_instead_of_the_next() -> None:
    async def scenario() -> None:
        world, writer = without_controller(patience=0.1)
        world.submit(0)
        world.changes.write_instead(AlterPartitionItem("t", 0, 3, 0, [1]))
        await world.until_answered(1)
        world.submit(0)
        await world.until_answered(2)
        assert writer.written == [[1], [1, 2]]
        await world.changes.close()

    run(scenario())
