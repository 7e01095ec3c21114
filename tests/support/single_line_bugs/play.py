"""Plays seeds until one fails: `python -m tests.support.single_line_bugs.play FIRST COUNT`.

Prints a line for each schedule: the seed, and what failed if anything did. The packages are those
on the path.
"""

import sys

from barnabas_simulator.campaign.many import run_seed


def main(first: int, count: int) -> None:
    for seed in range(first, first + count):
        outcome = run_seed(seed)
        why = "" if outcome.violation is None else " ".join(outcome.violation.split())
        print(seed, outcome.kind, why, flush=True)
        if outcome.violation is not None:
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
