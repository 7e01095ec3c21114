"""The parts of an explanation: facts for programs, sentences for humans."""

from dataclasses import dataclass, field
from enum import StrEnum


class About(StrEnum):
    """The question that a sentence answers, in the order they are asked."""

    LEADER = "leader"
    ISR = "isr"
    HIGH_WATERMARK = "high-watermark"
    LAST_STABLE_OFFSET = "last-stable-offset"
    TRUNCATION = "truncation"
    REFUSED = "refused"
    BROKER = "broker"
    ALSO = "also"
    DOUBT = "doubt"
    # of a transactional id
    TRANSACTION = "transaction"
    FENCED = "fenced"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Sentence:
    """`time_ms`: wall clock of the event it is about; 0 if it is about the present state."""

    about: About
    text: str
    time_ms: int = 0


@dataclass(frozen=True)
class Explanation:
    """`leader`, `leader_epoch` and the three offsets are -1 where unknown.

    `held_back_by`: the followers that the high watermark waits for. `unreachable`: replicas whose
    brokers could not be asked, so something may be missing.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    in_sync_replicas: list[int]
    out_of_sync: list[int]
    min_in_sync_replicas: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    held_back_by: list[int]
    unreachable: list[int]
    sentences: list[Sentence] = field(default_factory=list)

    def of(self, about: About) -> list[str]:
        """The sentences that answer one question."""
        return [sentence.text for sentence in self.sentences if sentence.about is about]

    @property
    def text(self) -> str:
        """All sentences, one a line."""
        return "\n".join(sentence.text for sentence in self.sentences)
