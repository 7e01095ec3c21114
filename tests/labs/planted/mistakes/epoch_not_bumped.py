"""An election names a new leader under the old leader epoch."""

from dataclasses import replace

from barnabas_controller.store.leader_and_isr import LeaderAndIsr


def with_leader(self: LeaderAndIsr, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return replace(self, leader=leader, isr=isr)


assert LeaderAndIsr.with_leader
LeaderAndIsr.with_leader = with_leader  # type: ignore[method-assign]
