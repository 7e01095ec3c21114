"""Producer ids come from one znode, in blocks of 1000, each of which one broker takes."""

import asyncio

import pytest
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_common.errors import CoordinatorLoadInProgressError
from barnabas_common.events import EventKind, EventLog
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.producer_ids import (
    BLOCK_SIZE,
    ProducerIdBlock,
    decode_block,
    encode_block,
    next_block,
    take_block,
)
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import PRODUCER_ID_BLOCK
from barnabas_controller.zookeeper.session import ANY_VERSION, ConnectionLoss, Session

from tests.contract.zookeeper_servers import Ensemble

SECOND = b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'


async def store_in(ensemble: Ensemble) -> Store:
    store = Store(await ensemble.session(), EventLog())
    await store.create_persistent_paths()
    return store


async def content(store: Store) -> bytes:
    found = await store.get(PRODUCER_ID_BLOCK)
    assert found is not None
    return found[0]


async def test_the_znode_is_kafkas(ensemble: Ensemble) -> None:
    store = await store_in(ensemble)
    assert await take_block(store, 1) == ProducerIdBlock(1, 0, 999)
    assert await take_block(store, 2) == ProducerIdBlock(2, 1000, 1999)
    assert await content(store) == SECOND
    await store.session.close()


async def test_many_brokers_take_different_ids(ensemble: Ensemble) -> None:
    stores = [await store_in(ensemble) for _ in range(3)]
    managers = [ProducerIdManager(number, lambda s=s: s) for number, s in enumerate(stores)]
    found = await asyncio.gather(*(managers[n % 3].generate() for n in range(30)))
    assert len(set(found)) == 30
    assert {one // 1000 for one in found} == {0, 1, 2}
    for store in stores:
        await store.session.close()


async def test_a_block_is_used_up_before_the_next_is_taken(ensemble: Ensemble) -> None:
    store = await store_in(ensemble)
    manager = ProducerIdManager(1, lambda: store)
    assert [await manager.generate() for _ in range(1001)] == list(range(1001))
    again = ProducerIdManager(1, lambda: store)
    assert await again.generate() == 2000, "a broker that starts again takes a new block"
    await store.session.close()


async def test_a_znode_that_was_deleted_begins_at_0(ensemble: Ensemble) -> None:
    store = await store_in(ensemble)
    await store.remove(PRODUCER_ID_BLOCK)
    assert await take_block(store, 1) == ProducerIdBlock(1, 0, 999)
    await store.session.close()


async def test_a_broker_gives_no_id_twice_if_the_znode_is_set_back(ensemble: Ensemble) -> None:
    store = await store_in(ensemble)
    manager = ProducerIdManager(1, lambda: store)
    given = [await manager.generate() for _ in range(1000)]
    await store.remove(PRODUCER_ID_BLOCK)
    given += [await manager.generate() for _ in range(1000)]
    assert len(set(given)) == len(given)
    await store.session.close()


async def test_a_broker_that_is_ahead_of_zookeeper_leaves_a_gap(ensemble: Ensemble) -> None:
    """Ids that were given out after the copy of ZooKeeper was taken are not given out again, also
    not if the same copy is restored several times."""
    store = await store_in(ensemble)
    copy = await content(store) if await take_block(store, 1) else b""
    later = [await ProducerIdManager(n, lambda: store).generate() for n in (1, 2, 3)]
    for restored_at_ms in (1_700_000_000_000, 1_700_000_000_010, 1_700_000_000_500):
        await store.put(PRODUCER_ID_BLOCK, copy)
        ahead = ProducerIdManager(
            1, lambda: store, is_ahead=lambda: True, wall_ms=lambda now=restored_at_ms: now
        )
        other = ProducerIdManager(2, lambda: store)
        first = await ahead.generate()
        given = [first, await other.generate(), await ahead.generate()]
        assert min(given) > max(later), "not behind what was given out since the copy"
        assert max(given) < first + 2 * BLOCK_SIZE
        later += given
    await store.session.close()


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b"{}",
        b'{"version":1,"broker":2,"block_start":"1000","block_end":"999"}',
        b'{"version":1,"broker":2,"block_start":"-5","block_end":"999"}',
        b'{"version":1,"broker":2,"block_start":0,"block_end":999}',
        b'{"version":1,"broker":2,"block_start":"0","block_end":"9223372036854775808"}',
        b'{"version":1,"broker":2,"block_start":"0","block_end":"9223372036854775000"}',
    ],
)
async def test_a_malformed_block_is_left_alone_and_reported(
    ensemble: Ensemble, data: bytes
) -> None:
    store = await store_in(ensemble)
    await store.put(PRODUCER_ID_BLOCK, data)
    manager = ProducerIdManager(1, lambda: store)
    with pytest.raises(CoordinatorLoadInProgressError, match=PRODUCER_ID_BLOCK):
        await manager.generate()
    assert await content(store) == data
    assert store.events.since(0)[-1].kind is EventKind.ZNODE_MALFORMED
    await store.session.set(PRODUCER_ID_BLOCK, SECOND, ANY_VERSION)
    assert await manager.generate() == 2000, "after its repair"
    await store.session.close()


async def test_without_a_session_the_client_asks_again() -> None:
    with pytest.raises(CoordinatorLoadInProgressError, match="session"):
        await ProducerIdManager(1, lambda: None).generate()


async def test_a_block_whose_write_got_no_answer_is_given_to_no_producer(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await store_in(ensemble)
    write, lost = type(store.session).set, []

    async def set_and_lose_the_answer(session: Session, *arguments: object) -> object:
        done = await write(session, *arguments)  # type: ignore[arg-type]
        if not lost:
            lost.append(arguments)
            raise ConnectionLoss("the answer was lost")
        return done

    monkeypatch.setattr(type(store.session), "set", set_and_lose_the_answer)
    assert await take_block(store, 1) == ProducerIdBlock(1, 1000, 1999)
    await store.session.close()


def test_the_last_ids_are_not_passed() -> None:
    most = 2**63 - 1
    with pytest.raises(MalformedZnode, match="no producer ids are left"):
        next_block(ProducerIdBlock(1, 0, most - 1000), 1)
    assert next_block(ProducerIdBlock(1, 0, most - 1001), 1).last == most - 1
    assert decode_block(encode_block(ProducerIdBlock(3, 5, 7))) == ProducerIdBlock(3, 5, 7)
