"""Questions to replicas that all lost records: the one with the newest log leads (after KIP-966).

Kafka elects the first member of the ISR. But if all machines lose power, each member has lost what
it had not flushed, and another one may have more. So the controller sends LeaderAndIsr with
`tell_only` to the members that are online, and the election is held again with their answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.eligible_leader_replicas import NO_LOG
from barnabas_controller.state.context import LogQuery

CAUSE = "the newest log is sought"


class LogQueries:
    """Asks the replicas, collects the answers, and has the partitions elected again.

    `elect(partitions, cause)` is awaited with the answers of each broker. It is also awaited when
    they have been awaited for `eligible.leader.replicas.wait.ms`: a replica that has not answered
    then counts as one without records.
    """

    def __init__(
        self,
        term: ControllerTerm,
        elect: Callable[[Iterable[TopicPartition], str], Awaitable[object]],
    ) -> None:
        self._term = term
        self._context = term.context
        self._elect = elect

    def ask(self, replicas: Mapping[TopicPartition, Iterable[int]]) -> None:
        """Ask these replicas, except those that have been asked."""
        context, batch = self._context, self._term.batch()
        asked: dict[TopicPartition, tuple[LogQuery, set[tuple[int, int]]]] = {}
        for partition, members in replicas.items():
            query = context.log_queries.get(partition, LogQuery())
            unasked = {(m, context.brokers[m].epoch) for m in members} - query.asked
            if unasked:
                context.log_queries[partition] = query
                query.asked |= unasked
                asked[partition] = query, unasked
                state, broker_ids = context.leadership[partition], [m for m, _ in sorted(unasked)]
                batch.leader_and_isr(broker_ids, partition, state, cause=CAUSE, tell_only=True)
        if asked:
            self._term.send(batch)
            self._elect_after_wait(asked)

    def _elect_after_wait(
        self, asked: Mapping[TopicPartition, tuple[LogQuery, set[tuple[int, int]]]]
    ) -> None:
        wait = self._term.config.eligible_leader_replicas_wait

        async def handle() -> None:
            for query, incarnations in asked.values():
                query.logs = dict.fromkeys(incarnations, NO_LOG) | query.logs
            current = self._context.log_queries
            over = [p for p, (query, _) in asked.items() if current.get(p) is query]
            await self._elect(over, f"no other log was told of within {wait:g} s")

        name = "the wait for what logs hold is over"
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
        told = []
        for role in response.held:
            partition = TopicPartition(role.topic, role.partition)
            query = self._context.log_queries.get(partition)
            if query is not None:
                incarnation = broker_id, request.broker_epoch
                query.logs[incarnation] = role.log_epoch, role.log_end_offset
                told.append(partition)
        await self._elect(told, f"broker {broker_id} has told what its log holds")
