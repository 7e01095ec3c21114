"""A program of the labs: a member of a group that works, and says on its output what it does.

    python -m barnabas_tools.labs.framework.worker BOOTSTRAP TOPIC GROUP COMMIT STUCK

COMMIT is `before-work` or `after-work`, with ten records to a commit. The work on a record is one
line, `worked VALUE`. The work on the record STUCK never ends.
"""

import os
import sys

from barnabas.sync import Consumer

BEFORE_WORK, AFTER_WORK = "before-work", "after-work"
RECORDS_PER_COMMIT = 10
SESSION_TIMEOUT_MS = 2_000


def main(bootstrap: str, topic: str, group: str, commit: str, stuck: str) -> None:
    parent = os.getppid()
    with Consumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="worker",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=500,
    ) as consumer:
        while True:
            values: list[str] = []
            while len(values) < RECORDS_PER_COMMIT:
                if os.getppid() != parent:  # the lab has ended
                    return
                wanted = RECORDS_PER_COMMIT - len(values)
                polled = consumer.poll(timeout_ms=200, max_records=wanted)
                values += [(record.value or b"").decode() for record in polled]
            if commit == BEFORE_WORK:
                consumer.commit()
                print(f"committed after {values[-1]}", flush=True)
            _work(values, stuck)
            if commit == AFTER_WORK:
                consumer.commit()
                print(f"committed after {values[-1]}", flush=True)


def _work(values: list[str], stuck: str) -> None:
    for value in values:
        if value == stuck:
            print(f"works on {value}", flush=True)
            sys.stdin.read()  # ends with the lab
            return
        print(f"worked {value}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:6])
