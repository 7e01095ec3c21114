"""An election names a new leader under the old leader epoch, and no refusal raises it later."""

from dataclasses import replace

from barnabas_controller.election.decision import Decision, Unchanged
from barnabas_controller.partitions import epoch_refusals
from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def with_leader(self: LeaderAndIsr, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return replace(self, leader=leader, isr=isr)


def elect_above(*_: object) -> Decision:
    return Unchanged("the mistake")


assert LeaderAndIsr.with_leader and epoch_refusals.elect_above
LeaderAndIsr.with_leader = with_leader  # type: ignore[method-assign]
epoch_refusals.elect_above = elect_above
