"""Our assignors give what Kafka's own classes give, in random groups over three generations.

Two things excuse a difference. Kafka's sticky assignors walk over Java hash maps, whose order no
name shows: then ours must be no less balanced and no less sticky. And Kafka gives a partition back
to an earlier owner even if that no longer reads the topic, which ours does not. Every case with a
difference is in `assignor-differences.txt`.
"""

import base64
import json
from itertools import combinations
from pathlib import Path

import pytest
from barnabas.group.assignors import ASSIGNORS, Assignment
from barnabas.group.protocol import decode_assignment, encode_assignment, encode_subscription
from barnabas_common.topic_partition import TopicPartition

from tests.kafka_tools.group_cases import GroupCase, Round
from tests.kafka_tools.harness import assign_groups

pytestmark = pytest.mark.kafka

CASES = 500
LISTED = Path(__file__).with_name("assignor-differences.txt")


def question(case: GroupCase) -> str:
    generations = [
        {
            "topics": {
                topic: [sorted(racks) for racks in partitions]
                for topic, partitions in round_.partitions.items()
            },
            "members": {
                member: {
                    "subscription": base64.b64encode(encode_subscription(subscription)).decode(),
                    "instance": subscription.group_instance_id,
                }
                for member, subscription in round_.members.items()
            },
        }
        for round_ in case.rounds
    ]
    return json.dumps({"assignor": case.assignor, "generations": generations})


def difference(round_: Round, theirs: Assignment) -> str:
    """Why the results differ, or nothing; an assertion fails if there is no excuse."""
    if {m: sorted(given) for m, given in theirs.items()} == {
        m: sorted(given) for m, given in round_.ours.items()
    }:
        return ""
    members = round_.members
    if any(tp.topic not in members[m].topics for m, given in theirs.items() for tp in given):
        assert all(
            tp.topic in members[m].topics for m, given in round_.ours.items() for tp in given
        )
        return "Kafka gives a partition to a member that does not read its topic"
    balance = imbalance(round_.ours) - imbalance(theirs)
    stickiness = kept(round_.ours, round_) - kept(theirs, round_)
    assert balance <= 0
    assert stickiness >= 0
    equal = "equal" if balance == stickiness == 0 else "better"
    return f"order of a hash map, balance and stickiness are {equal}"


def imbalance(assignment: Assignment) -> int:
    """The differences between the sizes of all pairs of members, summed up."""
    return sum(abs(a - b) for a, b in combinations(map(len, assignment.values()), 2))


def kept(assignment: Assignment, round_: Round) -> int:
    """How many partitions stay with the member that had them by the newest claim."""
    owner: dict[TopicPartition, tuple[int, str]] = {}
    for member, generation, partitions in round_.claims:
        for tp in partitions:
            owner[tp] = max(owner.get(tp, (-1, "")), (generation, member))
    return sum(
        owner.get(tp, (-1, ""))[1] == member for member, tps in assignment.items() for tp in tps
    )


@pytest.mark.parametrize("in_hash_order", [True, False], ids=["hash order", "any order"])
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_assignments_are_kafkas(kafka_tools: None, assignor: str, in_hash_order: bool) -> None:
    cases = [GroupCase(assignor, seed, in_hash_order) for seed in range(CASES)]
    answers = assign_groups(question(case) for case in cases)
    differences = []
    for seed, (case, line) in enumerate(zip(cases, answers, strict=True)):
        for number, (round_, answer) in enumerate(zip(case.rounds, json.loads(line), strict=True)):
            theirs = {
                member: decode_assignment(base64.b64decode(given))
                for member, given in answer["assignment"].items()
            }
            why = difference(round_, theirs)
            if why:
                names = "hash order" if in_hash_order else "any order"
                differences.append(f"{assignor}, {names}, case {seed}, round {number}: {why}")
    listed = LISTED.read_text().splitlines()
    names = f"{assignor}, {'hash order' if in_hash_order else 'any order'}, "
    assert differences == [line for line in listed if line.startswith(names)]


def test_the_bytes_of_members_are_kafkas(kafka_tools: None) -> None:
    """Kafka reads our subscriptions and writes the same bytes; so do we with its assignments."""
    cases = [GroupCase(assignor, seed, True) for assignor in ASSIGNORS for seed in range(50)]
    for case, line in zip(cases, assign_groups(map(question, cases)), strict=True):
        for round_, answer in zip(case.rounds, json.loads(line), strict=True):
            for member, subscription in round_.members.items():
                written = base64.b64decode(answer["subscriptions"][member])
                assert written == encode_subscription(subscription)
            for content in map(base64.b64decode, answer["assignment"].values()):
                assert encode_assignment(decode_assignment(content)) == content


def test_a_wrong_assignment_is_found() -> None:
    """The comparison itself: one partition moved to another member has no excuse."""
    cases = (GroupCase("range", seed, True) for seed in range(99))
    round_ = next(
        c.rounds[0] for c in cases if len(c.rounds[0].ours) > 2 and all(c.rounds[0].ours.values())
    )
    theirs = {member: list(given) for member, given in round_.ours.items()}
    giver, *_, taker = sorted(theirs, key=lambda member: len(round_.ours[member]))
    round_.ours[taker].append(round_.ours[giver].pop())
    with pytest.raises(AssertionError):
        difference(round_, theirs)
