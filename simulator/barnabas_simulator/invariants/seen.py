"""What the checker remembers of a replica, to find out cheaply whether it has changed."""

from barnabas_broker.replica.partition.partition import Partition

from barnabas_simulator.invariants.view import Replica


class Seen:
    """A replica at the last look. Its bare values show quickly whether it has changed."""

    __slots__ = (
        "end",
        "epochs_version",
        "high_watermark",
        "isr",
        "leader_epoch",
        "leadership",
        "log",
        "partition",
        "partition_epoch",
        "replica",
        "start",
    )

    def __init__(self, partition: Partition, replica: Replica | None) -> None:
        self.partition = partition
        self.replica = replica
        self.log = log = partition.log
        self.leadership = leadership = partition.leadership
        self.isr = leadership.isr if leadership is not None else None
        self.leader_epoch = partition.leader_epoch
        self.partition_epoch = partition.partition_epoch
        if log is not None:
            self.start, self.high_watermark = log.log_start_offset, log.high_watermark
            self.end, self.epochs_version = log.log_end_offset, log.leader_epochs.version

    def is_current(self, partition: Partition) -> bool:
        log, leadership = partition.log, partition.leadership
        return (
            log is self.log
            and leadership is self.leadership
            and partition is self.partition
            and (leadership is None or leadership.isr is self.isr)
            and partition.leader_epoch == self.leader_epoch
            and partition.partition_epoch == self.partition_epoch
            and (
                log is None
                or (
                    log.high_watermark == self.high_watermark
                    and log.log_end_offset == self.end
                    and log.log_start_offset == self.start
                    and log.leader_epochs.version == self.epochs_version
                )
            )
        )
