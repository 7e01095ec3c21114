"""Questions to replicas that all lost records: the one with the newest log leads (after KIP-966).

Kafka elects the first member of the ISR. But if all machines lose power, each member has lost what
it had not flushed, and another one may have more. So the controller sends LeaderAndIsr with
`tell_only` to the members that are online, and to eligible replicas that lost records too. The
election is held again with their answers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.eligible_leader_replicas import NO_LOG
from barnabas_controller.state.context import Incarnation

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
        asked: dict[TopicPartition, list[Incarnation]] = {}
        for partition, members in replicas.items():
            logs = context.told_logs.get(partition, {})
            incarnations = [(member, context.brokers[member].epoch) for member in members]
            if unasked := [one for one in incarnations if one not in logs]:
                context.told_logs[partition] = {**logs, **dict.fromkeys(unasked)}
                asked[partition] = unasked
                broker_ids, state = [one for one, _ in unasked], context.leadership[partition]
                batch.leader_and_isr(broker_ids, partition, state, cause=CAUSE, tell_only=True)
        if asked:
            self._term.send(batch)
            self._elect_after_wait(asked)

    def _elect_after_wait(self, asked: Mapping[TopicPartition, Iterable[Incarnation]]) -> None:
        wait = self._term.config.eligible_leader_replicas_wait

        async def handle() -> None:
            over = {p: self._context.told_logs[p] for p in asked if p in self._context.told_logs}
            for partition, logs in over.items():
                logs.update({one: logs.get(one) or NO_LOG for one in asked[partition]})
            await self._elect(over, f"no other log was told of within {wait:g} s")

        name = "the wait for what logs hold is over"
        asyncio.get_running_loop().call_later(wait, self._term.enqueue, name, handle)

    def on_held(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Enqueue what a broker holds."""
        if self._context.told_logs:
            name = f"logs told by broker {broker_id}"
            incarnation = broker_id, request.broker_epoch
            self._term.enqueue(name, partial(self._on_told, incarnation, response.held))

    async def _on_told(self, incarnation: Incarnation, held: Iterable[HeldRole]) -> None:
        told = []
        for role in held:
            partition = TopicPartition(role.topic, role.partition)
            if partition in self._context.told_logs:
                log = role.log_epoch, role.log_end_offset
                self._context.told_logs[partition][incarnation] = log
                told.append(partition)
        await self._elect(told, f"broker {incarnation[0]} has told what its log holds")
