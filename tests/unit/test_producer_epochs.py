"""The epochs that a producer without transactions counts up by itself."""

from barnabas.producer.producer_id import ProducerIdAndEpoch, ProducerIds


def ids_with(epoch: int) -> ProducerIds:
    ids = ProducerIds(None, lambda: None, lambda _: None)  # type: ignore[arg-type]
    ids.current = ProducerIdAndEpoch(7, epoch)
    return ids


def test_partitions_that_give_up_batches_of_one_epoch_begin_one_new_epoch_together() -> None:
    ids = ids_with(3)
    for _ in range(3):
        ids.start_epoch(beyond=ProducerIdAndEpoch(7, 3))
    assert (ids.current, ids.epochs_started) == (ProducerIdAndEpoch(7, 4), 1)


def test_after_the_last_epoch_another_id_is_wanted() -> None:
    ids = ids_with(2**15 - 1)
    ids.start_epoch(beyond=ids.current)
    assert ids.current is None
