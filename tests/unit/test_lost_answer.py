"""One answer is lost, and those of later batches of its partition arrive."""

from barnabas import Producer

from tests.support.scripted_brokers import ScriptedBrokers


async def test_a_batch_whose_later_ones_are_acknowledged_is_not_written_again() -> None:
    async with ScriptedBrokers() as brokers:
        producer = Producer(
            brokers.bootstrap,
            runtime=brokers.runtime,
            request_timeout_ms=300,
            retry_backoff_ms=5,
            max_request_size=1_000,
            batch_size=400,
        )
        async with producer:
            await producer.send_and_wait("flights", b"first")
            brokers.faults = [brokers.append_and_fall_silent]
            handles = [await producer.send("flights", b"%d" % i + b"." * 300) for i in range(12)]
            await producer.flush()
            for handle in handles:
                await handle
        values = [record.value[:2] for record in brokers.log().records()]
        assert len(values) == len(set(values)), values
