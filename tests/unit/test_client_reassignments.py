"""The admin client's requests to the controller: it is found, and not asked twice."""

import asyncio
from typing import Any

import pytest
from barnabas import Admin, TopicPartition
from barnabas_common.errors import InvalidReplicaAssignmentError, MaybeApplied, NotControllerError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    ReassignmentResult,
)
from barnabas_common.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    TopicResult,
)

from tests.support.scripted_brokers import ScriptedBrokers

TP = TopicPartition("flights", 0)


class ControllerBrokers(ScriptedBrokers):
    """`controller` answers, the others answer NOT_CONTROLLER; `told` is the one in the metadata."""

    def __init__(self, controller: int = 1, told: int = 1) -> None:
        super().__init__()
        self.controller, self.told = controller, told
        self.code = ErrorCode.NONE
        self.silent = False
        self.asked: list[tuple[int, Any]] = []

    async def _handle(self, broker_id: int, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            answer = self.metadata(request)
            answer.controller_id = self.told
            return answer
        self.asked.append((broker_id, request))
        if self.silent:
            await asyncio.sleep(60)
        refusal = ErrorCode.NONE if broker_id == self.controller else ErrorCode.NOT_CONTROLLER
        if refusal:
            self.told = self.controller
        if isinstance(request, AlterPartitionReassignmentsRequest):
            results = [
                ReassignmentResult(p.topic, p.partition, self.code, "why")
                for p in request.partitions
            ]
            return AlterPartitionReassignmentsResponse(refusal, partitions=results)
        if isinstance(request, ListPartitionReassignmentsRequest):
            ongoing = [OngoingReassignment("flights", 0, [2, 1], [2], [1])]
            return ListPartitionReassignmentsResponse(refusal, ongoing)
        assert isinstance(request, CreatePartitionsRequest)
        if not refusal:
            for new in request.topics:
                self.grow(new.count)
        return CreatePartitionsResponse(
            [TopicResult(new.topic, refusal or self.code, "why") for new in request.topics]
        )


def admin_of(brokers: ControllerBrokers, **options: Any) -> Admin:
    return Admin(brokers.bootstrap, runtime=brokers.runtime, retry_backoff_ms=5, **options)


async def test_the_controller_is_asked_and_no_other() -> None:
    async with ControllerBrokers(2, told=2) as brokers, admin_of(brokers) as admin:
        await admin.alter_partition_reassignments({TP: [3, 1], TopicPartition("flights", 1): None})
        await admin.create_partitions("flights", 5)
        found = await admin.list_partition_reassignments()
        assert (found[TP].replicas, found[TP].adding_replicas) == ([2, 1], [2])
        assert [broker_id for broker_id, _ in brokers.asked] == [2, 2, 2]
        first, second = brokers.asked[0][1].partitions
        assert (first.replicas, first.cancel) == ([3, 1], False)
        assert (second.replicas, second.cancel) == ([], True)


async def test_a_controller_that_has_moved_is_looked_for() -> None:
    async with ControllerBrokers(3, told=1) as brokers, admin_of(brokers) as admin:
        await admin.create_partitions("flights", 5)
        assert [broker_id for broker_id, _ in brokers.asked] == [1, 3]


async def test_who_only_reads_does_not_wait_for_a_controller_that_stands_still() -> None:
    async with ControllerBrokers() as brokers, admin_of(brokers) as admin:
        brokers.silent = True
        async with asyncio.timeout(10):
            listing = asyncio.create_task(admin.list_partition_reassignments())
            while not brokers.asked:
                await asyncio.sleep(0.001)
            brokers.silent, brokers.controller, brokers.told = False, 2, 2
            assert TP in await listing
        assert [broker_id for broker_id, _ in brokers.asked] == [1, 2]


async def test_a_controller_that_stands_still_is_not_called_missing() -> None:
    async with (
        ControllerBrokers() as brokers,
        admin_of(brokers, default_api_timeout_ms=300, request_timeout_ms=200) as admin,
    ):
        brokers.silent = True
        with pytest.raises(NotControllerError, match="the controller, broker 1, does not answer"):
            await admin.list_partition_reassignments()


async def test_a_missing_controller_is_waited_for_but_not_forever() -> None:
    async with (
        ControllerBrokers(told=-1) as brokers,
        admin_of(brokers, default_api_timeout_ms=300, request_timeout_ms=200) as admin,
    ):
        with pytest.raises(NotControllerError):
            await admin.list_partition_reassignments()
        asyncio.get_running_loop().call_later(0.05, setattr, brokers, "told", 1)
        assert await admin.list_partition_reassignments()


async def test_a_refusal_of_a_partition_is_raised_with_its_reason() -> None:
    async with ControllerBrokers() as brokers, admin_of(brokers) as admin:
        brokers.code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        with pytest.raises(InvalidReplicaAssignmentError, match="flights-0: why"):
            await admin.alter_partition_reassignments({TP: [9]})


async def test_what_may_have_been_applied_is_not_sent_again() -> None:
    async with ControllerBrokers() as brokers, admin_of(brokers) as admin:
        brokers.silent = True
        asking = asyncio.create_task(admin.alter_partition_reassignments({TP: [2]}))
        while not brokers.asked:
            await asyncio.sleep(0.001)
        for broker_id in brokers.brokers:
            brokers.kill(broker_id)
        with pytest.raises(MaybeApplied):
            await asking
        assert len(brokers.asked) == 1
