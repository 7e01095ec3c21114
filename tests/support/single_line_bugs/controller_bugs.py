"""Slips in the controller: its cache, watches, proofs of what a broker has."""

from tests.support.single_line_bugs.bug import SingleLineBug

CONTROLLER = (
    SingleLineBug(
        "isr-change-not-cached",
        "partitions/isr_changes.py",
        "old, leadership[partition] = leadership[partition], result\n",
        "old = leadership[partition]\n",
        "the controller decides by the ISR from before the change",
    ),
    SingleLineBug(
        "proof-of-every-member",
        "eligibility/eligible_leader_replicas.py",
        "if has_proved and member in brokers:",
        "if member in brokers:",
        "a member that lost records counts as complete after any change of its ISR",
    ),
    SingleLineBug(
        "watch-only-once",
        "topics/topic_changes.py",
        "present = await self._term.store.topics(self.watch)",
        "present = await self._term.store.topics()",
        "the controller notices one change of the list of topics, and no later one",
    ),
    SingleLineBug(
        "election-not-cached",
        "partitions/leadership.py",
        "            leadership[partition] = result\n",
        "            leadership[partition] = decision.state\n",
        "the controller's next write expects the version from before the election",
    ),
)
