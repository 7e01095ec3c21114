"""What the labs of transactions print of a log."""

from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.transactional import marker_batch, transactional_batch
from barnabas_tools.labs.scenarios.transactions.aborted_transaction import log_lines


def test_a_log_is_shown_with_its_markers() -> None:
    plain = BatchBuilder("none")
    plain.append(0, None, b"before")
    log = b"".join(
        (
            plain.build(),
            bytes(transactional_batch(7, 0, 0, [(None, b"a"), (None, b"b")])),
            marker_batch(7, 0, False, 3, 0),
            marker_batch(8, 1, True, 3, 0),
        )
    )
    assert [line.partition("  ")[2] for line in log_lines(log)] == [
        "b'before'",
        "b'a', b'b'  producer id 7",
        "marker: abort  producer id 7",
        "marker: commit  producer id 8",
    ]
