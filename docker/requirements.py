"""Prints the requirements of `pyproject.toml`, so that they are a layer of their own in the image.

`requirements.py build` prints what builds the wheel; `requirements.py EXTRA` prints what the
project needs with this extra.
"""

import sys
import tomllib
from pathlib import Path


def main(wanted: str) -> None:
    described = tomllib.loads(Path("pyproject.toml").read_text())
    if wanted == "build":
        lines = described["build-system"]["requires"]
    else:
        project = described["project"]
        lines = [*project["dependencies"], *project["optional-dependencies"][wanted]]
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
