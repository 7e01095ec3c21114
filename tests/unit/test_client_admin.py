"""The admin client: its requests, its errors, and which requests it never repeats."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from barnabas import Admin, NewTopic, TopicPartition
from barnabas_common.errors import (
    ClosedError,
    InvalidArgumentError,
    InvalidReplicationFactorError,
    MaybeApplied,
    RequestTimedOutError,
    TopicAlreadyExistsError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.configs import (
    ConfigDescription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas_common.messages.offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas_common.messages.replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    ReplicaDescription,
)
from barnabas_common.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicResult,
)

from tests.support.scripted_brokers import ScriptedBrokers


class AdminBrokers(ScriptedBrokers):
    """Answers requests about topics with `codes`, by topic, and on demand once NOT_CONTROLLER."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: dict[str, ErrorCode] = {}
        self.without_controller = 0
        # how many topics of a request are changed before the controller moves
        self.done_without = 0
        self.silent = False
        self.first_falls_asleep = False
        self.asked_for_configs: list[int] = []
        self.changes: list[Any] = []
        self.created: set[str] = set()

    def _describe(self, name: str) -> TopicMetadata:
        return replace(super()._describe(name), topic=name)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        response = super().metadata(request)
        known = [self._describe(t.topic) if t.topic in self.created else t for t in response.topics]
        return replace(response, topics=known)

    async def _handle(self, broker_id: int, request: Any) -> Any:
        if isinstance(request, DescribeReplicasRequest):
            return DescribeReplicasResponse(broker_id, [ReplicaDescription(self.topic, 0)])
        if isinstance(request, DescribeConfigsRequest):
            self.asked_for_configs.append(broker_id)
            if self.first_falls_asleep and broker_id == self.asked_for_configs[0]:
                await asyncio.sleep(60)
            configs = [ConfigDescription("retention.ms", "5", "topic")]
            return DescribeConfigsResponse([DescribedConfigs("flights", configs=configs)])
        if not isinstance(request, CreateTopicsRequest | DeleteTopicsRequest):
            return await super()._handle(broker_id, request)
        self.changes.append(request)
        if self.silent:
            await asyncio.sleep(60)
        names = [t if isinstance(t, str) else t.topic for t in request.topics]
        results = [TopicResult(name, self.codes.get(name, ErrorCode.NONE)) for name in names]
        if self.without_controller:
            self.without_controller -= 1
            missing = names[self.done_without :]
            results = [
                TopicResult(name, ErrorCode.NOT_CONTROLLER if name in missing else 0)
                for name in names
            ]
        if isinstance(request, CreateTopicsRequest):
            self.created.update(result.topic for result in results if not result.error_code)
            return CreateTopicsResponse(results)
        return DeleteTopicsResponse(results)


def admin_of(brokers: AdminBrokers, **options: Any) -> Admin:
    return Admin(brokers.bootstrap, runtime=brokers.runtime, **options)


async def test_create_sends_what_was_asked_for() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        await admin.create_topic("new", 3, 2, configs={"retention.ms": "5"})
        await admin.create_topic("placed", assignments={0: [2, 1], 1: [1, 3]})
        first, second = (request.topics[0] for request in brokers.changes)
        assert (first.topic, first.partitions, first.replication_factor) == ("new", 3, 2)
        assert [(c.name, c.value) for c in first.configs] == [("retention.ms", "5")]
        assert (second.partitions, second.replication_factor) == (-1, -1)
        assert [a.broker_ids for a in second.assignments] == [[2, 1], [1, 3]]


async def test_refusals_are_raised_once_the_others_are_carried_out() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        brokers.codes["old"] = ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(TopicAlreadyExistsError, match="old"):
            await admin.create_topic("old")
        brokers.codes["wide"] = ErrorCode.INVALID_REPLICATION_FACTOR
        with pytest.raises(InvalidReplicationFactorError):
            await admin.create_topics([NewTopic("wide"), NewTopic("fine")])
        await admin.delete_topics(["a", "b"])
        assert brokers.changes[-1].topics == ["a", "b"]


async def test_missing_controller_is_waited_for() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers, retry_backoff_ms=5) as admin:
        brokers.without_controller = 3
        await admin.create_topic("new")
        assert len(brokers.changes) == 4


async def test_what_was_created_before_the_controller_went_is_not_asked_for_again() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers, retry_backoff_ms=5) as admin:
        brokers.without_controller, brokers.done_without = 1, 1
        results = await admin.create_topics([NewTopic("first"), NewTopic("second")])
        assert [r.topic for r in results] == ["first", "second"]
        assert [[t.topic for t in request.topics] for request in brokers.changes] == [
            ["first", "second"],
            ["second"],
        ]


async def test_change_that_may_have_been_applied_is_not_sent_again() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        brokers.silent = True
        creating = asyncio.create_task(admin.create_topic("new"))
        while not brokers.changes:
            await asyncio.sleep(0.001)
        for broker_id in brokers.brokers:
            brokers.kill(broker_id)
        with pytest.raises(MaybeApplied):
            await creating
        assert len(brokers.changes) == 1


async def test_what_only_reads_is_asked_of_another_where_a_broker_stands_still() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        brokers.first_falls_asleep = True
        async with asyncio.timeout(10):
            assert (await admin.describe_configs("flights"))[0].value == "5"
            assert (await admin.describe_cluster_default_configs())[0].value == "5"
        asleep, *others = brokers.asked_for_configs
        assert len(others) == 2 and asleep not in others


async def test_cluster_configs_offsets_and_topics_are_described() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        cluster = await admin.describe_cluster()
        assert (cluster.cluster_id, cluster.controller_id) == ("scripted", 1)
        assert [b.host for b in cluster.brokers] == ["broker-1", "broker-2", "broker-3"]
        assert (await admin.describe_configs("flights"))[0].value == "5"
        assert await admin.list_topics() == ["flights"]
        assert (await admin.describe_topic("flights")).partitions[0].leader_id == 1
        assert await admin.end_offsets("flights") == {TopicPartition("flights", 0): 0}


async def test_replicas_are_told_by_every_broker_also_when_one_is_dead() -> None:
    async with AdminBrokers() as brokers, admin_of(brokers) as admin:
        answers = await admin.describe_replicas(["flights"])
        assert [(a.broker_id, len(a.replicas), a.error) for a in answers] == [
            (1, 1, None), (2, 1, None), (3, 1, None),
        ]  # fmt: skip
        brokers.network.kill("broker-2")
        answers = await admin.describe_replicas(["flights"])
        assert [a.broker_id for a in answers if a.error is not None] == [2]


async def test_partition_left_out_of_an_answer_is_asked_for_again_with_pauses() -> None:
    answers = 0

    class Forgetful(AdminBrokers):
        async def _handle(self, broker_id: int, request: Any) -> Any:
            nonlocal answers
            if not isinstance(request, ListOffsetsRequest):
                return await super()._handle(broker_id, request)
            answers += 1
            return ListOffsetsResponse([])

    async with (
        Forgetful() as brokers,
        admin_of(brokers, default_api_timeout_ms=200, retry_backoff_ms=40) as admin,
    ):
        async with asyncio.timeout(5):
            with pytest.raises(RequestTimedOutError, match="left it out of its answer"):
                await admin.end_offsets("flights")
        assert 1 < answers <= 5


async def test_mistakes_are_told() -> None:
    with pytest.raises(InvalidArgumentError, match="request_timeout_ms"):
        Admin(request_timeout_ms=0)
    async with AdminBrokers() as brokers:
        admin = await admin_of(brokers).start()
        await admin.close()
        with pytest.raises(ClosedError):
            await admin.list_topics()


async def test_a_str_is_not_taken_for_topics_of_one_letter() -> None:
    async with (
        AdminBrokers() as brokers,
        Admin(brokers.bootstrap, runtime=brokers.runtime) as admin,
    ):
        with pytest.raises(InvalidArgumentError, match=r"\['flights'\]"):
            await admin.delete_topics("flights")
        with pytest.raises(InvalidArgumentError, match=r"\['flights'\]"):
            await admin.describe_topics("flights")


async def test_settings_that_are_no_dict_are_refused() -> None:
    async with (
        AdminBrokers() as brokers,
        Admin(brokers.bootstrap, runtime=brokers.runtime) as admin,
    ):
        with pytest.raises(InvalidArgumentError, match="configs is a dict"):
            await admin.create_topic("t", configs=["retention.ms=1"])  # type: ignore[arg-type]
