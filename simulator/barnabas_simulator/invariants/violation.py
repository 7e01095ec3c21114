"""What is raised when a run breaks an invariant."""

from collections.abc import Sequence

from barnabas_common.topic_partition import TopicPartition


class InvariantViolation(AssertionError):
    """`name` is the invariant's, such as "I4 LeaderCompleteness"; `at` is in virtual seconds.

    `states` are the contradicting states as text, `events` what happened just before. `since` says
    from when on they were wrong, as far as that is known.
    """

    def __init__(
        self,
        name: str,
        at: float,
        partition: TopicPartition | None,
        states: str,
        events: Sequence[str] = (),
        since: str = "",
    ) -> None:
        self.name = name
        self.at = at
        self.partition = partition
        self.states = states
        self.events = list(events)
        self.since = since
        super().__init__(str(self))

    def __str__(self) -> str:
        where = "" if self.partition is None else f" of {self.partition}"
        story = "".join(f"\n  {event}" for event in self.events)
        return f"{self.name}{where} is broken at {self.at:.3f} s: {self.states}\nbefore:{story}"
