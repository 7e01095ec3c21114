"""A tombstone outlives the values that it deletes, so that a reader that lags learns of it."""

from barnabas import Consumer, Producer
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "prices"
PARTITION = TopicPartition(TOPIC, 0)
Table = dict[bytes, bytes]


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(
        TOPIC,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_bytes="1000",
    )
    await _put(stage, (b"apple", b"1"), (b"pear", b"1"))
    lagging: Table = {}
    position = await _read_into(stage, lagging, 0)
    stage.say(f"a reader has read apple=1 and pear=1, and stops at offset {position}")

    await _put(stage, (b"apple", b"2"), (b"apple", b"3"), (b"pear", None))
    stage.say("the price of apples rises twice; pear is deleted, by a record without a value")
    # Each needs a segment of its own: what came before is not in the active one then.
    await _put(stage, (b"filler", b"x" * 900), (b"filler", b"y" * 900))
    await stage.until("a pass has removed apple=1", lambda: _is_compacted(stage))
    offsets = await _offsets(stage)
    stage.say(f"a pass has compacted the leader's log; it still has the offsets {offsets}")
    stage.check("apple=3 has kept its offset", 3 in offsets, offsets)
    stage.check("apple=1 and apple=2 are gone", not {0, 2} & set(offsets), offsets)

    await _read_into(stage, lagging, position)
    lagging.pop(b"filler", None)
    stage.check("the reader that lagged has the new price", lagging.get(b"apple") == b"3", lagging)
    stage.check("it has learned that pear is deleted", b"pear" not in lagging, lagging)
    new: Table = {}
    await _read_into(stage, new, 0)
    new.pop(b"filler", None)
    stage.check("a new reader has the same table", new == lagging, new)


async def _put(stage: LabCluster, *records: tuple[bytes, bytes | None]) -> None:
    async with Producer(stage.view.bootstrap, acks="all") as producer:
        for key, value in records:
            await producer.send_and_wait(TOPIC, value, key=key, partition=0)


async def _read_into(stage: LabCluster, table: Table, position: int) -> int:
    """Apply the records from a position on to a table, as its readers do; the next position."""
    async with Consumer(bootstrap_servers=stage.view.bootstrap) as consumer:
        consumer.assign([PARTITION])
        consumer.seek(PARTITION, position)
        end = (await consumer.end_offsets([PARTITION]))[PARTITION]
        while (position := await consumer.position(PARTITION)) < end:
            for record in await consumer.poll(timeout_ms=500):
                assert record.key is not None
                if record.value is None:
                    table.pop(record.key, None)
                else:
                    table[record.key] = record.value
    return position


async def _offsets(stage: LabCluster) -> list[int]:
    """The offsets that a reader finds, from the log's start on."""
    offsets = []
    async with Consumer(bootstrap_servers=stage.view.bootstrap) as consumer:
        consumer.assign([PARTITION])
        consumer.seek(PARTITION, 0)
        end = (await consumer.end_offsets([PARTITION]))[PARTITION]
        while await consumer.position(PARTITION) < end:
            offsets += [record.offset for record in await consumer.poll(timeout_ms=500)]
    return offsets


async def _is_compacted(stage: LabCluster) -> bool:
    return 0 not in await _offsets(stage)


LAB = Lab(
    name="compaction",
    title="What a reader sees that was behind while a log was compacted",
    page="compaction",
    prediction=Prediction(
        "A reader has read pear=1 and stops. Then pear is deleted, and a pass compacts the log:\n"
        "of each key it keeps the newest record. The reader goes on. What does it learn of pear?",
        (
            "nothing: the pass has removed everything of a deleted key",
            "that it is deleted: the record that says so stays for a day more",
            "an error: the offset at which it goes on is gone",
        ),
        1,
        "The record without a value is a tombstone, and the newest of its key. It goes by a pass\n"
        "after its delete horizon only (delete.retention.ms), so that readers that lag less than\n"
        "that keep no key that is deleted. Offsets never change; gaps are no error.",
    ),
    scenario=scenario,
    config={"log.cleaner.backoff.ms": "100"},
)
