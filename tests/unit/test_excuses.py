"""What is excused after a loss of power or an unclean election, and that nothing else is."""

from collections import Counter

import pytest
from barnabas_common.record.batch import stamp
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.campaign.clients.damage import is_named
from barnabas_simulator.campaign.judge.verdict import assert_delivered
from barnabas_simulator.delivery import History
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.excuses import LOST, Excuses
from barnabas_simulator.invariants.findings import Findings
from barnabas_simulator.invariants.log_rules import Held
from barnabas_simulator.invariants.logs.image import Images, LogImage
from barnabas_simulator.invariants.reports import ClientReports
from barnabas_simulator.invariants.truth import FaultBudget, Truth
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.invariants.violation import InvariantViolation

from tests.support.raw import batch

TP = TopicPartition("flights", 0)
PATH = f"/data/{TP}"
LENGTH_FOLLOWS, STAMPED = 12, 16


def stored(disk: MemoryDisk, *values: bytes, first: int = 0, epoch: int = 0) -> None:
    """Append one batch for each value."""
    disk.make_directory(PATH)
    file = disk.open(f"{PATH}/{0:020d}.log", create=True)
    for offset, value in enumerate(values, first):
        sent = batch(value)
        file.append([stamp(offset, epoch, len(sent) - LENGTH_FOLLOWS), sent[STAMPED:]])


def replica(broker_id: int, end: int, high_watermark: int, epoch: int) -> Replica:
    name = f"broker-{broker_id}/1"
    return Replica(broker_id, name, epoch, 0, 0, high_watermark, end, ((0, 0),), epoch, None)


class World:
    """Three replicas with the records a, b and c, all of them committed and acknowledged."""

    def __init__(self, power_cuts: bool = True) -> None:
        self.disks = {broker_id: MemoryDisk(broker_id) for broker_id in (1, 2, 3)}
        for disk in self.disks.values():
            stored(disk, b"a", b"b", b"c")
        self.images = Images(self.disks)
        self.truth = Truth(TP, LeaderAndIsr(1, 0, (1, 2, 3), 0), (1, 2, 3))
        self.truth.expose(self.image(1), 3)
        self.findings = Findings(None)
        self.counts: Counter[str] = Counter()
        budget = FaultBudget(power_cuts=power_cuts)
        self.excuses = Excuses(self.findings, self.images, budget, self.counts)

    def image(self, broker_id: int) -> LogImage:
        return self.images.of(broker_id, PATH)

    def has_lost(self, broker_id: int, records: int) -> None:
        """Its log ends so many records earlier."""
        batches = self.image(broker_id).batches
        size = sum(one.size for one in batches[: len(batches) - records])
        self.disks[broker_id].open(f"{PATH}/{0:020d}.log").truncate(size)

    def forgot(self, *brokers: int) -> None:
        self.excuses.forgot(brokers, {TP: self.truth})

    def leads(self, broker_id: int, epoch: int = 1) -> None:
        image = self.image(broker_id)
        self.excuses.leads(self.truth, replica(broker_id, image.end, 0, epoch), image)
        self.findings.raise_first()

    def is_elected_uncleanly(self, broker_id: int, lacks: int) -> None:
        """In epoch 1 a broker leads that lacks so many records."""
        self.has_lost(broker_id, lacks)
        self.truth.state = LeaderAndIsr(broker_id, 1, (broker_id,), 1)
        self.excuses.is_unclean(self.truth)
        self.leads(broker_id)


def test_after_a_power_cut_the_elected_log_says_what_is_lost() -> None:
    world = World()
    world.has_lost(2, 1)
    world.forgot(1, 2, 3)
    world.leads(2)
    assert world.truth.lost == {(2, b"c")}
    assert (world.truth.high_watermark, world.truth.forked) == (2, True)
    assert world.counts[LOST] == 1


def test_a_log_that_lacks_what_its_disk_had_when_power_was_back_is_no_excuse() -> None:
    world = World()
    world.has_lost(2, 1)
    world.forgot(1, 2, 3)
    world.has_lost(2, 1)
    with pytest.raises(InvariantViolation, match="I4 .* the disk had all below 2"):
        world.leads(2)


def test_a_disk_that_kept_everything_excuses_nothing() -> None:
    world = World()
    world.forgot(1, 2, 3)
    world.has_lost(2, 1)
    with pytest.raises(InvariantViolation, match="the disk had everything"):
        world.leads(2)


@pytest.mark.parametrize(
    ("power_cuts", "brokers"), [(True, (2,)), (True, (2, 3)), (False, (1, 2, 3))]
)
def test_nothing_is_excused_while_one_that_may_lead_has_lost_nothing_or_all_is_flushed(
    power_cuts: bool, brokers: tuple[int, ...]
) -> None:
    world = World(power_cuts)
    world.has_lost(2, 1)
    world.forgot(*brokers)
    world.leads(2)
    assert (world.truth.high_watermark, world.truth.lost) == (3, set())
    assert world.truth.lapsed == set(brokers)


def test_nothing_is_excused_while_an_eligible_replica_has_lost_nothing() -> None:
    world = World()
    world.truth.state = LeaderAndIsr(1, 0, (1, 2), 0, eligible=(3,))
    world.forgot(1, 2)
    assert not world.truth.all_lapsed
    world.forgot(3)
    assert world.truth.all_lapsed


def test_an_unclean_election_may_cut_what_its_log_has_not() -> None:
    world = World()
    world.is_elected_uncleanly(3, lacks=2)
    assert world.truth.lost == {(1, b"b"), (2, b"c")}
    assert world.truth.unclean == {1: 1}
    assert world.counts == {LOST: 2, "unclean elections": 1}


def test_the_next_election_is_judged_as_ever() -> None:
    world = World()
    world.is_elected_uncleanly(3, lacks=1)
    world.has_lost(2, 3)
    world.leads(2, epoch=2)
    assert (world.truth.high_watermark, world.truth.lost) == (2, {(2, b"c")})


def test_what_a_deposed_leader_still_exposes_beyond_the_cut_is_lost_too() -> None:
    world = World()
    world.is_elected_uncleanly(3, lacks=1)
    stored(world.disks[1], b"d", first=3)
    deposed = replica(1, 4, 4, epoch=0)
    world.excuses.deposed_exposed(world.truth, deposed, world.image(1))
    assert world.truth.lost == {(2, b"c"), (3, b"d")}
    of_the_same_epoch = replica(1, 4, 4, epoch=1)
    stored(world.disks[1], b"e", first=4)
    world.excuses.deposed_exposed(world.truth, of_the_same_epoch, world.image(1))
    assert (4, b"e") not in world.truth.lost


def test_a_client_that_hears_late_of_what_is_lost_is_told_nothing_wrong() -> None:
    world = World()
    reports = ClientReports(world.findings, {TP: world.truth})
    world.has_lost(2, 1)
    world.forgot(1, 2, 3)
    world.leads(2)
    stored(world.disks[2], b"x", first=2, epoch=1)
    world.truth.expose(world.image(2), 3)
    reports.acked(TP, 2, b"c")
    world.findings.raise_first()
    assert reports.lost() == {TP: {(2, b"c")}}
    reports.acked(TP, 2, b"y")
    with pytest.raises(InvariantViolation, match="I12"):
        world.findings.raise_first()


def test_logs_that_agree_again_are_compared_below_their_high_watermarks_again() -> None:
    world = World()
    world.truth.forked = True

    def held(high_watermark: int, *brokers: int) -> list[Held]:
        images = {b: world.image(b) for b in brokers}
        return [Held(replica(b, i.end, high_watermark, 0), i) for b, i in images.items()]

    world.excuses.look_whether_agreed(world.truth, held(3, 1, 2))
    assert world.truth.forked  # one of the replicas is away
    world.excuses.look_whether_agreed(world.truth, held(4, 1, 2, 3))
    assert world.truth.forked  # a high watermark is above an end
    world.excuses.look_whether_agreed(world.truth, held(3, 1, 2, 3))
    assert not world.truth.forked


def test_they_do_not_agree_as_long_as_a_leader_deposed_by_an_unclean_election_goes_on() -> None:
    world = World()
    images = {b: world.image(b) for b in (1, 2, 3)}
    world.truth.forked, world.truth.unclean = True, {1: 3}

    def held(led_epoch: int) -> list[Held]:
        others = [Held(replica(b, 3, 3, 1), images[b]) for b in (2, 3)]
        return [Held(replica(1, 3, 3, led_epoch), images[1]), *others]

    world.excuses.look_whether_agreed(world.truth, held(0))
    assert world.truth.forked
    world.excuses.look_whether_agreed(world.truth, held(1))
    assert not world.truth.forked


def test_only_what_is_excused_may_be_missing_at_the_end() -> None:
    histories = {"p": {TP: History(sent=[b"p/0", b"p/1"], acked={b"p/0": 0, b"p/1": 1})}}
    seen = {TP: {0: b"p/0", 1: b"p/1"}}
    kept = {TP: [(0, b"p/0")]}
    assert_delivered(histories, seen, kept, excused={TP: {(1, b"p/1")}})
    for wrong in ({}, {TP: {(2, b"p/1")}}, {TP: {(1, b"p/0")}}):
        with pytest.raises(AssertionError, match="lost"):
            assert_delivered(histories, seen, kept, excused=wrong)


@pytest.mark.parametrize(
    ("error", "is_about_it"),
    [
        ("flights-0 is damaged at offset 4 in the replica of broker 2", True),
        ("CORRUPT_MESSAGE: flights-0 at offset 5: damaged in the replica", True),
        ("flights-0 is damaged at offset 6 in the replica of broker 2", True),
        ("flights-0 is damaged at offset 3 in the replica of broker 2", False),
        ("flights-0 is damaged at offset 506 in the replica of broker 2", False),
        ("flights-1 is damaged at offset 4 in the replica of broker 2", False),
        ("late-flights-0 at offset", False),
    ],
)
def test_an_error_about_damage_is_right_where_a_fault_has_done_it(
    error: str, is_about_it: bool
) -> None:
    assert is_named(error, [(TP, range(4, 6))]) is is_about_it
