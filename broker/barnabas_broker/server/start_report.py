"""The first events of a broker after its start: how its last run ended, and what that cost."""

from barnabas_common.events import EventKind, EventLog

from barnabas_broker.log.manager.log_directory import missing_directories
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog


def report_start(events: EventLog, log_manager: LogManager, is_first: bool) -> None:
    """Call once all logs are loaded; `is_first`: no broker ever ran on these directories."""
    if is_first:
        how = "its first start on this directory"
    elif log_manager.had_clean_shutdown:
        how = "it was started again; its last run had ended in order"
    else:
        how = "it was started again; its last run had not ended in order (killed, or crashed)"
        if log_manager.log_dirs_with_failed_flush:
            failed = ", ".join(log_manager.log_dirs_with_failed_flush)
            how += f"; a flush had failed in {failed}: all that was not"
            how += " flushed there is written again, and counts as lost"
        elif any(one.history.unbroken_since is None for one in log_manager.directories):
            how += "; its machine may have lost its power, and with it what was not flushed"
    if missing := missing_directories(log_manager.directories):
        how += f"; log.dirs has {missing} fewer than in its last run: what was in them counts as"
        how += " lost"
    logs = log_manager.logs()
    in_order = is_first or log_manager.had_clean_shutdown
    events.record(EventKind.BROKER_STARTED, how, first=is_first, in_order=in_order, logs=len(logs))
    for path, fault in log_manager.damaged_checkpoints().items():
        events.record(EventKind.CHECKPOINT_DAMAGED, fault, file=path)
    for name, what in log_manager.lost.describe().items():
        events.record(EventKind.REPLICA_LOST, what, name)
    for name, why in log_manager.offline_logs().items():
        events.record(EventKind.REPLICA_OFFLINE, f"its log cannot be used: {why}", name)
    for log in logs:
        _report_log(events, log)


def _report_log(events: EventLog, log: UnifiedLog) -> None:
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
