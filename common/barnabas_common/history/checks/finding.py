"""What a check finds: the class of anomaly, what is wrong, and the operations that prove it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

EXAMPLES = 20


class Anomaly(StrEnum):
    """Jepsen's names, where Jepsen has the class."""

    # offsets
    INCONSISTENT_OFFSETS = "inconsistent-offsets"  # one offset, two values
    DUPLICATE = "duplicate"  # one value, two offsets
    # what is missing
    LOST_WRITE = "lost-write"  # acknowledged, and readers have gone past it
    UNSEEN = "unseen"  # acknowledged, and no reader came that far
    VANISHED = "vanished"  # was read once, and the final read does not have it
    TORN_TRANSACTION = "torn-transaction"  # of unknown outcome, and only a part was read
    # what should not have been read
    PHANTOM = "phantom"  # never sent to this partition
    ABORTED_READ = "G1a"  # its send failed, or its transaction was aborted
    DIRTY_READ = "dirty-read"  # its transaction was open
    PRECOMMITTED_READ = "precommitted-read"  # a transaction read its own send
    # the order of reading
    POLL_SKIP = "poll-skip"
    NONMONOTONIC_POLL = "nonmonotonic-poll"
    INT_POLL_SKIP = "int-poll-skip"  # within one poll
    INT_NONMONOTONIC_POLL = "int-nonmonotonic-poll"
    # the order of sending
    NONMONOTONIC_SEND = "nonmonotonic-send"
    INT_NONMONOTONIC_SEND = "int-nonmonotonic-send"  # within one transaction
    INT_SEND_SKIP = "int-send-skip"  # records of others between those of a transaction
    # cycles of transactions
    G0 = "G0"  # each wrote before another in some partition
    G1C = "G1c"  # each read what another wrote
    # groups
    COMMIT_AHEAD = "commit-ahead"  # committed what no member had polled
    LOST_COMMIT = "lost-commit"  # the committed offset is none that may stand
    MISSED_BY_GROUP = "missed-by-group"  # below the committed offset, polled by no member


@dataclass(frozen=True, slots=True)
class Finding:
    """`operations`: the names of those that prove it, as `Operation.name` has them."""

    anomaly: Anomaly
    what: str
    operations: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.anomaly}: {self.what} ({', '.join(self.operations)})"


@dataclass
class Findings:
    """How often each class was found, and the first examples of each."""

    counts: Counter[Anomaly] = field(default_factory=Counter)
    examples: dict[Anomaly, list[Finding]] = field(default_factory=dict)

    def add(self, found: Iterable[Finding]) -> None:
        for finding in found:
            self.counts[finding.anomaly] += 1
            examples = self.examples.setdefault(finding.anomaly, [])
            if len(examples) < EXAMPLES:
                examples.append(finding)
