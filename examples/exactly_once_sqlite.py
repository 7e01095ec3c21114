"""Exactly once with a database: the result and the offset are stored in one transaction.

    python examples/exactly_once_sqlite.py TOPIC FILE

The group only shares the partitions. Where to read on is in the database, which a member asks when
it is assigned partitions; so a crash can neither repeat nor leave out a record.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Sequence

from barnabas import RebalanceListener, TopicPartition
from barnabas.sync import Consumer

TABLES = """
    CREATE TABLE IF NOT EXISTS done (value TEXT);
    CREATE TABLE IF NOT EXISTS offsets (
        topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (topic, partition)
    );
"""
SET_OFFSET = "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)"
GET_OFFSET = "SELECT next FROM offsets WHERE topic = ? AND partition = ?"


class ReadOnFromTheDatabase(RebalanceListener):
    def __init__(self, consumer: Consumer, file: str) -> None:
        self._consumer = consumer
        self._file = file

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        database = sqlite3.connect(self._file)  # a connection of its own: this is another thread
        for partition in partitions:
            found = database.execute(GET_OFFSET, partition).fetchone()
            self._consumer.seek(partition, found[0] if found else 0)
        database.close()


def main(topic: str, file: str) -> None:
    database = sqlite3.connect(file)
    database.executescript(TABLES)
    bootstrap = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id="exactly-once",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
    )
    with consumer:
        consumer.subscribe(topic, ReadOnFromTheDatabase(consumer, file))
        while True:
            records = consumer.poll(max_records=20)
            with database:  # one transaction: everything of it, or nothing
                for record in records:
                    time.sleep(0.005)
                    value = (record.value or b"").decode()
                    database.execute("INSERT INTO done VALUES (?)", (value,))
                    offset = (record.topic, record.partition, record.offset + 1)
                    database.execute(SET_OFFSET, offset)


if __name__ == "__main__":
    main(*sys.argv[1:3])
