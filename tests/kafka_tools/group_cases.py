"""Random groups over three generations, for Kafka's assignors and ours."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barnabas.group.assignors import ASSIGNORS, Assignment, Assignor, PartitionRacks, Subscription
from barnabas_common.topic_partition import TopicPartition

GENERATIONS = 3
RACKS = ("east", "north", "west")


Claims = list[tuple[str, int, Sequence[TopicPartition]]]


@dataclass(frozen=True)
class Round:
    """One generation: what the leader is given, and what ours gives.

    `claims`: member, generation, and what the member had in it.
    """

    partitions: PartitionRacks
    members: dict[str, Subscription]
    ours: Assignment
    claims: Claims


class GroupCase:
    """A group that lives through `GENERATIONS`. Its rounds are made of ours and a seed alone.

    `in_hash_order`: names whose order in a Java hash map is that of the alphabet, so that nothing
    in Kafka's result depends on an order that the names do not show.
    """

    def __init__(self, assignor: str, seed: int, in_hash_order: bool) -> None:
        self.assignor = assignor
        self._rules: Assignor = ASSIGNORS[assignor]
        self._chance = random.Random(f"{assignor} {seed}")
        self._in_hash_order = in_hash_order
        self._with_racks = self._chance.random() < 0.5
        self._alike = self._chance.random() < 0.5
        self._unused = [chr(ord("A") + number) for number in range(12)]
        self._partitions: dict[str, list[frozenset[str]]] = {}
        self._members: dict[str, Subscription] = {}
        for number in range(self._chance.randrange(1, 6)):
            self._grow(self._name("abcdefghijkl"[number]), self._chance.randrange(1, 9))
        for _ in range(self._chance.randrange(1, 7)):
            self._join()
        self.rounds: list[Round] = []
        self._claims: Claims = []
        for generation in range(1, GENERATIONS + 1):
            if generation > 1:
                self._change()
            members = dict(self._members)
            partitions = {topic: tuple(racks) for topic, racks in self._partitions.items()}
            ours = self._rules.assign(partitions, members)
            self.rounds.append(Round(partitions, members, ours, list(self._claims)))
            self._take(ours, generation)

    def _name(self, letter: str) -> str:
        return letter if self._in_hash_order else f"{letter}-{self._chance.randbytes(4).hex()}"

    def _grow(self, topic: str, count: int) -> None:
        racks = self._partitions.setdefault(topic, [])
        for _ in range(count):
            some = self._chance.sample(RACKS, self._chance.randrange(1, 3))
            racks.append(frozenset(some) if self._with_racks else frozenset())

    def _topics(self) -> tuple[str, ...]:
        topics = list(self._partitions)
        if self._alike:
            return tuple(topics)
        return tuple(self._chance.sample(topics, self._chance.randrange(1, len(topics) + 1)))

    def _join(self) -> None:
        if not self._unused:
            return
        letter = self._unused.pop(self._chance.randrange(len(self._unused)))
        self._members[self._name(letter)] = Subscription(
            self._topics(),
            rack_id=self._chance.choice(RACKS) if self._with_racks else "",
            group_instance_id=f"i{self._chance.random():.3f}"
            if self._chance.random() < 0.3 else "",
            user_data=self._rules.user_data((), -1),
        )  # fmt: skip

    def _change(self) -> None:
        """What makes a group rebalance: members and topics come, go and change."""
        while True:
            what = self._chance.randrange(6)
            if what == 0 and len(self._members) > 1:
                del self._members[self._chance.choice(list(self._members))]
            elif what in (1, 2):
                self._join()
            elif what == 3:
                self._grow(self._chance.choice(list(self._partitions)), 2)
            elif what == 4 and not self._alike:
                member = self._chance.choice(list(self._members))
                self._members[member] = replace(self._members[member], topics=self._topics())
            elif what == 5 and len(self._partitions) > 1:
                del self._partitions[self._chance.choice(list(self._partitions))]
            if self._alike:
                topics = self._topics()
                self._members = {m: replace(s, topics=topics) for m, s in self._members.items()}
            if self._chance.random() < 0.5:
                return

    def _take(self, assignment: Assignment, generation: int) -> None:
        """Members own what they were given; some miss a generation, some lose it."""
        for member, subscription in self._members.items():
            chance = self._chance.random()
            if chance < 0.1 and len(self._members) > 1:
                continue
            given = assignment[member]
            self._claims.append((member, generation, given))
            self._members[member] = replace(
                subscription,
                owned_partitions=tuple(given) if self._rules.cooperative else (),
                generation=generation,
                user_data=self._rules.user_data(given, generation),
            )
