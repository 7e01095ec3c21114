"""Leaders ask for ISR changes: judge each, write the legal ones, tell every broker.

Handles AlterPartition (KIP-497) for the elected controller; the judgement is `alter_partition.py`.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind
from barnabas.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from barnabas.topic_partition import TopicPartition

from barnabas_controller.alter_partition import (
    AlreadyDone,
    Reject,
    Write,
    accepted,
    rejected,
    rule_on,
)
from barnabas_controller.election_report import report_decision
from barnabas_controller.leader_and_isr import LeaderAndIsr, describe_change
from barnabas_controller.min_isr import accounted
from barnabas_controller.reign import Reign
from barnabas_controller.state_reading import read_states
from barnabas_controller.zookeeper.session import BadVersion

logger = logging.getLogger(__name__)


class IsrChanges:
    """The ISR part of one reign."""

    def __init__(
        self, reign: Reign, on_accepted: Callable[[Sequence[TopicPartition]], None]
    ) -> None:
        """`on_accepted` hears of the partitions whose ISR is now as their leader asked for."""
        self._reign = reign
        self._context = reign.context
        self._on_accepted = on_accepted

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Answers every partition of the request, in its order."""
        broker = self._context.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            logger.warning(
                "AlterPartition of broker %d, epoch %d, which is registered as %s",
                request.broker_id,
                request.broker_epoch,
                "nothing" if broker is None else broker.epoch,
            )
            self._reign.events.record(
                EventKind.REQUEST_FENCED,
                "an ISR change was asked for by an earlier life of its session",
                broker=request.broker_id,
                meant_for_broker_epoch=request.broker_epoch,
                broker_epoch=-1 if broker is None else broker.epoch,
            )
            return AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH)
        answers: dict[TopicPartition, AlteredPartition] = {}
        writes: dict[TopicPartition, tuple[AlterPartitionItem, Write]] = {}
        for item in request.partitions:
            partition = TopicPartition(item.topic, item.partition)
            ruling = rule_on(
                item,
                self._context.leadership.get(partition),
                self._context.live_brokers(),
                request.broker_id,
                {broker.broker_id: broker.epoch for broker in self._context.brokers.values()},
            )
            if isinstance(ruling, Write):
                writes[partition] = (item, ruling)
            else:
                answers[partition] = self._answer(item, ruling)
        answers |= await self._write(writes)
        partitions = [TopicPartition(item.topic, item.partition) for item in request.partitions]
        self._reign.update_metadata(self._context.registered_brokers(), partitions)
        self._on_accepted([p for p in partitions if not answers[p].error_code])
        return AlterPartitionResponse(ErrorCode.NONE, [answers[p] for p in partitions])

    async def _write(
        self, writes: dict[TopicPartition, tuple[AlterPartitionItem, Write]]
    ) -> dict[TopicPartition, AlteredPartition]:
        answers = {}
        leadership = self._context.leadership
        states = {partition: ruling.state for partition, (_, ruling) in writes.items()}
        results = await self._reign.store.update_states(await accounted(self._reign, states))
        for partition, result in results.items():
            item, ruling = writes[partition]
            if isinstance(result, LeaderAndIsr):
                old, leadership[partition] = leadership[partition], result
                self._report_accepted(partition, old, result, item)
                logger.info("%s", describe_change(partition, old, result, ruling.reason))
                answers[partition] = accepted(item, result)
            elif isinstance(result, BadVersion):
                answers[partition] = rejected(item, ErrorCode.INVALID_UPDATE_VERSION)
                await self._refresh(partition)
            else:
                logger.error("%s: ZooKeeper refused the ISR change: %r", partition, result)
                answers[partition] = rejected(item, ErrorCode.UNKNOWN_SERVER_ERROR)
        return answers

    async def _refresh(self, partition: TopicPartition) -> None:
        for state, _ in (await read_states(self._reign, [partition])).values():
            logger.warning("%s: its state znode was changed from outside: %s", partition, state)
            known = self._context.leadership[partition]
            report_decision(
                self._reign, partition, known, state, "its state znode was changed by others"
            )
            self._context.leadership[partition] = state

    def _answer(self, item: AlterPartitionItem, ruling: AlreadyDone | Reject) -> AlteredPartition:
        if isinstance(ruling, AlreadyDone):
            return accepted(item, ruling.state)
        logger.info(
            "%s-%d: ISR change to %s refused, %s: %s",
            item.topic,
            item.partition,
            item.new_isr,
            ruling.code.name,
            ruling.reason,
        )
        self._reign.events.record(
            EventKind.ISR_CHANGE_REFUSED,
            f"{ruling.code.name}: {ruling.reason}",
            TopicPartition(item.topic, item.partition),
            asked_for=item.new_isr,
            asked_because=item.cause,
            leader_epoch=item.leader_epoch,
        )
        return rejected(item, ruling.code)

    def _report_accepted(
        self,
        partition: TopicPartition,
        old: LeaderAndIsr,
        new: LeaderAndIsr,
        item: AlterPartitionItem,
    ) -> None:
        self._reign.events.record(
            EventKind.ISR_CHANGE_ACCEPTED if new.isr != old.isr else EventKind.LAST_REPLICA_DURABLE,
            item.cause or f"broker {new.leader}, the leader, asked for it",
            partition,
            isr_before=old.isr,
            isr=new.isr,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
        )
