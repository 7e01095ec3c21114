"""A worker is killed in the middle of its work, and another one goes on from what is committed."""

from collections import Counter
from typing import NamedTuple

from barnabas_tools.labs.framework.stage import LabCluster, ScenarioBroken
from barnabas_tools.labs.framework.worker import AFTER_WORK, BEFORE_WORK
from barnabas_tools.labs.framework.worker_process import WorkerProcess

TOPIC = "orders"
GROUP = "shop"
RECORDS = 40
KILLED_AT = 25

COMMIT = "commit"
"""The setting of the worker: `before-work` or `after-work`."""

# A session that ends soon, and one partition of `__consumer_offsets`, whose events are few.
CONFIG = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}


CHOICES = (
    "none twice, none never: the group knows how far the first one was",
    "20 to 24 twice, none never",
    "none twice, 25 to 29 never",
)


class Delivered(NamedTuple):
    """The values that were never worked on, and those that were twice or more."""

    never: list[int]
    twice: list[int]


async def deliver(stage: LabCluster) -> Delivered:
    """Kill one worker at the record 25, let another one end the work, and count."""
    commit = stage.application[COMMIT]
    if commit not in (BEFORE_WORK, AFTER_WORK):
        raise ScenarioBroken(f"{COMMIT} wants {BEFORE_WORK} or {AFTER_WORK}, not {commit!r}")
    await stage.create_topic(TOPIC, min_insync_replicas="2")
    await stage.produce(TOPIC, [b"%d" % number for number in range(RECORDS)], acks="all")
    arguments = (stage.view.bootstrap, TOPIC, GROUP, commit)
    order = "commits, then works" if commit == BEFORE_WORK else "works, then commits"
    stage.say(f"a worker takes ten records at a time: it {order}")
    async with WorkerProcess(*arguments, str(KILLED_AT)) as first:
        await stage.until(f"the worker works on record {KILLED_AT}", first.is_stuck)
        await stage.catch_up()
        stage.say(f"kill -9 of the worker, in the middle of its work on record {KILLED_AT}")
        await first.kill()
    stage.say(f"it has worked on 0 to {first.worked[-1]}; committed is {await _committed(stage)}")
    async with WorkerProcess(*arguments, "none") as second:
        last = str(RECORDS - 1)
        stage.say("another worker joins, and waits until the session of the first has ended")
        await stage.until("it has worked on the last record", lambda: second.has_worked_on(last))
        await stage.catch_up()
    stage.say(f"it has worked on {second.worked[0]} to {second.worked[-1]}")
    return delivered([*first.worked, *second.worked], RECORDS)


async def _committed(stage: LabCluster) -> int:
    async with stage.admin() as admin:
        offsets = await admin.list_group_offsets(GROUP)
    return sum(found.offset for found in offsets.values())


def delivered(worked: list[str], records: int) -> Delivered:
    """Count what became of the records 0 to `records` - 1."""
    counted = Counter(map(int, worked))
    return Delivered(
        [number for number in range(records) if not counted[number]],
        sorted(number for number, times in counted.items() if times > 1),
    )
