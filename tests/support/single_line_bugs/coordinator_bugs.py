"""Slips in the coordinators: offsets of groups, loads, transactions and their markers."""

from tests.support.single_line_bugs.bug import SingleLineBug

COORDINATORS = (
    SingleLineBug(
        "aborted-offsets-stay",
        "coordinator/group/committed/transactional.py",
        "        for partition in ended:\n",
        "        for partition in ended if commit else ():\n",
        "offsets of an aborted transaction count with the marker of the next one",
    ),
    SingleLineBug(
        "partitions-replaced",
        "coordinator/transaction/metadata.py",
        "partitions=metadata.partitions | partitions,",
        "partitions=partitions,",
        "the first partitions of a transaction get no marker",
    ),
    SingleLineBug(
        "marker-sent-once",
        "coordinator/transaction/markers.py",
        "if outcome is Outcome.WRITTEN:",
        "if outcome is not Outcome.FENCED:",
        "a marker that a leader could not write is not sent again",
    ),
    SingleLineBug(
        "one-offset-for-all-of-a-batch",
        "coordinator/partition_log.py",
        "            first += len(append.records)\n",
        "",
        "of two commits in one batch the coordinator does not know which is the later",
    ),
)
