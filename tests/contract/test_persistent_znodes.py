"""The fixed znodes hold null, as Kafka writes them, because it treats empty data as content."""

import asyncio

from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from kazoo.client import KazooClient

from tests.contract.zookeeper_servers import RealEnsemble


def raw(ensemble: RealEnsemble, path: str) -> bytes | None:
    """Return the data as the server has it; null is None."""
    client = KazooClient(hosts=ensemble.server.connect_string + ensemble.chroot)
    client.start()
    try:
        data: bytes | None = client.get(path)[0]
        return data
    finally:
        client.stop()
        client.close()


async def test_they_are_null(real_ensemble: RealEnsemble) -> None:
    session = await real_ensemble.session()
    await Store(session).create_persistent_paths()
    for path in znodes.PERSISTENT_PATHS:
        assert await asyncio.to_thread(raw, real_ensemble, path) is None, path
    await session.close()


async def test_the_empty_block_of_producer_ids_an_earlier_version_wrote_becomes_null(
    real_ensemble: RealEnsemble,
) -> None:
    session = await real_ensemble.session()
    await session.create(znodes.PRODUCER_ID_BLOCK, b"")
    assert await asyncio.to_thread(raw, real_ensemble, znodes.PRODUCER_ID_BLOCK) == b""
    await Store(session).create_persistent_paths()
    assert await asyncio.to_thread(raw, real_ensemble, znodes.PRODUCER_ID_BLOCK) is None
    await session.close()


async def test_a_block_that_was_handed_out_stays(real_ensemble: RealEnsemble) -> None:
    session = await real_ensemble.session()
    block = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    await session.create(znodes.PRODUCER_ID_BLOCK, block)
    await Store(session).create_persistent_paths()
    assert await asyncio.to_thread(raw, real_ensemble, znodes.PRODUCER_ID_BLOCK) == block
    await session.close()
