"""Questions to replicas that all lost records: the one with the newest log leads (after KIP-966).

Kafka elects the first member of the ISR. But if all machines lose power, each member has lost what
it had not flushed, and another one may have more. So the controller sends LeaderAndIsr with
`tell_only` to the members that are online, and the election is held again with their answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.state.context import LogQuery


class LogQueries:
    """Asks the replicas, collects the answers, and has the partitions elected again.

    `elect(partitions, cause)` is awaited when all have answered. It is also awaited after
    `eligible.leader.replicas.wait.ms`: the answers that are there decide then.
    """

    def __init__(
        self,
        term: ControllerTerm,
        elect: Callable[[Iterable[TopicPartition], str], Awaitable[object]],
    ) -> None:
        self._term = term
        self._context = term.context
        self._elect = elect

    def ask(self, partition: TopicPartition, replicas: Iterable[int]) -> None:
        """Ask these replicas, except those that have been asked."""
        context = self._context
        query = context.log_queries.get(partition)
        if query is None:
            query = context.log_queries[partition] = LogQuery()
            self._elect_after_wait(partition, query)
        asking = {r: context.brokers[r].epoch for r in replicas}
        unasked = [r for r, epoch in asking.items() if query.asked.get(r) != epoch]
        query.asked.update(asking)
        batch, state = self._term.batch(), context.leadership[partition]
        cause = "the newest log is sought"
        batch.leader_and_isr(unasked, partition, state, cause=cause, tell_only=True)
        self._term.send(batch)

    def _elect_after_wait(self, partition: TopicPartition, query: LogQuery) -> None:
        wait = self._term.config.eligible_leader_replicas_wait

        async def handle() -> None:
            if self._context.log_queries.get(partition) is query:
                query.is_over = True
                await self._elect([partition], f"no other log was told of within {wait:g} s")

        name = f"{partition}: the wait for answers is over"
        asyncio.get_running_loop().call_later(wait, self._term.enqueue, name, handle)

    def on_response(self, broker_id: int, request: ControlRequest, response: Message) -> None:
        """Enqueue the answers of a broker; called with every response."""
        if (
            self._context.log_queries
            and isinstance(request, LeaderAndIsrRequest)
            and isinstance(response, LeaderAndIsrResponse)
            and response.error_code == ErrorCode.NONE
        ):
            name = f"logs told by broker {broker_id}"
            self._term.enqueue(name, partial(self._on_answered, broker_id, request, response))

    async def _on_answered(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        asked = [TopicPartition(p.topic, p.partition) for p in request.partitions if p.tell_only]
        told = []
        for role in response.held:
            partition = TopicPartition(role.topic, role.partition)
            query = self._context.log_queries.get(partition)
            if query is not None and partition in asked:
                query.logs[broker_id] = (request.broker_epoch, role.log_epoch, role.log_end_offset)
                told.append(partition)
        await self._elect(told, f"broker {broker_id} has told what its log holds")
