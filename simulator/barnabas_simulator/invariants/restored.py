"""What a checker makes of an older copy of ZooKeeper, once all brokers start with it.

The copy's ISRs are of no account: their members may have fallen behind since, or lost records. What
was acknowledged and consumed stays as it was, and the leaders of the next epochs must have it.
Those epochs are above all that a log has records of; one without records may be given again.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.logs.image import Images
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import Replica, StateChange, View


def accept_copy(
    view: View,
    images: Images,
    truths: MutableMapping[TopicPartition, Truth],
    forgot_at: MutableMapping[int, int],
    is_new: Callable[[StateChange], None],
) -> None:
    """Take over the states of the copy. Partitions that it does not have exist no more."""
    view.changes()
    for broker_id, zxid in forgot_at.items():
        forgot_at[broker_id] = min(zxid, view.zxid)
    changes = {change.partition: change for change in view.states()}
    for partition in [known for known in truths if known not in changes]:
        del truths[partition]
    for partition, change in changes.items():
        truth = truths.get(partition)
        if truth is not None and truth.topic_id == change.topic_id:
            _take_over(truth, change, forgot_at)
            _forget_epochs_without_records(truth, images)
        else:
            truths.pop(partition, None)
            is_new(change)
            truths[partition].is_in_doubt = True


def _take_over(truth: Truth, change: StateChange, forgot_at: Mapping[int, int]) -> None:
    assert change.state is not None
    truth.state, truth.replicas = change.state, change.replicas
    truth.let_lapse(None, change.state, forgot_at)
    truth.is_in_doubt = True


def _forget_epochs_without_records(truth: Truth, images: Images) -> None:
    stored = images.stored(truth.partition).values()
    newest = max((image.batches[-1].epoch for image in stored if image.batches), default=-1)
    for known in (truth.elected, truth.led):
        for epoch in [epoch for epoch in known if epoch > newest]:
            del known[epoch]


def look_at(truth: Truth, replicas: Sequence[Replica]) -> None:
    """End the doubt once a leader of the present epoch, and all of the ISR, have everything."""
    known = {replica.broker_id: replica for replica in replicas}
    leader = known.get(truth.state.leader)
    truth.is_in_doubt = truth.is_in_doubt and not (
        leader is not None
        and leader.led_epoch == truth.state.leader_epoch
        and leader.high_watermark >= truth.high_watermark
        and all(
            member in known and known[member].log_end >= truth.high_watermark
            for member in truth.state.isr
        )
    )
