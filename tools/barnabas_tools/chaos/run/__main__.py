"""Breaks the cluster in containers on purpose, and judges what its clients saw.

    python -m barnabas_tools.chaos.run --minutes 10 --seed 7
    python -m barnabas_tools.chaos.run --profile acks1

Run it in a checkout, with Docker. Exit code 0 if the promise was kept (of a control: if it shows
what it must), 1 if not, 2 if it could not run.
"""

import argparse
import sys
import time
from pathlib import Path

from barnabas_common.history.lines import MalformedHistoryError

from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.chaos.run.menu import parse_mix
from barnabas_tools.chaos.run.profiles import PROFILES
from barnabas_tools.chaos.run.run import Options, run


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.folder.exists() and any(options.folder.iterdir()):
        print(f"error: {options.folder} is not empty", file=sys.stderr)
        return 2
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} {text}", flush=True)

    try:
        verdict = run(options, tell)
    except (FaultError, MalformedHistoryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    profile = PROFILES[options.profile]
    print("\n".join([*verdict.lines(profile), f"{options.folder / 'report.html'}"]))
    return 0 if verdict.good(profile) else 1


def _options(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m barnabas_tools.chaos.run", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--profile", choices=sorted(PROFILES), default="safe")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1, help="of the sequence of faults")
    parser.add_argument("--faults", metavar="KIND=WEIGHT,...", help="default: the profile's")
    parser.add_argument("--rate", type=float, default=500.0, help="records a second per workload")
    parser.add_argument("--folder", type=Path, help="default: chaos/PROFILE-SEED-TIME")
    parser.add_argument("--checkout", type=Path, default=Path())
    parser.add_argument("--project", default="barnabas-chaos", help="the name Compose knows it by")
    parser.add_argument("--no-build", action="store_true", help="use the images that are here")
    given = parser.parse_args(arguments)
    try:
        faults = parse_mix(given.faults) if given.faults else None
    except ValueError as error:
        parser.error(str(error))
    name = f"{given.profile}-{given.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    return Options(
        folder=given.folder or Path("chaos") / name,
        checkout=given.checkout,
        profile=given.profile,
        minutes=given.minutes,
        seed=given.seed,
        faults=faults,
        rate=given.rate,
        build=not given.no_build,
        project=given.project,
    )


if __name__ == "__main__":
    sys.exit(main())
