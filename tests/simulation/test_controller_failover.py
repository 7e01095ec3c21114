"""Which broker is controller, what it does first, and what happens to a former controller."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
)
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignPartition,
)
from barnabas_common.messages.topics import NewPartitions
from barnabas_common.runtime import Address, Channel, ProbeResult, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.controller_election import current_controller, elect
from barnabas_controller.errors import ControllerMoved
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import ControllerEpoch, FencedStore
from barnabas_controller.store.leader_and_isr import NO_LEADER
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import (
    ConnectionLoss,
    Operation,
    OperationResult,
    Session,
)

from tests.support.control_world import QUIET, ControlWorld, run_world
from tests.support.meddling import Meddling

FLIGHTS = TopicPartition("flights", 0)


def test_the_first_broker_becomes_controller_with_epoch_1() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        assert world.controller() is world.brokers[1]
        assert world.brokers[1].controller.epoch == 1
        assert await world.store.get(znodes.CONTROLLER_EPOCH) is not None
        controller = await current_controller(world.store)
        assert controller is not None and controller.broker_id == 1
        await world.until(lambda: world.brokers[2].controller.active_controller_id == 1)

    run_world(test)


def test_an_election_above_an_epoch_that_has_grown_meanwhile_is_lost() -> None:
    """Another broker was elected and resigned between the read and the write."""

    async def test(world: ControlWorld) -> None:
        await world.store.ensure(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(4))

        async def grow() -> None:
            await world.store.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(5))

        session = Meddling(world.store.session, znodes.CONTROLLER_EPOCH, grow)
        with pytest.raises(ControllerMoved):
            await elect(Store(session), 1, 0)
        assert await world.store.exists(znodes.CONTROLLER) is None
        assert (await elect(world.store, 1, 0)).number == 6

    run_world(test)


def test_a_dead_controller_is_followed_by_another_under_the_next_epoch() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.kill_and_expire(1)
        await world.until(lambda: world.controller() is not None)
        controller = world.controller()
        assert controller is not None and controller.controller.epoch == 2
        found = await world.store.get(znodes.CONTROLLER_EPOCH)
        assert found is not None and znodes.decode_controller_epoch(found[0]) == 2
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.controller_epoch == 2
        assert state.isr == (2, 3)

    run_world(test)


def test_a_new_controller_says_who_is_alive_before_who_leads() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        await world.until(lambda: "LeaderAndIsr" in world.brokers[3].kinds())
        for broker in world.brokers.values():
            broker.told.clear()
        await world.kill_and_expire(1)
        await world.until(lambda: "LeaderAndIsr" in world.brokers[3].kinds())
        told = [r for r in world.brokers[3].told if r.controller_epoch == 2]
        first = told[0]
        assert isinstance(first, UpdateMetadataRequest)
        assert [(p.topic, p.partition, p.leader) for p in first.partitions] == [("flights", 0, 2)]
        assert {endpoint.broker_id for endpoint in first.live_brokers} == {2, 3}
        kinds = world.brokers[3].kinds()
        assert kinds.index("UpdateMetadata") < kinds.index("LeaderAndIsr")

    run_world(test)


def test_a_failover_finishes_what_the_dead_controller_left() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [3, 2]})
        await world.kill_and_expire(2, 3, 1)  # no broker is left to move the leadership
        topic = b'{"version":1,"partitions":{"0":[4]}}'
        await world.store.ensure(znodes.topic_path("written-meanwhile"), topic)
        await world.store.ensure("/isr_change_notification/isr_change_0000000000")
        await world.start_broker(2)
        state = await world.until_state(FLIGHTS, lambda s: s.leader in (2, NO_LEADER))
        assert state.isr in ((2,), (3,)), "whoever was the last to stay in sync"
        await world.start_broker(4)
        await world.until_state(TopicPartition("written-meanwhile", 0), lambda s: s.leader == 4)
        assert await world.store.children("/isr_change_notification") == []

    run_world(test)


def test_the_writes_of_an_old_controller_are_refused() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        state = await world.state(FLIGHTS)
        assert state is not None
        old = FencedStore(world.store, ControllerEpoch(1, 1))
        await world.kill_and_expire(1)
        await world.until(lambda: world.controller() is not None)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        with pytest.raises(ControllerMoved):
            await old.update_states({FLIGHTS: state.with_leader(1, (1,))})
        with pytest.raises(ControllerMoved):
            await old.create_states({TopicPartition("flights", 9): state})
        with pytest.raises(ControllerMoved):
            await old.delete_topic("flights")
        with pytest.raises(ControllerMoved):
            await old.delete_controller()
        assert await world.state(FLIGHTS) == state

    run_world(test)


def test_a_controller_whose_znode_is_deleted_resigns_and_one_is_elected_again() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.store.remove(znodes.CONTROLLER)
        await world.until(
            lambda: [b.controller.epoch for b in world.brokers.values()].count(2) == 1
        )
        await world.settle()
        assert sorted(b.controller.epoch for b in world.brokers.values()) == [0, 0, 2]
        told = [event.kind for event in world.brokers[1].events.since(0)]
        assert told.count(EventKind.CONTROLLER_RESIGNED) == 1

    run_world(test)


def test_a_controller_cut_off_from_zookeeper_stops_when_its_session_is_over() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [3, 2]})
        old = world.brokers[1]
        world.zookeeper.client(old.node).disconnect()
        await world.until(
            lambda: world.brokers[2].controller.is_active or world.brokers[3].controller.is_active
        )
        world.zookeeper.client(old.node).reconnect()
        await world.until(lambda: not old.controller.is_active)
        answer = await old.controller.handle(AlterPartitionRequest(3, 1, []))
        assert answer.error_code == ErrorCode.NOT_CONTROLLER

    run_world(test)


def test_requests_waiting_for_their_turn_are_answered_when_the_term_ends() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        old, leader = world.brokers[1], world.brokers[2]
        world.zookeeper.client(old.node).disconnect()
        item = AlterPartitionItem("flights", 0, 0, 0, [2])  # its write cannot be answered now
        request = AlterPartitionRequest(2, leader.epoch, [item])
        waiting = [asyncio.ensure_future(old.controller.handle(request)) for _ in "12"]
        await asyncio.sleep(2)
        assert not any(task.done() for task in waiting)
        await world.until(lambda: world.controller() is None)
        world.zookeeper.client(old.node).reconnect()
        for task in waiting:
            assert (await task).error_code == ErrorCode.NOT_CONTROLLER
        state = await world.state(FLIGHTS)
        assert state is not None and state.isr == (2, 3)

    run_world(test)


def test_who_grows_a_topic_is_told_if_the_controller_ended_meanwhile() -> None:
    """The write was applied, so a repetition is refused: it must not look as if nothing was."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        old = world.brokers[1]
        grow = NewPartitions("flights", 2)
        world.zookeeper.lose_next_reply(old.session, znodes.CONTROLLER_EPOCH)
        begun, waiting = [
            asyncio.ensure_future(old.controller.create_partitions(grow)) for _ in "12"
        ]
        while not await has_grown(world):
            await asyncio.sleep(0.001)
        world.zookeeper.expire(old.session)
        assert (await begun).error_code == ErrorCode.NETWORK_EXCEPTION
        assert (await waiting).error_code == ErrorCode.NOT_CONTROLLER

    run_world(test)


async def has_grown(world: ControlWorld) -> bool:
    topic = await world.store.topic("flights")
    return topic is not None and len(topic.partitions) == 2


def test_who_reassigns_is_told_if_the_controller_ended_meanwhile() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        old = world.brokers[1]
        world.zookeeper.client(old.node).disconnect()  # no write is answered from now on
        requests = (
            AlterPartitionReassignmentsRequest([ReassignPartition("flights", 0, replicas)])
            for replicas in ([1, 2], [1, 3])
        )
        begun, waiting = [asyncio.ensure_future(old.controller.handle(one)) for one in requests]
        await world.until(lambda: world.controller() is None)  # there are two
        world.zookeeper.client(old.node).reconnect()
        assert (await begun).error_code == ErrorCode.NETWORK_EXCEPTION
        assert (await waiting).error_code == ErrorCode.NOT_CONTROLLER

    run_world(test)


class BrokenNetwork:
    """Raises an unforeseen error when a channel to one address is opened."""

    def __init__(self, network: Any, bad_host: str) -> None:
        self._network = network
        self.bad_host = bad_host

    def connect(self, address: Address, service: Service) -> Channel:
        if address.host == self.bad_host:
            raise RuntimeError("a fault nobody foresaw")
        channel: Channel = self._network.connect(address, service)
        return channel

    async def probe(self, address: Address, timeout: float) -> ProbeResult:
        answer: ProbeResult = await self._network.probe(address, timeout)
        return answer


def test_a_controller_that_fails_unforeseen_gives_up_its_term() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_broker(1, BrokenNetwork(world.network.node("broker-1/1"), "host3"))
        await world.until(lambda: world.controller() is not None)
        await world.start_broker(2)
        await world.create_topic("flights", {0: [2, 1]})
        await world.start_broker(3)  # broker 1 cannot open a channel to it
        await world.until(lambda: world.brokers[1].controller.epoch == 0)
        resigned = world.clock.monotonic()
        await world.until(lambda: world.controller() not in (None, world.brokers[1]))
        assert world.clock.monotonic() - resigned < 0.5, "/controller is gone at once"
        await world.until(lambda: world.brokers[3].metadata(FLIGHTS) is not None)

    run_world(test)


def test_a_failover_that_fails_everywhere_says_why_and_does_not_spin() -> None:
    async def test(world: ControlWorld) -> None:
        broken = [BrokenNetwork(world.network.node(f"broker-{b}/1"), "host1") for b in (1, 2, 3)]
        for broker_id, network in enumerate(broken, start=1):
            await world.start_broker(broker_id, network)
        await world.settle(seconds=600)
        asides = {
            broker_id: [e for e in broker.events.since(0) if e.kind == "controller-stands-aside"]
            for broker_id, broker in world.brokers.items()
        }
        for broker_id, told in asides.items():
            assert [e.details["seconds"] for e in told[:6]] == [1, 2, 4, 8, 16, 30]
            assert 20 <= len(told) <= 26, "one in half a minute"
            resigned = [
                e.cause
                for e in world.brokers[broker_id].events.since(0)
                if e.kind == "controller-resigned"
            ]
            assert resigned == [e.cause for e in told]
            fault = "failed: RuntimeError: a fault nobody foresaw, while it took charge"
            assert all(fault in cause for cause in resigned)
        for network in broken:
            network.bad_host = "nowhere"
        await world.until(lambda: world.controller() is not None)
        await world.create_topic("flights", {0: [1, 2, 3]})

    run_world(test, replace(QUIET, suspects_on_evidence=False))  # otherwise the detector fails too


def test_after_a_long_term_the_next_fault_costs_a_short_pause() -> None:
    async def test(world: ControlWorld) -> None:
        network = BrokenNetwork(world.network.node("broker-1/1"), "host1")
        broker = await world.start_broker(1, network)
        await world.settle(seconds=20)
        network.bad_host = "nowhere"
        await world.until(lambda: broker.controller.is_active)
        await world.settle(seconds=40)
        network.bad_host = "host2"
        await world.start_broker(2)
        await world.settle()
        told = [e for e in broker.events.since(0) if e.kind == "controller-stands-aside"]
        assert [e.details["seconds"] for e in told] == [1, 2, 4, 8, 16, 1]

    run_world(test)


def test_a_malformed_controller_epoch_elects_no_one_until_it_is_mended() -> None:
    async def test(world: ControlWorld) -> None:
        await world.store.ensure(znodes.CONTROLLER_EPOCH, b"three")
        await world.start_broker(1)
        await world.settle(seconds=10)
        assert world.controller() is None
        await world.store.put(znodes.CONTROLLER_EPOCH, b"3")
        await world.until(lambda: world.brokers[1].controller.epoch == 4)

    run_world(test)


class Unheard:
    """A session that loses the answer to its first transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heard = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        results = await self._session.multi(operations)
        if not self._heard:
            self._heard = True
            raise ConnectionLoss("before the answer came")
        return results


def test_an_election_whose_answer_was_lost_was_won_all_the_same() -> None:
    async def test(world: ControlWorld) -> None:
        session = await world.zookeeper.client("x").connect(6000, 1000)
        store = Store(Unheard(session))
        epoch = await elect(store, 7, 0)
        assert epoch == ControllerEpoch(1, 1)
        current = await current_controller(store)
        assert current is not None
        assert (current.broker_id, current.session_id) == (7, session.session_id)
        with pytest.raises(ControllerMoved):
            await elect(world.store, 8, 0)

    run_world(test)


def test_a_broker_that_lost_power_while_no_one_ruled_leads_and_counts_no_more() -> None:
    """Its disk has lost what was not flushed: as leader it would make others truncate."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        for restarted in (1, 2):  # the controller among them
            world.zookeeper.expire(world.kill(restarted, keep_unflushed=False).session)
            await world.start_broker(restarted)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 3)
        assert state.isr == (3,)
        await world.until(lambda: all(b.role(FLIGHTS) is not None for b in world.brokers.values()))
        assert not any(
            told.leader in (1, 2)
            for broker_id in (1, 2)
            for request in world.brokers[broker_id].told
            if isinstance(request, LeaderAndIsrRequest)
            for told in request.partitions
        )

    run_world(test)


def test_a_broker_that_was_killed_while_no_one_ruled_keeps_its_place() -> None:
    """It lost nothing.

    A broker that is still registered may be dead, and must not be waited for.
    """

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        world.zookeeper.expire(world.kill(1).session)
        await world.start_broker(1)
        await world.until(lambda: world.controller() is not None)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        state = await world.store.state(FLIGHTS)
        assert state is not None and (state.leader, state.isr) == (1, (1, 2, 3))

    run_world(test)


def test_brokers_that_all_restarted_keep_their_places() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.kill_and_expire(1, 2, 3)
        for broker_id in (1, 2, 3):
            await world.start_broker(broker_id)
        await world.until(lambda: world.controller() is not None)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader >= 1 and state.isr

    run_world(test)
