"""`/isr_change_notification`: notifications of ISR changes that the controller did not write.

Before KIP-497 leaders wrote the state znode themselves, and then a notification here. Brokers now
send AlterPartition (`isr_changes.py`); they write the znode only while they cannot reach the
controller. An operator who repairs a state znode can also make the controller re-read it:

    /isr_change_notification/isr_change_0000000007
    {"version":1,"partitions":[{"topic":"flights","partition":0}]}
"""

from collections.abc import Callable, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.notifications import Notifications
from barnabas_controller.partitions.election_report import report_foreign_change
from barnabas_controller.partitions.state_reading import read_states
from barnabas_controller.store.znode_json import JsonReader
from barnabas_controller.store.znodes import ISR_CHANGES

CAUSE = "a notification says that the state was written without the controller"


def isr_notifications(
    term: ControllerTerm, on_changed: Callable[[Sequence[TopicPartition]], None]
) -> Notifications[list[TopicPartition]]:
    """The notifications of ISR changes; `on_changed` receives the partitions that were re-read."""

    async def reread_states(notifications: Sequence[list[TopicPartition]]) -> None:
        context = term.context
        named = dict.fromkeys(p for partitions in notifications for p in partitions)
        known = [p for p in named if p in context.leadership]
        if known:
            states = await read_states(term, known)
            for partition, (state, _) in states.items():
                before, context.leadership[partition] = context.leadership[partition], state
                report_foreign_change(term, partition, before, state, CAUSE)
            term.update_metadata(context.registered_brokers(), list(states))
            on_changed(list(states))

    return Notifications(
        term, ISR_CHANGES, lambda path, data, _: JsonReader(path, data).partitions(), reread_states
    )
