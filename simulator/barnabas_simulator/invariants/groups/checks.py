"""The checks of consumer groups: I18 and I19 while a run lasts, L8 and L9 at its end."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from barnabas_broker.coordinator.group.group import Group
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.findings import Broken, Findings
from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.answers import Answers
from barnabas_simulator.invariants.groups.memory import Memory
from barnabas_simulator.invariants.groups.model import GroupTruth
from barnabas_simulator.invariants.groups.seen import GroupsSeen
from barnabas_simulator.invariants.groups.written import Written
from barnabas_simulator.invariants.logs.image import Images
from barnabas_simulator.invariants.truth import Truth
from barnabas_simulator.invariants.view import View


@dataclass(frozen=True)
class _Members:
    """Of one group: the client ids of those that live once faults are over, and what they read.
    `end` is where they are expected to be in the end; the default is the high watermark."""

    living: Collection[str]
    topic: str
    end: Callable[[TopicPartition], int] | None = None


class GroupChecks:
    """`answers` sees every request to a coordinator, `written` what is committed, `memory` what the
    coordinators keep."""

    def __init__(
        self,
        view: View,
        findings: Findings,
        images: Images,
        truths: Mapping[TopicPartition, Truth],
    ) -> None:
        self._view = view
        self._seen = GroupsSeen(findings, truths)
        self._members: dict[str, _Members] = {}
        self.answers = Answers(self._seen)
        self.written = Written(self._seen)
        self.memory = Memory(self._seen, view, images)

    @property
    def groups(self) -> Mapping[str, GroupTruth]:
        """What the committed log says of each group."""
        return self._seen.groups

    # ---- what a run reports

    def living(
        self,
        group: str,
        members: Collection[str],
        topic: str,
        end: Callable[[TopicPartition], int] | None = None,
    ) -> None:
        """These are the client ids of the members that live once the faults are over."""
        self._members[group] = _Members(members, topic, end)

    def worked(self, group: str, partition: TopicPartition, offset: int) -> None:
        """A member has worked on a record."""
        self._seen.done.setdefault((group, partition), set()).add(offset)

    # ---- at rest

    def missing(self) -> Broken | None:
        """What keeps a group with living members from rest."""
        for commit in self._seen.promised:
            written = rules.acknowledged_is_written
            return self._broken(written.name, commit[0], written.broken(*commit, []))
        for name, members in self._members.items():
            group = self._coordinated(name)
            if group is None:
                return self._broken(
                    rules.group_is_stable.name, name, f"no broker coordinates {name}"
                )
            found = self._group_missing(group, members)
            if found is not None:
                return found
        return None

    def _group_missing(self, group: Group, members: _Members) -> Broken | None:
        name = group.group_id
        present = [member.client_id for member in group.members.values()]
        stable, caught_up = rules.group_is_stable, rules.group_has_caught_up
        states = stable.broken(name, group.state.value, present, members.living)
        if states is not None:
            return self._broken(stable.name, name, states)
        for tp, truth in self._seen.truths.items():
            if tp.topic == members.topic:
                commit = group.committed.offsets.get(tp)
                committed = rules.NOT_COMMITTED if commit is None else commit.value.offset
                end = truth.high_watermark if members.end is None else members.end(tp)
                states = caught_up.broken(name, tp, committed, end)
                if states is not None:
                    return self._broken(caught_up.name, name, states)
        return None

    def _broken(self, rule: str, group: str, states: str | None) -> Broken:
        return rule, self._seen.partition(group), states or ""

    def _coordinated(self, group: str) -> Group | None:
        """The group at its acting coordinator."""
        for running in self._view.running():
            if running.groups is not None and self._seen.leads(group, running.partitions):
                return running.groups.get(group)
        return None
