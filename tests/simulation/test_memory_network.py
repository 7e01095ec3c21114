"""The memory network on virtual time: cut links, killed processes, and one trace per seed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from barnabas_common.errors import MaybeApplied, NotApplied
from barnabas_common.runtime import Address, Channel, Service
from barnabas_simulator.loop import NODE, VirtualLoop, run
from barnabas_simulator.network import MemoryNetwork

from tests.contract.network_peer import ScriptedPeer, produce

SERVER = Address("server", 9092)


@dataclass
class Scene:
    """A client and a server on one memory network."""

    network: MemoryNetwork
    peer: ScriptedPeer
    channel: Channel

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()


async def serve(network: MemoryNetwork, peer: ScriptedPeer, incarnation: int = 1) -> None:
    """Open the server's listener, in the server's own context."""

    async def open_listener() -> None:
        NODE.set(f"server/{incarnation}")
        await network.node("server").listen("TEST", SERVER, peer.handlers())

    await asyncio.create_task(open_listener())


def simulate(scenario: Callable[[Scene], Awaitable[None]], seed: int = 1) -> None:
    async def main() -> None:
        network = MemoryNetwork(seed)
        peer = ScriptedPeer()
        await serve(network, peer)
        channel = network.node("client").connect(SERVER, Service.DATA)
        await scenario(Scene(network, peer, channel))
        await channel.close()

    run(main(), seed)


def test_a_cut_link_is_silence_until_the_time_runs_out() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.cut("client", "server")
        before = scene.now
        with pytest.raises(MaybeApplied, match="no answer"):
            await scene.channel.call(produce("lost"), timeout=3)
        assert scene.now - before == pytest.approx(3)
        assert len(scene.peer.received) == 1

    simulate(scenario)


def test_a_link_cut_one_way_carries_the_request_but_not_the_answer() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.cut("server", "client")
        with pytest.raises(MaybeApplied):
            await scene.channel.call(produce("applied"), timeout=3)
        assert scene.peer.finished == ["echo", "applied"]

    simulate(scenario)


def test_what_a_healed_link_held_back_arrives_in_order() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.cut("client", "server")
        calls = [
            asyncio.create_task(scene.channel.call(produce("late", n), timeout=30))
            for n in range(10)
        ]
        await asyncio.sleep(5)
        scene.network.heal("client", "server")
        await asyncio.gather(*calls)
        assert [request.partitions[0].partition for request in scene.peer.received[1:]] == list(
            range(10)
        )

    simulate(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_frames_of_an_abandoned_connection_arrive_late_and_in_order(seed: int) -> None:
    """After frames of the connection that its client opened in its place."""

    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        let_through = scene.network.hold_back("client", "server", patience=1.0)
        assert let_through is not None
        before = scene.now
        calls = [
            asyncio.create_task(scene.channel.call(produce("late", n), timeout=30))
            for n in range(5)
        ]
        for call in calls:
            with pytest.raises(MaybeApplied, match="reset by peer"):
                await call
        assert scene.now - before == pytest.approx(1.0, abs=0.1)
        for n in range(5, 8):
            await scene.channel.call(produce("new", n), timeout=5)
        let_through()
        await asyncio.sleep(1)
        numbers = [request.partitions[0].partition for request in scene.peer.received[1:]]
        assert numbers == [5, 6, 7, 0, 1, 2, 3, 4]
        await scene.channel.call(produce("same connection"), timeout=5)

    simulate(scenario, seed)


def test_a_connection_that_sent_nothing_is_not_abandoned() -> None:
    async def scenario(scene: Scene) -> None:
        assert scene.network.hold_back("client", "server", patience=1.0) is None
        await scene.channel.call(produce("echo"), timeout=5)
        let_through = scene.network.hold_back("client", "server", patience=1.0)
        assert let_through is not None
        await asyncio.sleep(5)
        let_through()
        await scene.channel.call(produce("echo"), timeout=5)
        assert scene.network.hold_back("server", "client", patience=1.0) is None
        assert len(scene.peer.received) == 2

    simulate(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_late_frames_reach_no_server_that_was_restarted(seed: int) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        let_through = scene.network.hold_back("client", "server", patience=0.0)
        assert let_through is not None
        with pytest.raises(MaybeApplied):
            await scene.channel.call(produce("late"), timeout=30)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.kill_node("server/1")
        scene.network.kill("server")
        await serve(scene.network, scene.peer, incarnation=2)
        let_through()
        await asyncio.sleep(1)
        assert scene.peer.finished == ["echo"]
        await scene.channel.call(produce("back"), timeout=5)

    simulate(scenario, seed)


def test_a_connection_breaks_when_its_link_stays_cut() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.cut("client", "server")
        before = scene.now
        with pytest.raises(MaybeApplied, match="fell silent"):
            await scene.channel.call(produce("lost"), timeout=100)
        assert scene.now - before == pytest.approx(scene.network.links.conditions.silence_limit)

    simulate(scenario)


def test_over_a_cut_link_no_connection_is_made() -> None:
    async def scenario(scene: Scene) -> None:
        scene.network.cut("server", "client")
        with pytest.raises(NotApplied, match="timed out"):
            await scene.channel.call(produce("echo"), timeout=30)
        with pytest.raises(NotApplied, match="no connection"):
            await scene.channel.call(produce("echo"), timeout=0.5)
        scene.network.heal("server", "client")
        await scene.channel.call(produce("echo"), timeout=30)

    simulate(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_a_killed_server_breaks_calls_at_once_and_may_come_back(seed: int) -> None:
    async def scenario(scene: Scene) -> None:
        calls = [
            asyncio.create_task(scene.channel.call(produce("wait", n), timeout=60))
            for n in range(3)
        ]
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.kill_node("server/1")
        scene.network.kill("server")
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [MaybeApplied] * 3
        assert scene.now < 1.1
        with pytest.raises(NotApplied, match="refused"):
            await scene.channel.call(produce("echo"), timeout=5)
        scene.peer.gate.set()
        await serve(scene.network, scene.peer, incarnation=2)
        await scene.channel.call(produce("back"), timeout=5)
        assert scene.peer.finished == ["back"]

    simulate(scenario, seed)


def test_what_a_client_sent_before_it_was_killed_arrives_or_not_by_chance() -> None:
    arrived: list[bool] = []

    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        await scene.channel.send(produce("last words", acks=0), timeout=5)
        scene.network.kill("client")
        await asyncio.sleep(1)
        arrived.append("last words" in scene.peer.finished)

    for seed in range(16):
        simulate(scenario, seed)
    assert set(arrived) == {True, False}


def trace(seed: int) -> list[tuple[float, str]]:
    events: list[tuple[float, str]] = []

    async def scenario(scene: Scene) -> None:
        async def one(number: int) -> None:
            await scene.channel.call(produce(f"sleep:{number / 10000}"), timeout=5)
            events.append((scene.now, f"answer {number}"))

        await asyncio.gather(*(one(number) for number in range(20)))
        events.extend((scene.now, str(request)) for request in scene.peer.received)

    simulate(scenario, seed)
    return events


def test_one_seed_is_one_trace() -> None:
    assert trace(5) == trace(5)
    assert trace(5) != trace(6)


def test_a_request_may_be_executed_and_its_answer_lost() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.links.lose_next(("server", "client"))
        with pytest.raises(MaybeApplied, match="reset"):
            await scene.channel.call(produce("applied"), timeout=5)
        assert scene.peer.finished == ["echo", "applied"]
        await scene.channel.call(produce("again"), timeout=5)

    simulate(scenario)


def test_a_request_may_be_lost_with_its_connection() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.links.lose_next(("client", "server"))
        with pytest.raises((MaybeApplied, NotApplied)):
            await scene.channel.call(produce("lost"), timeout=5)
        await scene.channel.call(produce("next"), timeout=5)
        assert scene.peer.finished == ["echo", "next"]

    simulate(scenario)


def test_a_reset_breaks_what_is_under_way() -> None:
    async def scenario(scene: Scene) -> None:
        call = asyncio.create_task(scene.channel.call(produce("wait"), timeout=60))
        await asyncio.sleep(1)
        scene.network.reset("server", "client")
        with pytest.raises(MaybeApplied, match="reset"):
            await call
        assert scene.now < 1.1

    simulate(scenario)


def test_a_flaky_link_breaks_some_connections_and_lets_others_through() -> None:
    outcomes: list[bool] = []

    async def scenario(scene: Scene) -> None:
        scene.network.links.make_flaky(("server", "client"), 0.3)
        for _ in range(50):
            try:
                await scene.channel.call(produce("echo"), timeout=5)
                outcomes.append(True)
            except (MaybeApplied, NotApplied):
                outcomes.append(False)
        scene.network.links.make_flaky(("server", "client"), 0)
        await scene.channel.call(produce("echo"), timeout=5)

    simulate(scenario)
    assert 5 < outcomes.count(False) < 30


def test_a_slow_link_is_late_and_in_order() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.links.delay(("client", "server"), 2.0)
        before = scene.now
        calls = [scene.channel.call(produce("late", n), timeout=30) for n in range(10)]
        await asyncio.gather(*calls)
        assert 1 < scene.now - before < 2.1
        partitions = [request.partitions[0].partition for request in scene.peer.received[1:]]
        assert partitions == list(range(10))
        scene.network.links.delay(("client", "server"), 0)
        before = scene.now
        await scene.channel.call(produce("echo"), timeout=5)
        assert scene.now - before < 0.01

    simulate(scenario)


async def hopeless(call: Awaitable[object]) -> None:
    with pytest.raises(MaybeApplied):
        await call


def test_the_end_of_an_earlier_incarnation_is_told_when_the_host_has_its_power_again() -> None:
    """A cut link held the reset back, and was healed while the host had no power again."""

    async def scenario(scene: Scene) -> None:
        network = scene.network
        await scene.channel.call(produce("echo"), timeout=5)
        network.lose_power("server")
        network.cut("server", "client")
        network.regain_power("server")
        network.lose_power("server")
        network.heal("server", "client")
        network.regain_power("server/2")
        await serve(network, scene.peer, incarnation=3)
        await asyncio.sleep(1)
        await scene.channel.call(produce("echo"), timeout=5)

    simulate(scenario)


def test_a_frame_that_was_to_be_lost_arrives_once_nothing_more_is_to_be() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        scene.network.links.lose_next(("client", "server"))
        scene.network.links.lose_nothing_more()
        await scene.channel.call(produce("echo"), timeout=5)

    simulate(scenario)


@pytest.mark.parametrize("seed", range(4))
def test_a_host_without_power_refuses_no_one_and_knows_no_connection_when_it_is_back(
    seed: int,
) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.channel.call(produce("echo"), timeout=5)
        early = asyncio.create_task(hopeless(scene.channel.call(produce("wait"), timeout=60)))
        await asyncio.sleep(0.5)
        scene.network.lose_power("server")
        scene.peer.gate.set()  # its answer is sent and never arrives
        with pytest.raises(MaybeApplied, match="no answer"):
            await scene.channel.call(produce("lost"), timeout=3)
        fresh = scene.network.node("other").connect(SERVER, Service.DATA)
        with pytest.raises(NotApplied, match="timed out"):
            await fresh.call(produce("echo"), timeout=5)
        call = asyncio.create_task(scene.channel.call(produce("lost"), timeout=60))
        await asyncio.sleep(1)
        scene.network.regain_power("server")
        with pytest.raises(MaybeApplied, match="reset"):
            await call
        with pytest.raises(NotApplied, match="refused"):
            await fresh.call(produce("echo"), timeout=5)
        await fresh.close()
        await early

    simulate(scenario, seed)
