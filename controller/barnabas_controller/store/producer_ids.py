"""The blocks of producer ids, which brokers take from one znode (Kafka's `ZkProducerIdManager`).

    /latest_producer_id_block   {"version":1,"broker":2,"block_start":"1000","block_end":"1999"}

It names the block that was taken last. A broker takes the next one by a conditional write, so no
two brokers have the same, whether they are Kafka's or Barnabas's.
"""

from typing import NamedTuple

from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store.store import Store
from barnabas_controller.store.znode_json import MAX_LONG, JsonReader, encode
from barnabas_controller.store.znodes import PRODUCER_ID_BLOCK
from barnabas_controller.zookeeper.session import BadVersion, ConnectionLoss, NoNode

BLOCK_SIZE = 1000


class ProducerIdBlock(NamedTuple):
    """The ids from `first` to `last`, which belong to one broker."""

    broker_id: int
    first: int
    last: int


async def take_block(store: Store, broker_id: int, above: int = -1) -> ProducerIdBlock:
    """Take the next block for a broker: above the id `above`, as the znode may name an older block
    than the last one.

    A block whose write got no answer is left alone, and the next one taken: the znode would look
    the same if an earlier process of this broker had written it.

    Raises:
        MalformedZnode: the znode names no block; to write one could give out ids a second time.
        ZooKeeperError: the session has ended.
    """
    while True:
        found = await store.get(PRODUCER_ID_BLOCK)
        if found is None:
            await store.ensure(PRODUCER_ID_BLOCK, None)
            continue
        data, stat = found
        block = next_block(decode_block(data), broker_id, above)
        try:
            await store.session.set(PRODUCER_ID_BLOCK, encode_block(block), stat.version)
        except (BadVersion, ConnectionLoss, NoNode):
            continue
        return block


def next_block(latest: ProducerIdBlock | None, broker_id: int, above: int = -1) -> ProducerIdBlock:
    """The block after `latest`, or the first one. Raises MalformedZnode after the last one."""
    first = max(-1 if latest is None else latest.last, above) + 1
    if first > MAX_LONG - BLOCK_SIZE:
        raise MalformedZnode(PRODUCER_ID_BLOCK, f"no producer ids are left after {first - 1}")
    return ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)


def encode_block(block: ProducerIdBlock) -> bytes:
    """The JSON, with Kafka's strings in place of numbers of 64 bits."""
    return encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_block(data: bytes) -> ProducerIdBlock | None:
    """The block; None if none was taken yet. Raises MalformedZnode."""
    if not data:
        return None
    reader = JsonReader(PRODUCER_ID_BLOCK, data)
    first, last = (_long(reader, name) for name in ("block_start", "block_end"))
    if not 0 <= first <= last:
        raise reader.malformed(f"{first} to {last} is no block of producer ids")
    return ProducerIdBlock(reader.integer("broker"), first, last)


def _long(reader: JsonReader, name: str) -> int:
    text = reader.string(name)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LONG))):
        raise reader.malformed(f"{name} is not a whole number: {text!r}")
    if int(text) > MAX_LONG:
        raise reader.malformed(f"{name} is above {MAX_LONG}: {text!r}")
    return int(text)
