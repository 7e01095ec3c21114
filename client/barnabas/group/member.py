"""A member of a group: one task that joins, synchronizes and assigns, as `MemberState` says.

What the application must take part in happens elsewhere: the task stops in REVOKING and ASSIGNING,
and the consumer's next poll answers with `gave_up` and `took`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    error_for,
)
from barnabas_common.messages.groups import (
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.group.assignors import ASSIGNORS, Subscription
from barnabas.group.config import GroupConfig
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.leader import Assigned, assign, changed, described
from barnabas.group.protocol import (
    PROTOCOL_TYPE,
    MalformedProtocol,
    decode_assignment,
    encode_subscription,
)
from barnabas.group.states import (
    JOIN,
    PREVIOUS,
    SYNC,
    Generation,
    MemberState,
    Reaction,
    reaction,
)

logger = logging.getLogger(__name__)

# How long a member that leaves looks for its coordinator.
_LEAVE_SECONDS = 3.0

_S = MemberState


@dataclass(frozen=True)
class _LastAssignment:
    """What the sticky assignor tells the leader, even after the generation is lost."""

    partitions: Sequence[TopicPartition] = ()
    generation: int = -1


class GroupMember:
    """`owned()`: the partitions the consumer holds now. `on_change()` runs after state changes.

    `assignment`: what the last generation gave. `why`: why it rebalances, in words. `subscribed`:
    whether the consumer wants to be a member; a pattern may match no topics.
    """

    def __init__(
        self,
        config: GroupConfig,
        coordinator: GroupCoordinator,
        owned: Callable[[], Sequence[TopicPartition]],
    ) -> None:
        self.config = config
        self.coordinator = coordinator
        self.state = MemberState.UNJOINED
        self.generation = Generation()
        self.assignment: list[TopicPartition] = []
        self.subscribed = False
        self.topics: tuple[str, ...] = ()
        self.why = ""
        self.failure: BarnabasError | None = None
        self.since = 0.0
        self.on_change: list[Callable[[], None]] = []
        self._owned = owned
        self._last = _LastAssignment()
        self._led: Assigned | None = None
        self._rejoin_after = ""
        # The coordinator's `losses` when it gave the member id, until the id is surely written.
        self._unwritten_since: int | None = None
        self._failures = 0
        self._wakeup = asyncio.Event()
        self._tasks = TaskScope(f"group {config.group_id}", on_failure=self.broke)
        self._runner: asyncio.Task[None] | None = None

    @property
    def is_leader(self) -> bool:
        return self._led is not None

    def start(self) -> None:
        self.coordinator.cluster.on_update(self._on_metadata)
        self._runner = self._tasks.spawn(self._run(), "member")
        self._tasks.spawn(self.coordinator.keep_confirming(), "coordinator check")

    async def close(self) -> None:
        await self._tasks.close()

    # What the application's poll does

    def join(self, reason: str) -> None:
        """Begin a rebalance; during one, begin the next when it ends."""
        if self.state in (_S.REVOKING, _S.FAILED):
            return
        if self.state in (_S.UNJOINED, _S.STABLE):
            logger.info("group %s: joins: %s", self.config.group_id, reason)
            self.why = reason
            self._change(_S.REVOKING)
        else:
            self._rejoin_after = reason

    def rebalance_began(self) -> None:
        """Another member joined or left. Before the assignment is here, it is that rebalance."""
        if self.state in (_S.STABLE, _S.ASSIGNING):
            self.join("the group rebalances")

    def gave_up(self) -> None:
        """The application has given up what it must before a join."""
        self._failures = 0
        self._change(_S.PREPARING_REBALANCE)

    def took(self, rejoin: str = "") -> None:
        """The application has taken the assignment; `rejoin`: why another rebalance is needed."""
        self._last = _LastAssignment(tuple(self.assignment), self.generation.number)
        self._change(_S.STABLE)
        rejoin = rejoin or self._rejoin_after
        self._rejoin_after = ""
        if rejoin:
            self.join(rejoin)

    def take_failure(self) -> BarnabasError | None:
        """The error to raise. The next poll joins again, unless another took this one's place."""
        failure = self.failure
        if not isinstance(failure, FencedInstanceIdError):
            self.failure = None
            self._restart()
            self._change(_S.UNJOINED)
        return failure

    async def leave(self, reason: str, timeout: float) -> None:
        """Out of the group. A static member stays in it until its session expires (KIP-345).

        The coordinator may be moving just now: it is asked again, but a cluster that is down does
        not keep a program from its end.
        """
        left, was = self.generation, self.state
        self.generation = Generation()
        self._led = None
        self._rejoin_after = ""
        self._restart()
        self._change(_S.UNJOINED)
        if was is _S.UNJOINED or not left.member_id or self.config.group_instance_id:
            return
        logger.info("group %s: %s leaves: %s", self.config.group_id, left.member_id, reason)
        identity = MemberIdentity(left.member_id, reason=reason)
        request = LeaveGroupRequest(self.config.group_id, [identity], self.config.client_id)
        try:
            await self.coordinator.ask(
                request, min(timeout, _LEAVE_SECONDS), lambda response: [response.error_code]
            )
        except BarnabasError as error:
            logger.info("group %s: leaving was not answered: %s", self.config.group_id, error)

    # What answers do

    def forget(self, step: Reaction, why: str) -> None:
        """This member's generation is over, and with FORGET_MEMBER its member id too."""
        member_id = "" if step is Reaction.FORGET_MEMBER else self.generation.member_id
        logger.info("group %s: %s: joins again", self.config.group_id, why)
        self.generation = Generation(member_id=member_id)
        self._unwritten_since = None
        self._led = None
        self._rejoin_after = ""
        self.why = why
        if self.state is _S.PREPARING_REBALANCE and not self._owned():
            return
        self._restart()
        self._change(_S.REVOKING)

    def fail(self, error: BarnabasError) -> None:
        """The application's next poll raises the error; the one after it joins again.

        Not if a coordinator has taken over before the member id was written: to this one the static
        member has the id of its last process, and no other has taken its place (beyond Kafka).
        """
        lost_id = self._unwritten_since not in (None, self.coordinator.losses)
        if lost_id and isinstance(error, FencedInstanceIdError):
            self.forget(Reaction.FORGET_MEMBER, str(error))
            return
        self.failure = error
        self.generation = Generation(member_id=self.generation.member_id)
        self._led = None
        self._restart()
        self._change(_S.FAILED)

    def broke(self, task: str, error: BaseException) -> None:
        """A task ended by a mistake here or in an assignor: the application must learn of it."""
        logger.error("task %s failed", task, exc_info=error)
        self.fail(ClientError(f"group {self.config.group_id!r}: {task} failed: {error!r}"))

    def _change(self, state: MemberState) -> None:
        if self.state not in PREVIOUS[state]:
            raise AssertionError(f"a member cannot go from {self.state.name} to {state.name}")
        self.state = state
        self.since = self.coordinator.cluster.clock.monotonic()
        self._wakeup.set()
        for listener in self.on_change:
            listener()

    def _restart(self) -> None:
        """Whatever the task waits for no longer matters."""
        if self._runner is not None and self._runner is not asyncio.current_task():
            self._runner.cancel()
            self._runner = self._tasks.spawn(self._run(), "member")

    def _on_metadata(self) -> None:
        """The leader looks whether partitions of the group's topics came or went, and soon again
        for topics that do not exist yet."""
        if self._led is None or self.state not in (_S.STABLE, _S.ASSIGNING):
            return
        metadata = self.coordinator.cluster.metadata
        if any(topic not in metadata.topics for topic in self._led.topics):
            self.coordinator.cluster.request_refresh()
        racks_matter = bool(self.config.client_rack)
        what = changed(self._led.partitions, metadata, self._led.topics, racks_matter)
        if what:
            self.join(what)

    # The task

    async def _run(self) -> None:
        while True:
            try:
                if self.state is _S.PREPARING_REBALANCE:
                    await self._join()
                else:
                    self._wakeup.clear()
                    await self._wakeup.wait()
            except BarnabasError as error:
                await self._on_error(error)

    async def _on_error(self, error: BarnabasError) -> None:
        if not error.retriable:
            self.fail(error)
            return
        await self._pause(error)

    async def _pause(self, error: BarnabasError) -> None:
        """Wait a little longer than the last time, then join again."""
        if self.state is _S.COMPLETING_REBALANCE:  # the join is repeated, not the sync
            self._change(_S.PREPARING_REBALANCE)
        self._failures += 1
        logger.info("group %s: joining failed, tries again: %s", self.config.group_id, error)
        self.coordinator.last_failure = error
        await asyncio.sleep(self.coordinator.cluster.backoff.seconds(self._failures))

    async def _join(self) -> None:
        request = self._join_request()
        response: JoinGroupResponse = await self.coordinator.call(request, self.config.join_timeout)
        step = reaction(JOIN, response.error_code)
        if step is Reaction.GO_ON:
            if response.member_id != self.generation.member_id:
                self._unwritten_since = self.coordinator.losses
            self.generation = Generation(
                response.generation_id, response.member_id, response.protocol_name
            )
            self._change(_S.COMPLETING_REBALANCE)
            await self._sync(response)
        elif step is Reaction.TAKE_MEMBER_ID:
            self.generation = Generation(member_id=response.member_id)
        else:
            await self._react(step, response.error_code, "JoinGroup")

    def _join_request(self) -> JoinGroupRequest:
        config, owned = self.config, self._owned()
        protocols = []
        for assignor in config.assignors:
            subscription = Subscription(
                self.topics,
                tuple(owned),
                self.generation.number,
                config.client_rack,
                assignor.user_data(self._last.partitions, self._last.generation),
            )
            protocols.append(JoinGroupProtocol(assignor.name, encode_subscription(subscription)))
        return JoinGroupRequest(
            config.group_id,
            round(config.session_timeout * 1000),
            round(config.max_poll_interval * 1000),
            self.generation.member_id,
            config.group_instance_id,
            PROTOCOL_TYPE,
            protocols,
            self.why[:255],
            config.client_id,
        )

    async def _sync(self, joined: JoinGroupResponse) -> None:
        assignor = ASSIGNORS.get(joined.protocol_name)
        if assignor is None:
            raise InconsistentGroupProtocolError(f"there is no assignor {joined.protocol_name!r}")
        led = None
        if joined.leader == joined.member_id:
            led = await assign(self.coordinator.cluster, assignor, joined.members)
        skip = joined.skip_assignment
        request = SyncGroupRequest(
            self.config.group_id,
            self.generation.number,
            self.generation.member_id,
            self.config.group_instance_id,
            PROTOCOL_TYPE,
            self.generation.protocol,
            [] if led is None or skip else led.assignments,
            self.config.client_id,
        )
        response: SyncGroupResponse = await self.coordinator.call(request, self.config.join_timeout)
        step = reaction(SYNC, response.error_code)
        if step is not Reaction.GO_ON:
            await self._react(step, response.error_code, "SyncGroup")
            return
        self._unwritten_since = None
        if response.protocol_name not in ("", self.generation.protocol):
            raise InconsistentGroupProtocolError(f"assigned by {response.protocol_name!r}")
        try:
            self.assignment = decode_assignment(response.assignment)
        except MalformedProtocol as error:
            raise InconsistentGroupProtocolError(str(error)) from error
        if led is not None and (skip or assignor.cooperative):
            if skip:  # its topics may have grown while it was away
                led = await described(self.coordinator, led)
            if led.without_reader:
                self._rejoin_after = (
                    f"no member reads {', '.join(map(str, led.without_reader))} yet"
                )
        self._led = led
        self._failures = 0
        logger.info(
            "group %s: %s in generation %d reads %s",
            self.config.group_id, self.generation.member_id, self.generation.number,
            ", ".join(map(str, self.assignment)) or "nothing",
        )  # fmt: skip
        self._change(_S.ASSIGNING)
        self._on_metadata()  # it may have changed during the synchronization

    async def _react(self, step: Reaction, code: int, request: str) -> None:
        error = error_for(code, f"{request} of group {self.config.group_id!r}")
        if step is Reaction.REJOIN:
            self._change(_S.PREPARING_REBALANCE)
        elif step in (Reaction.FORGET_MEMBER, Reaction.FORGET_GENERATION):
            self.forget(step, str(error))
        elif step is Reaction.FAIL:
            self.fail(error)
        else:
            if step is Reaction.FIND_COORDINATOR:
                self.coordinator.forget(error)
            await self._pause(error)
