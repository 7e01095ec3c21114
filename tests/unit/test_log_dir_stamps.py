"""Which data directories are older copies: the decision, and the files that it uses."""

from barnabas_broker.log.recovery.log_history import HistoryNote, LogHistory, history_of
from barnabas_broker.server.log_dir_stamps import outdated_directories


def test_a_directory_behind_the_znode_is_an_older_copy() -> None:
    assert outdated_directories({"/a": 7, "/b": 9}, 9) == ["/a"]


def test_a_znode_that_is_behind_or_missing_accuses_no_one() -> None:
    assert outdated_directories({"/a": 7}, 3) == []
    assert outdated_directories({"/a": 7}, None) == []
    assert outdated_directories({}, 9) == []


def test_an_older_copy_counts_as_a_disk_that_lost_something() -> None:
    note = HistoryNote("boot", 5)
    assert history_of(note, "boot", True) == LogHistory(5, is_new=False)
    assert history_of(note, "boot", True, is_outdated=True) == LogHistory(None, is_new=True)
