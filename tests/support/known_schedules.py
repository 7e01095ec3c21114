"""The classic failures of Kafka's replication and control, as a table.

Every schedule is played to its end under the invariants. The present code violates none of them;
with the matching bug of `seeded_bugs` it violates one of those that the schedule names.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from barnabas_simulator.loop import run

from tests.support import cluster_schedules as whole
from tests.support import replication_schedules as replication

MAX_SECONDS = 600.0


@dataclass(frozen=True)
class KnownSchedule:
    """`bug` is the seeded bug that it finds, by one of `invariants`.

    `bug` is None where more than one rule prevents the failure, so that no single bug brings it
    back.
    """

    name: str
    schedule: Callable[[], Awaitable[None]]
    bug: str | None = None
    invariants: tuple[str, ...] = ()

    def run(self) -> None:
        """Play the schedule. Raises InvariantViolation."""

        async def play() -> None:
            await self.schedule()

        run(play(), seed=1, max_time=MAX_SECONDS)


KNOWN_SCHEDULES = {
    schedule.name: schedule
    for schedule in (
        KnownSchedule(
            "KIP-101a",
            replication.kip_101a,
            "M1",
            ("I4 LeaderCompleteness", "I4b CandidateCompleteness"),
        ),
        KnownSchedule("KIP-101b", replication.kip_101b, "M1", ("I6 LogMatching", "I5 StrongIsr")),
        KnownSchedule("KIP-279", replication.kip_279, "M2", ("I6 LogMatching", "I5 StrongIsr")),
        KnownSchedule("KIP-320a", replication.kip_320a),
        KnownSchedule("KIP-320b", replication.kip_320b, "M3", ("I4b CandidateCompleteness",)),
        KnownSchedule("LESO join", replication.leso_join, "M4", ("I4b CandidateCompleteness",)),
        KnownSchedule("Pending-ISR", replication.pending_isr, "M5", ("I3 QuorumSuperset",)),
        KnownSchedule("Re-add race", replication.re_add_race),
        KnownSchedule(
            "KIP-966", whole.last_replica_standing, "Last replica standing", ("I9 NoGlobalLoss",)
        ),
        KnownSchedule("Join race", whole.join_race, "Join race", ("I4b CandidateCompleteness",)),
        KnownSchedule(
            "Double controller", whole.double_controller, "M6", ("I10 ControllerFencing",)
        ),
        KnownSchedule("Quick bounce", whole.quick_bounce, "M7", ("I11 BrokerEpoch",)),
        KnownSchedule("Answer lost", whole.answer_lost_with_the_leader, "M8", ("I13 Idempotence",)),
        KnownSchedule("Torn checkpoint", whole.torn_checkpoint, "M11", ("I20 Disk",)),
        KnownSchedule("Deposed leader", replication.deposed_leader, "M12", ("I1 TypeOk",)),
        KnownSchedule(
            "Missed watch",
            whole.missed_watch,
            "M13",
            ("L1 EveryPartitionHasALeader", "L2 IsrIsLiveReplicas"),
        ),
        KnownSchedule(
            "Ambiguous write", whole.ambiguous_write, "M16", ("L1 EveryPartitionHasALeader",)
        ),
    )
}
