"""The stream of a whole cluster's events, which tells its readers what happened and why."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas import Admin
from barnabas.admin import Interruption
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.events import DescribeEventsRequest, DescribeEventsResponse
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import leader_of

TP = TopicPartition("flights", 0)
News = list[Event | Interruption]


async def with_topic(cluster: SimulatedCluster, admin: Admin) -> None:
    await cluster.start()
    await admin.create_topic(TP.topic, partitions=1, replication_factor=3)


def in_cluster(story: Callable[[SimulatedCluster, Admin], Coroutine[Any, Any, Any]]) -> Any:
    async def told() -> Any:
        cluster = SimulatedCluster(1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, partitions=1, replication_factor=3)
            return await story(cluster, admin)

    return run(told(), seed=1, max_time=600.0)


async def read_while(
    admin: Admin, what: Callable[[], Awaitable[Any]], seconds: float = 15.0, **options: Any
) -> News:
    """Return what the stream yields during `what` and for some seconds afterwards."""
    news: News = []

    async def read() -> None:
        async with await admin.events([TP.topic], **options) as stream:
            async for each in stream:
                news.append(each)

    reader = asyncio.ensure_future(read())
    await asyncio.sleep(1.0)
    await what()
    await asyncio.sleep(seconds)
    reader.cancel()
    return news


def of_kind(news: News, kind: EventKind) -> list[Event]:
    return [each for each in news if isinstance(each, Event) and each.kind is kind]


def in_order(news: News) -> bool:
    """Whether events came in the order of their brokers' clocks."""
    times = [each.time_ms for each in news if isinstance(each, Event)]
    return times == sorted(times)


def test_a_reader_sees_why_a_leader_changed_and_a_killed_broker_come_back() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> tuple[int, News]:
        first = await leader_of(cluster)

        async def bounce() -> None:
            cluster.kill(first)
            await asyncio.sleep(15.0)
            cluster.start_broker(first)
            await cluster.serving()

        return first, await read_while(admin, bounce)

    first, news = in_cluster(story)
    (elected,) = of_kind(news, EventKind.LEADER_ELECTED)
    assert f"broker {first} " in elected.cause
    assert elected.details["leader"] != first
    (passed_over,) = elected.details["passed_over"]
    assert re.match(rf"broker {first} is (suspected to be dead|not registered)", passed_over)
    leading = [e for e in of_kind(news, EventKind.BECAME_LEADER) if e.cause == elected.cause]
    assert [event.broker_id for event in leading] == [elected.details["leader"]]
    (started,) = of_kind(news, EventKind.BROKER_STARTED)
    assert (started.broker_id, started.details["in_order"]) == (first, False)
    assert "had not ended in order" in started.cause
    said = [each.what for each in news if isinstance(each, Interruption)]
    assert any("does not answer" in what for what in said)
    assert f"broker {first} answers again" in said
    for broker_id in (1, 2, 3):  # the first events of a restarted broker may come late
        assert in_order([each for each in news if each.broker_id == broker_id])


def test_a_stopped_broker_says_so_and_comes_back_in_order() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> tuple[int, News]:
        first = await leader_of(cluster)

        async def bounce() -> None:
            await cluster.stop_broker(first)
            cluster.start_broker(first)
            await cluster.serving()

        return first, await read_while(admin, bounce)

    first, news = in_cluster(story)
    (stopping,) = of_kind(news, EventKind.BROKER_STOPPING)
    assert stopping.broker_id == first
    (elected,) = of_kind(news, EventKind.LEADER_ELECTED)[:1]
    assert elected.cause == f"broker {first} is shutting down"
    (started,) = of_kind(news, EventKind.BROKER_STARTED)
    assert started.details["in_order"] is True


def test_the_beginning_is_read_whole_and_in_order() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> News:
        return await read_while(admin, lambda: asyncio.sleep(0), 2.0, from_beginning=True)

    news = in_cluster(story)
    assert len(of_kind(news, EventKind.BROKER_STARTED)) == 3
    assert len(of_kind(news, EventKind.CONTROLLER_ELECTED)) == 1
    assert [event.cause for event in of_kind(news, EventKind.BECAME_LEADER)] == [
        "the partition is new"
    ]
    assert in_order(news)


def test_a_broker_that_does_not_answer_at_first_is_read_without_its_history() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> News:
        links = [("admin", cluster.host(1)), (cluster.host(1), "admin")]
        for link in links:
            cluster.network.cut(*link)

        async def heal() -> None:
            await asyncio.sleep(20.0)
            for link in links:
                cluster.network.heal(*link)
            await asyncio.sleep(20.0)
            cluster.broker(1).events.record(EventKind.REQUEST_FENCED, "new", TP)

        return await read_while(admin, heal)

    news = in_cluster(story)
    told = [each.what for each in news if isinstance(each, Interruption)]
    assert told[-1] == "broker 1 answers again"
    assert [each.cause for each in news if isinstance(each, Event)] == ["new"]


def test_a_broker_that_starts_after_the_reader_is_read_from_its_start() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> News:
        cluster.kill(1)

        async def start() -> None:
            await asyncio.sleep(20.0)
            cluster.start_broker(1)
            await cluster.serving()

        return await read_while(admin, start)

    (started,) = of_kind(in_cluster(story), EventKind.BROKER_STARTED)
    assert started.broker_id == 1


def test_a_reader_that_is_too_slow_is_told_what_it_missed() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> News:
        busy = cluster.broker(1).events

        async def flood() -> None:
            for number in range(25_000):  # in one turn of the loop: more than the ring holds
                busy.record(EventKind.REQUEST_FENCED, str(number), TP)

        return await read_while(admin, flood)

    news = in_cluster(story)
    (interruption,) = [each for each in news if isinstance(each, Interruption)]
    fenced = of_kind(news, EventKind.REQUEST_FENCED)
    assert interruption.missed == 25_000 - len(fenced) > 0
    assert [event.cause for event in fenced[-2:]] == ["24998", "24999"]


def test_events_of_killed_brokers_are_read_too_and_the_story_reads_in_order() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> tuple[int, list[str]]:
        first = await leader_of(cluster)
        cluster.kill(first)
        await asyncio.sleep(15.0)
        assert any(name.startswith(f"broker-{first}/") for name in cluster.event_logs)
        return first, cluster.story()

    first, lines = in_cluster(story)
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times) and times[0] >= 0
    became = [i for i, line in enumerate(lines) if " became-leader: " in line]
    assert f"broker {first} {TP} became-leader: the partition is new" in lines[became[0]]
    assert f"broker {first} " not in lines[became[1]].partition(":")[0]


def test_strange_questions_get_plain_answers() -> None:
    async def story(cluster: SimulatedCluster, admin: Admin) -> list[DescribeEventsResponse]:
        network = cluster.client_runtime("stranger").network
        channel = network.connect(Address("broker-1", CLIENT_PORT), Service.ADMIN)
        log = cluster.broker(1).events
        for number in range(1_500):
            log.record(EventKind.REQUEST_FENCED, str(number), TP)
        questions = [
            DescribeEventsRequest(max_events=2**31 - 1),
            DescribeEventsRequest(max_events=-5),
            DescribeEventsRequest(life=log.life, after=2**62, max_events=1),
            DescribeEventsRequest(life=log.life + 1, after=1_400, max_events=1),
            DescribeEventsRequest(after=-7),
            DescribeEventsRequest(topics=["nowhere"]),
        ]
        answers = [await channel.call(question, 60.0) for question in questions]
        begin = asyncio.get_running_loop().time()
        later = DescribeEventsRequest(log.life, log.last_sequence, 1, 2**31 - 1, [TP.topic])
        answers.append(await channel.call(later, 60.0))
        assert 29 < asyncio.get_running_loop().time() - begin < 31, "nobody waits for ever"
        await channel.close()
        return answers

    many, one, beyond, other_incarnation, now, nowhere, patient = in_cluster(story)
    assert len(many.events) == 1_000 and many.missed == 0
    assert [len(answer.events) for answer in (one, beyond, other_incarnation)] == [1, 1, 1]
    assert one.events == beyond.events == other_incarnation.events, "all begin at the beginning"
    assert now.events == [] and now.until >= 1_500
    assert nowhere.events and all(not event.topic for event in nowhere.events)
    assert patient.events == []


def test_a_stream_ends_when_its_client_is_closed() -> None:
    """It went on, over connections that nobody closed."""

    async def story(cluster: SimulatedCluster, admin: Admin) -> None:
        async with await admin.events() as stream:
            asyncio.get_running_loop().call_later(2, lambda: asyncio.ensure_future(admin.close()))
            async with asyncio.timeout(30):
                async for _ in stream:
                    pass
            async for _ in stream:
                raise AssertionError("it has ended")

    in_cluster(story)
