"""The ZooKeeper seam: the real server and the one in memory answer alike."""

import asyncio

import pytest
from barnabas_controller.zookeeper.session import (
    REQUEST_LIMIT,
    BadVersion,
    Check,
    Create,
    Delete,
    EventType,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    RolledBack,
    SessionExpired,
    SetData,
    Stat,
    State,
    TooLarge,
    WatchEvent,
)

from tests.contract.zookeeper_servers import Ensemble, Events


async def test_a_new_znode_has_its_data_and_a_stat(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    assert await session.create("/a", b"data") == "/a"
    data, stat = await session.get("/a")
    assert data == b"data"
    assert (stat.version, stat.ephemeral_owner, stat.children) == (0, 0, 0)
    assert stat.czxid == stat.mzxid > 0
    assert stat.created_ms == stat.modified_ms
    await session.create("/a/b")
    assert await session.get("/a/b") == (b"", await session.exists("/a/b"))
    assert (await session.get("/a"))[1].children == 1
    await session.close()


async def test_create_refuses_what_exists_or_has_no_parent(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    with pytest.raises(NoNode, match="/a/b"):
        await session.create("/a/b")
    await session.create("/a", ephemeral=True)
    with pytest.raises(NodeExists, match="/a"):
        await session.create("/a")
    with pytest.raises(NoChildrenForEphemerals):
        await session.create("/a/b")
    await session.close()


async def test_what_does_not_exist_cannot_be_read_or_changed(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    assert await session.exists("/a") is None
    for ask in (
        session.get("/a"),
        session.children("/a"),
        session.set("/a", b""),
        session.delete("/a"),
    ):
        with pytest.raises(NoNode, match="/a"):
            await ask
    await session.close()


async def test_writes_are_conditional_on_the_version(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a", b"0")
    created = await session.exists("/a")
    stat = await session.set("/a", b"1", 0)
    assert created is not None
    assert stat.version == 1
    assert stat.czxid == created.czxid < stat.mzxid
    with pytest.raises(BadVersion):
        await session.set("/a", b"2", 0)
    with pytest.raises(BadVersion):
        await session.delete("/a", 0)
    assert (await session.set("/a", b"3")).version == 2
    await session.delete("/a", 2)
    assert await session.exists("/a") is None
    await session.close()


async def test_a_znode_with_children_is_not_deleted(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    await session.create("/a/b")
    with pytest.raises(NotEmpty):
        await session.delete("/a")
    await session.delete("/a/b")
    await session.delete("/a")
    await session.close()


async def test_children_are_sorted_names(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    for name in ("c", "a", "b"):
        await session.create(f"/a/{name}")
    assert await session.children("/a") == ["a", "b", "c"]
    await session.close()


async def test_sequential_names_count_every_child_ever_created(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    assert await session.create("/a/n_", sequential=True) == "/a/n_0000000000"
    await session.create("/a/plain")
    await session.delete("/a/plain")
    path = await session.create("/a/n_", b"x", sequential=True, ephemeral=True)
    assert path == "/a/n_0000000002"
    assert (await session.get(path))[0] == b"x"
    await session.close()


async def test_a_multi_creates_sequential_names_too(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    numbered = Create("/a/n_", b"x", sequential=True)
    assert (await session.multi([SetData("/a", b"1"), numbered]))[1] == "/a/n_0000000000"
    failed = await session.multi([numbered, SetData("/a", b"2", 7)])
    assert isinstance(failed[0], RolledBack) and isinstance(failed[1], BadVersion)
    assert await session.children("/a") == ["n_0000000000"]
    assert (await session.get("/a"))[0] == b"1"
    await session.close()


async def test_ephemerals_vanish_when_their_session_closes(ensemble: Ensemble) -> None:
    owner, other = await ensemble.session(), await ensemble.session()
    await owner.create("/a", ephemeral=True)
    stat = await other.exists("/a")
    assert stat is not None
    assert stat.ephemeral_owner == owner.session_id
    await owner.close()
    assert owner.state is State.CLOSED
    assert await other.exists("/a") is None
    with pytest.raises(SessionExpired):
        await owner.get("/")
    await other.close()


async def test_a_request_over_the_limit_is_refused_before_it_is_sent(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    with pytest.raises(TooLarge, match="/a"):
        await session.create("/a", bytes(REQUEST_LIMIT))
    await session.create("/a", bytes(REQUEST_LIMIT - 1000))
    with pytest.raises(TooLarge):
        await session.multi([SetData("/a", bytes(600_000)), Create("/b", bytes(600_000))])
    assert len((await session.get("/a"))[0]) == REQUEST_LIMIT - 1000
    await session.close()


async def test_a_path_over_the_limit_is_refused_before_it_is_sent(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    path = "/" + "a" * REQUEST_LIMIT
    for ask in (session.get, session.exists, session.children, session.delete):
        with pytest.raises(TooLarge) as refusal:
            async with asyncio.timeout(5):
                await ask(path)
        assert len(str(refusal.value)) < 500
    assert session.state is State.CONNECTED
    await session.close()


async def test_many_requests_at_once_are_answered_in_order(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/a")
    creates = [session.create("/a/n_", sequential=True) for _ in range(500)]
    paths = await asyncio.gather(*creates)
    assert paths == [f"/a/n_{number:010d}" for number in range(500)]
    await session.close()


# Multi


async def test_a_multi_returns_one_result_per_operation_in_order(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/epoch")
    results = await session.multi(
        [
            Check("/epoch", 0),
            Create("/a", b"1", ephemeral=True),
            SetData("/a", b"2", 0),
            Create("/b"),
            Delete("/b"),
        ]
    )
    assert results[:2] == [None, "/a"]
    assert isinstance(results[2], Stat)
    assert results[2].version == 1
    assert results[2].ephemeral_owner == session.session_id
    assert results[3:] == ["/b", None]
    assert await session.get("/a") == (b"2", results[2])
    assert await session.multi([]) == []
    await session.close()


async def test_a_failed_multi_changes_nothing_and_says_which_operation(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/epoch", b"1")
    await session.create("/old")
    before = await session.get("/epoch")
    results = await session.multi(
        [
            SetData("/epoch", b"2", 0),
            Delete("/old"),
            Create("/new", ephemeral=True),
            Create("/epoch"),
            Create("/other"),
        ]
    )
    kinds = [type(result) for result in results]
    assert kinds == [RolledBack, RolledBack, RolledBack, NodeExists, RolledBack]
    assert await session.get("/epoch") == before
    assert await session.exists("/new") is None
    assert await session.exists("/old") is not None
    await session.close()


async def test_the_fence_at_the_head_of_a_multi_decides(ensemble: Ensemble) -> None:
    session = await ensemble.session()
    await session.create("/epoch")
    await session.set("/epoch", b"2")
    results = await session.multi([Check("/epoch", 0), SetData("/missing", b"")])
    assert [type(result) for result in results] == [BadVersion, RolledBack]
    results = await session.multi([Check("/epoch", 1), SetData("/missing", b"")])
    assert [type(result) for result in results] == [RolledBack, NoNode]
    results = await session.multi([Check("/none", 0)])
    assert [type(result) for result in results] == [NoNode]
    await session.close()


# Watches


async def test_a_data_watch_fires_once(ensemble: Ensemble) -> None:
    session, events = await ensemble.session(), Events()
    await session.create("/a")
    await session.get("/a", events)
    await session.set("/a", b"1")
    await session.set("/a", b"2")
    await session.get("/a", events)
    await session.delete("/a")
    await events.until_count(2)
    assert events.seen == [
        WatchEvent(EventType.CHANGED, "/a"),
        WatchEvent(EventType.DELETED, "/a"),
    ]
    await session.close()


async def test_the_same_watch_set_twice_fires_once(ensemble: Ensemble) -> None:
    session, events = await ensemble.session(), Events()
    await session.create("/a")
    await session.get("/a", events)
    await session.exists("/a", events)
    await session.set("/a", b"1")
    await session.get("/a")
    assert events.seen == [WatchEvent(EventType.CHANGED, "/a")]
    await session.close()


async def test_a_missing_znode_can_be_watched_by_exists_only(ensemble: Ensemble) -> None:
    session, events = await ensemble.session(), Events()
    with pytest.raises(NoNode):
        await session.get("/a", events)
    await session.create("/a")
    await session.delete("/a")
    assert events.seen == []
    assert await session.exists("/a", events) is None
    await session.create("/a")
    await session.exists("/")
    assert events.seen == [WatchEvent(EventType.CREATED, "/a")]
    await session.close()


async def test_a_child_watch_fires_for_names_not_for_data(ensemble: Ensemble) -> None:
    session, other, events = await ensemble.session(), await ensemble.session(), Events()
    await session.create("/a")
    await session.create("/a/b")
    assert await session.children("/a", events) == ["b"]
    await other.set("/a/b", b"1")
    await other.set("/a", b"1")
    await session.get("/a")
    assert events.seen == []
    await other.create("/a/c")
    await events.until_count(1)
    assert events.seen == [WatchEvent(EventType.CHILDREN, "/a")]
    await session.children("/a", events)
    await other.delete("/a/c")
    await events.until_count(2)
    await session.close()
    await other.close()


async def test_a_watch_fires_before_newer_data_is_read(ensemble: Ensemble) -> None:
    reader, writer = await ensemble.session(), await ensemble.session()
    await reader.create("/a", b"0")
    for round_number in range(1, 30):
        events = Events()
        before, _ = await reader.get("/a", events)
        writing = asyncio.ensure_future(writer.set("/a", str(round_number).encode()))
        while (await reader.get("/a"))[0] == before:
            continue
        assert events.seen == [WatchEvent(EventType.CHANGED, "/a")]
        await writing
    await reader.close()
    await writer.close()


async def test_the_end_of_a_session_fires_watches_on_its_ephemerals(ensemble: Ensemble) -> None:
    owner, other = await ensemble.session(), await ensemble.session()
    await owner.create("/ids")
    await owner.create("/ids/1", ephemeral=True)
    events, children = Events(), Events()
    await other.get("/ids/1", events)
    await other.children("/ids", children)
    await owner.close()
    await events.until_count(1)
    await children.until_count(1)
    assert events.seen == [WatchEvent(EventType.DELETED, "/ids/1")]
    assert children.seen == [WatchEvent(EventType.CHILDREN, "/ids")]
    await other.close()
