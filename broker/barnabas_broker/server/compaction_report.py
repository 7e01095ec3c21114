"""The event at the end of each pass over a compacted log."""

from barnabas_common.events import EventKind, EventLog

from barnabas_broker.log.manager.compaction_pass import PassReport


def report_compaction(events: EventLog, report: PassReport) -> None:
    """Record what a pass did, or why there was none."""
    if report.fault:
        what_next = "it is tried again" if report.will_retry else "it is left out until a restart"
        events.record(
            EventKind.LOG_NOT_COMPACTED, f"{report.fault}; {what_next}", report.topic_partition
        )
        return
    counts = report.counts
    gone = counts.records_before - counts.records_after
    events.record(
        EventKind.LOG_COMPACTED,
        f"it was dirty from offset {report.first_dirty_offset}; {gone} of"
        f" {counts.records_before} records are gone",
        report.topic_partition,
        first_dirty_offset=report.first_dirty_offset,
        clean_offset=report.end_offset,
        bytes_before=counts.bytes_before,
        bytes_after=counts.bytes_after,
        records_before=counts.records_before,
        records_after=counts.records_after,
        segments_before=counts.segments_before,
        segments_after=counts.segments_after,
        milliseconds=round(report.seconds * 1000),
    )
