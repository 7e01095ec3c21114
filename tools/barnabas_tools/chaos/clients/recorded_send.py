"""One record is sent, and what is told of it is recorded."""

from collections.abc import Callable

from barnabas import Producer
from barnabas.producer.handle import RecordMetadata
from barnabas_common.errors import BarnabasError
from barnabas_common.history.operations import Send, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition


async def send(
    recorder: Recorder,
    producer: Producer,
    partition: TopicPartition,
    value: str,
    transaction: str = "",
    acknowledged: Callable[[], None] = lambda: None,
) -> None:
    """Send a value, which must be unique in its partition. Raises why it was not accepted."""
    sent = recorder.begin(Send, partition=str(partition), value=value, transaction=transaction)

    def delivered(metadata: RecordMetadata | None, error: BarnabasError | None) -> None:
        if metadata is not None:
            recorder.end(sent, Stage.OK, offset=metadata.offset)
            acknowledged()
        else:
            # An earlier attempt may have been written, whatever the last one was told.
            recorder.end(sent, Stage.INFO, error=type(error).__name__)

    topic, number = partition
    try:
        await producer.send(topic, value.encode(), partition=number, on_delivery=delivered)
    except BarnabasError as error:
        # Nothing has been put into a batch, so it is certain that nothing will be written.
        recorder.end(sent, Stage.FAIL, error=type(error).__name__)
        raise
