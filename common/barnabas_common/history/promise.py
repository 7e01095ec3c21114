"""Which anomalies a configuration rules out. The others are reported, and are no failure."""

from dataclasses import dataclass

from barnabas_common.history.checks.finding import Anomaly

# Transactions do not isolate writes from one another.
ALLOWED_BY_KAFKA = frozenset({Anomaly.G0, Anomaly.INT_SEND_SKIP})

# What follows from the loss of acknowledged records: offsets are given again, and who has read
# further than the log now reaches starts again.
_BY_LOSS = frozenset(
    {
        Anomaly.INCONSISTENT_OFFSETS,
        Anomaly.LOST_WRITE,
        Anomaly.UNSEEN,
        Anomaly.VANISHED,
        Anomaly.TORN_TRANSACTION,
    }
)
# A record that was read before its loss may be sent again, and has another offset then.
_BY_UNCLEAN_ELECTIONS = _BY_LOSS | {
    Anomaly.DUPLICATE,
    Anomaly.POLL_SKIP,
    Anomaly.NONMONOTONIC_POLL,
    Anomaly.LOST_COMMIT,
    Anomaly.MISSED_BY_GROUP,
}
# A record that a retry repeats supersedes itself: the first copy may go, and the order with it.
_BY_COMPACTION = frozenset(
    {
        Anomaly.NONMONOTONIC_SEND,
        Anomaly.LOST_WRITE,
        Anomaly.UNSEEN,
        Anomaly.VANISHED,
        Anomaly.TORN_TRANSACTION,
        Anomaly.POLL_SKIP,
        Anomaly.INT_POLL_SKIP,
        Anomaly.MISSED_BY_GROUP,
    }
)


@dataclass(frozen=True)
class Promise:
    """`acks_all`: producers wait for all in-sync replicas, of which there are at least two.

    `idempotent`: retries write once. `compacted`: a record may give way to a later one of its key.
    """

    acks_all: bool = True
    clean_elections: bool = True
    idempotent: bool = False
    compacted: bool = False

    def permitted(self) -> frozenset[Anomaly]:
        found = ALLOWED_BY_KAFKA
        if not self.idempotent:
            found |= {Anomaly.DUPLICATE}
        if not self.acks_all:
            found |= _BY_LOSS
        if not self.clean_elections:
            found |= _BY_UNCLEAN_ELECTIONS
        if self.compacted:
            found |= _BY_COMPACTION
        return found


PROFILES = {
    "acks-1": Promise(acks_all=False),
    "safe": Promise(),
    "unclean": Promise(clean_elections=False),
    "idempotent": Promise(idempotent=True),
}
