"""`topic create --assignment`: the plain rule, and lists."""

import pytest
from barnabas_tools.cli.admin.placement import check_alone, explicit, plain
from barnabas_tools.cli.settings import UsageFailed


def test_plain_goes_round_the_brokers() -> None:
    assert plain([3, 1, 2], 4, 2) == {0: [1, 2], 1: [2, 3], 2: [3, 1], 3: [1, 2]}
    with pytest.raises(UsageFailed, match="3 replicas need as many brokers; there are 2"):
        plain([1, 2], 1, 3)


def test_too_many_partitions_are_refused_before_they_are_placed() -> None:
    with pytest.raises(UsageFailed, match="at most 100000"):
        plain([1, 2, 3], 10**12, 3)


def test_a_list_names_the_brokers_of_each_partition() -> None:
    assert explicit("0:1,2,3;1:2,3,1") == {0: [1, 2, 3], 1: [2, 3, 1]}


@pytest.mark.parametrize("text", ["", "simple", "0:", "0:1,x", "0=1", "0:1;", "0:1;0:2"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(UsageFailed, match="--assignment"):
        explicit(text)


def test_counts_must_agree_with_a_list() -> None:
    check_alone({0: [1, 2]}, 1, 2)
    with pytest.raises(UsageFailed, match="names 1 partitions, not 3"):
        check_alone({0: [1, 2]}, 3, None)
    with pytest.raises(UsageFailed, match="partition 0 2 replicas, not 3"):
        check_alone({0: [1, 2]}, None, 3)
