"""No member of the ISR is registered: which replica may lead, when, and by which minimum ISR."""

from dataclasses import replace

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.election.decision import Elected, Refused
from barnabas_controller.eligibility.elections import eligible_offline
from barnabas_controller.eligibility.eligible_leader_replicas import (
    LeaderEligibility,
    leader_eligibility,
    with_elr,
)
from barnabas_controller.eligibility.min_isr import MinimumIsr, read_minimum_isrs
from barnabas_controller.store.config_store import BROKER_DEFAULT, broker_entity, topic_entity
from barnabas_controller.store.leader_and_isr import NO_LEADER, UNKNOWN, LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import Broker
from barnabas_simulator.loop import run
from barnabas_simulator.zookeeper import MemoryZooKeeper

from tests.support.config_world import write_overrides, write_raw

ALL = (4, 5, 6)
V1, V2 = MinimumIsr(2, 101), MinimumIsr(2, 102)
ABSENT = LeaderEligibility(eligible_leader_replicas=(5,), replacements=(5,), absent=(4,))


def state(isr: tuple[int, ...], **fields: object) -> LeaderAndIsr:
    return LeaderAndIsr(NO_LEADER, 7, isr, 3, 11, **fields)  # type: ignore[arg-type]


def decide(
    found: LeaderEligibility, online: tuple[int, ...] = (5,), isr: tuple[int, ...] = (4,)
) -> Elected | Refused:
    return eligible_offline(state(isr), ALL, online, False, "broker 4 vanished", found)


def test_an_eligible_replica_leads_when_the_wait_is_over() -> None:
    decision = decide(replace(ABSENT, given_up=(4,)))
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (5, (5,))
    assert decision.recipients == (5,)
    assert "no member of the ISR [4] is registered" in decision.reason


def test_before_the_refusal_names_who_will_lead() -> None:
    decision = decide(ABSENT)
    assert isinstance(decision, Refused)
    assert decision.otherwise == 5
    assert "broker 5" in decision.why and "eligible.leader.replicas.wait.ms" in decision.why


@pytest.mark.parametrize(
    ("found", "isr"),
    [
        (replace(ABSENT, absent=(), suspected=(4,)), (4,)),  # a suspicion may be wrong
        (replace(ABSENT, absent=()), (4,)),  # it is shutting down
        (replace(ABSENT, given_up=(4,)), (4, 6)),  # 6 is registered
        (replace(ABSENT, replacements=(), given_up=(4,)), (4,)),  # the minimum is unknown
    ],
)
def test_no_one_leads_in_the_place_of_a_member_that_may_return(
    found: LeaderEligibility, isr: tuple[int, ...]
) -> None:
    decision = decide(found, isr=isr)
    assert isinstance(decision, Refused) and decision.otherwise == NO_LEADER


def test_a_member_that_cannot_use_its_log_is_awaited_and_then_replaced() -> None:
    """Its disk has failed, or its log is lost: its broker is registered, and will stay so."""
    found = replace(ABSENT, absent=(), failed=(4,), awaited=(4,))
    waiting = decide(found)
    assert isinstance(waiting, Refused)
    assert (waiting.awaits, waiting.otherwise) == ((4,), 5)
    assert "[4] cannot use their logs" in waiting.why
    decision = decide(replace(found, awaited=()))
    assert isinstance(decision, Elected)
    assert (decision.state.leader, decision.state.isr) == (5, (5,))
    with_an_absent_one = replace(found, absent=(6,), awaited=(4, 6))
    assert isinstance(decide(with_an_absent_one, isr=(4, 6)), Refused)
    both_over = replace(with_an_absent_one, given_up=(6,), awaited=())
    assert isinstance(decide(both_over, isr=(4, 6)), Elected)


def test_of_several_members_the_last_one_ends_the_wait() -> None:
    found = replace(ABSENT, absent=(4, 6))
    assert isinstance(decide(replace(found, given_up=(4,)), isr=(4, 6)), Refused)
    assert isinstance(decide(replace(found, given_up=(4, 6)), isr=(4, 6)), Elected)


def test_a_member_that_is_back_leads_as_before() -> None:
    decision = decide(replace(ABSENT, absent=()), online=(4, 5))
    assert isinstance(decision, Elected) and decision.state.leader == 4


# ---- the version of the minimum


def brokers(*ids: int) -> dict[int, Broker]:
    return {broker: Broker(broker, (), None, 17) for broker in ids}


def test_who_leaves_the_isr_is_eligible_by_the_minimum_of_that_moment() -> None:
    old = LeaderAndIsr(4, 7, (4, 5), 3, 11, proved_at={4: 17, 5: 17})
    thin = with_elr(old, old.with_leader(4, (4,)), ALL, V1, brokers(4, 5))
    assert (thin.eligible, thin.eligible_under) == ((5,), V1.version)
    orphan = with_elr(thin, thin.with_leader(NO_LEADER, (4,)), ALL, V1, brokers(5))
    assert (orphan.eligible, orphan.eligible_under) == ((5,), V1.version)
    assert leader_eligibility(orphan, ALL, (5,), brokers(5), V1).replacements == (5,)


def test_a_changed_minimum_ends_eligibility_even_if_it_is_as_before() -> None:
    held = state((4,), eligible=(5,), eligible_under=V1.version, proved_at={4: 17, 5: 17})
    found = leader_eligibility(held, ALL, (5,), brokers(5), V2)
    assert (found.eligible_leader_replicas, found.replacements) == ((), ())
    written = with_elr(held, held.with_leader(NO_LEADER, (4,)), ALL, V2, brokers(5))
    assert (written.eligible, written.eligible_under) == ((), UNKNOWN)


def test_who_leaves_after_the_change_is_eligible_by_the_new_minimum() -> None:
    held = LeaderAndIsr(
        4, 7, (4, 5), 3, 11, eligible=(6,), eligible_under=101, proved_at={4: 17, 5: 17, 6: 17}
    )
    minimum = MinimumIsr(3, 102)
    written = with_elr(held, held.with_leader(4, (4,)), ALL, minimum, brokers(4, 5, 6))
    assert (written.eligible, written.eligible_under) == ((5,), 102)


def test_a_state_of_an_earlier_version_is_no_ground_to_replace_absent_members() -> None:
    """Its eligible replicas count as before, but not as newly recorded ones."""
    held = state((4,), eligible=(5,), proved_at={4: 17, 5: 17})
    found = leader_eligibility(held, ALL, (5,), brokers(5), V1)
    assert (found.eligible_leader_replicas, found.replacements) == ((5,), ())
    written = with_elr(held, held.with_leader(NO_LEADER, (4,)), ALL, V1, brokers(5))
    assert (written.eligible, written.eligible_under) == ((5,), UNKNOWN)


@pytest.mark.parametrize("entity", [topic_entity("t"), BROKER_DEFAULT], ids=["topic", "all"])
def test_the_version_grows_with_every_setting_that_may_contain_the_minimum(entity: str) -> None:
    partition = TopicPartition("t", 0)

    async def story() -> None:
        store = Store(await MemoryZooKeeper().client("test").connect(60_000, 1000))
        await store.create_persistent_paths()

        async def read() -> MinimumIsr:
            return (await read_minimum_isrs(store, {partition: ALL}, 2))[partition]

        assert await read() == (2, 0)
        versions = [0]
        for size in (1, 2):
            await write_overrides(store, entity, {"min.insync.replicas": str(size)})
            found = await read()
            assert found.size == (size if entity == topic_entity("t") else 2)
            versions.append(found.version)
        for other in (topic_entity("u"), broker_entity(5)):
            await write_overrides(store, other, {"min.insync.replicas": "1"})
        assert (await read()).version == versions[-1], "no broker has a minimum of its own"
        assert versions == sorted(set(versions))
        await write_raw(store, topic_entity("t"), b"nonsense")
        assert await read_minimum_isrs(store, {partition: ALL}, 2) == {}

    run(story(), seed=1)
