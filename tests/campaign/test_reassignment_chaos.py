"""Random reassignments, changes of target and cancels, while brokers and controllers die."""

from collections import Counter

from barnabas_simulator.loop import run

from tests.support.reassigning_chaos import ReassigningChaos

SEEDS = 8


def test_nothing_acknowledged_is_lost_and_the_partition_comes_to_rest() -> None:
    done: Counter[str] = Counter()
    for seed in range(SEEDS):
        chaos = ReassigningChaos(seed)
        run(chaos.run(), seed=seed, max_time=3600)
        done += chaos.done
    for act in ("reassign", "reassign refused", "cancel", "kill", "controller", "expire", "start"):
        assert done[act] > 0, f"{act} never happened: {done}"
