"""At most once: commit, then work. A crash in between leaves work out and repeats none.

    python examples/at_most_once.py TOPIC FILE

The work is a line in FILE for each record.
"""

import os
import sys
import time

from barnabas.sync import Consumer


def main(topic: str, file: str) -> None:
    bootstrap = os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    consumer = Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id="at-most-once",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
    )
    with consumer, open(file, "a") as done:
        while True:
            records = consumer.poll(max_records=20)
            consumer.commit()
            for record in records:
                time.sleep(0.005)
                print((record.value or b"").decode(), file=done, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
