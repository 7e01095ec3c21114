"""The first events of every life of a broker: how the one before it ended, and what that cost."""

from barnabas.events import EventKind, EventLog

from barnabas_broker.log.log import Log
from barnabas_broker.log.log_manager import LogManager


def report_start(events: EventLog, log_manager: LogManager, is_first: bool) -> None:
    """Once all logs are loaded; `is_first`: nobody ever ran on these directories."""
    if is_first:
        how = "its first start on this directory"
    elif log_manager.left_in_order:
        how = "it was started again; its last run had ended in order"
    else:
        how = "it was started again; its last run had not ended in order (killed, or crashed)"
        if log_manager.in_doubt:
            how += f"; a flush had failed in {', '.join(log_manager.in_doubt)}: all that was not"
            how += " flushed there is written anew, and counts as lost"
        elif log_manager.history().unbroken_since is None:
            how += "; its machine may have lost its power, and with it what was not flushed"
    logs = log_manager.logs()
    in_order = is_first or log_manager.left_in_order
    events.record(EventKind.BROKER_STARTED, how, first=is_first, in_order=in_order, logs=len(logs))
    for path, fault in log_manager.damaged_checkpoints().items():
        events.record(EventKind.CHECKPOINT_DAMAGED, fault, file=path)
    for name, what in log_manager.lost.describe().items():
        events.record(EventKind.REPLICA_LOST, what, name)
    for name, why in log_manager.offline_logs().items():
        events.record(EventKind.REPLICA_OFFLINE, f"its log cannot be used: {why}", name)
    for log in logs:
        _report_log(events, log)


def _report_log(events: EventLog, log: Log) -> None:
    if log.damaged_epochs:
        events.record(
            EventKind.CHECKPOINT_DAMAGED,
            log.damaged_epochs,
            log.topic_partition,
            file=log.epoch_file.path,
        )
    if log.cut_at_start:
        events.record(
            EventKind.LOG_RECOVERED,
            log.cut_at_start,
            log.topic_partition,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
        )
