"""Exactly once with a database: the result and the offset are stored in one transaction.

    python examples/exactly_once_sqlite.py TOPIC FILE

The group only shares the partitions. Where to read on is in the database, which a member asks when
it is assigned partitions; so a crash can neither repeat nor leave out a record. A member that
stalls may come back when others read its partitions: so a result counts only if the database still
awaits its record.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Sequence

from barnabas import ConsumerRecord, RebalanceListener, TopicPartition
from barnabas.sync import Consumer

TABLES = """
    CREATE TABLE IF NOT EXISTS done (value TEXT);
    CREATE TABLE IF NOT EXISTS offsets (
        topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (topic, partition)
    );
"""
BEGIN_AT_ZERO = "INSERT OR IGNORE INTO offsets VALUES (?, ?, 0)"
ADVANCE = "UPDATE offsets SET next = ? WHERE topic = ? AND partition = ? AND next <= ?"
GET_OFFSET = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"


class ReadOnFromTheDatabase(RebalanceListener):
    def __init__(self, consumer: Consumer, file: str) -> None:
        self._consumer = consumer
        self._file = file

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        database = sqlite3.connect(self._file)  # a connection of its own: this is another thread
        with database:
            database.executemany(BEGIN_AT_ZERO, partitions)
        for partition in partitions:
            (offset,) = database.execute(GET_OFFSET, partition).fetchone()
            self._consumer.seek(partition, offset)
        database.close()


def main(topic: str, file: str) -> None:
    database = sqlite3.connect(file)
    database.executescript(TABLES)
    bootstrap = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id="exactly-once",
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # if the log no longer begins at 0
        session_timeout_ms=6_000,
    )
    with consumer:
        consumer.subscribe(topic, ReadOnFromTheDatabase(consumer, file))
        while True:
            records = consumer.poll(max_records=20)
            results = [work(record) for record in records]
            with database:  # one transaction: everything of it, or nothing
                for record, result in zip(records, results, strict=True):
                    following = (record.offset + 1, record.topic, record.partition, record.offset)
                    if database.execute(ADVANCE, following).rowcount:
                        database.execute("INSERT INTO done VALUES (?)", (result,))


def work(record: ConsumerRecord) -> str:
    time.sleep(0.005)
    return (record.value or b"").decode()


if __name__ == "__main__":
    main(*sys.argv[1:3])
