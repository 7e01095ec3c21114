"""Judges the history in a folder, and writes report.json and report.html beside it.

    python -m barnabas_tools.chaos.report FOLDER --profile safe

Exit code 0 if the promise of the profile was kept, 1 if not, 2 if there is no history to judge.
"""

import argparse
import sys
from pathlib import Path

from barnabas_common.history.files import history_files, read_files
from barnabas_common.history.lines import MalformedHistoryError
from barnabas_common.history.promise import PROFILES

from barnabas_tools.chaos.report.report import report


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m barnabas_tools.chaos.report")
    parser.add_argument("folder", type=Path, help="with the files *.jsonl of a run")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="safe")
    parser.add_argument("--title", default="")
    options = parser.parse_args(arguments)
    title = options.title or f"{options.folder.name}: {options.profile}"
    try:
        files = history_files(options.folder)
        made = report(title, read_files(files), PROFILES[options.profile])
    except (MalformedHistoryError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    made.write(options.folder)
    judged = made.judgement
    for finding in judged.examples():
        print(finding)
    print(
        f"{judged.acknowledged} acknowledged, {judged.read} read, broken: {dict(judged.broken)}, "
        f"not read to the end: {judged.unread}"
    )
    return 0 if judged.good else 1


if __name__ == "__main__":
    sys.exit(main())
