"""What a leader makes of its question whether a batch belongs to an open transaction (KIP-890)."""

from collections.abc import Mapping

import pytest
from barnabas_broker.replica.leader.leadership import ACKS_ALL
from barnabas_broker.replica.serve.verification import TransactionVerification, Unverified
from barnabas_common.errors import UnknownServerError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.transactional import transactional_batch
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld


def test_a_partition_that_the_coordinator_leaves_out_of_its_answer_is_not_verified() -> None:
    """A batch that came after its transaction would begin one that never ends."""

    async def nothing(_asked: Unverified, _timeout: float) -> Mapping[TopicPartition, ErrorCode]:
        return {}

    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1)
        await world.create(1)
        partitions = world.incarnations[1].manager.partitions
        verification = TransactionVerification(partitions, world.clock, nothing, lambda: True)
        batch = transactional_batch(7, 0, 0, [(b"key", b"value")])
        request = ProduceRequest(ACKS_ALL, 1000, [ProducePartition(*TP, bytes(batch))], "copy")
        verified = await world.on(1, verification.verify(request))
        with pytest.raises(UnknownServerError):
            verified.guard_for(TP)

    run(scenario())
