"""What other tasks wait for when a client is closed."""

import asyncio

import pytest
from barnabas import Admin, TopicPartition
from barnabas_common.errors import ClosedError

from tests.support.scripted_brokers import ScriptedBrokers


async def test_a_call_that_goes_on_trying_ends_when_its_client_is_closed() -> None:
    """It went on until its timeout, over connections that it opened anew and nobody closed."""
    async with ScriptedBrokers() as brokers:
        brokers.log().leader = -1
        admin = await Admin(brokers.bootstrap, runtime=brokers.runtime).start()
        asking = asyncio.ensure_future(admin.list_offsets({TopicPartition("flights", 0): -1}))
        asked = brokers.metadata_requests
        async with asyncio.timeout(10):
            while brokers.metadata_requests < asked + 2:
                await asyncio.sleep(0.01)
            await admin.close()
            with pytest.raises(ClosedError):
                await asking
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert not [name for name in names if name.startswith("channel")]
