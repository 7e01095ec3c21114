"""Fetches the jars of a list from a Maven repository; each must have the list's checksum.

A line of the list is a SHA-256 and a path in the repository, as `sha256sum` writes them.
"""

import hashlib
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main(repository: str, list_file: str, target: str) -> None:
    folder = Path(target)
    folder.mkdir(parents=True)
    for line in Path(list_file).read_text().splitlines():
        expected, path = line.split()
        url = f"{repository.rstrip('/')}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=120) as answer:
                content = answer.read()
        except (urllib.error.URLError, TimeoutError) as error:
            sys.exit(f"{url}: {error}")
        found = hashlib.sha256(content).hexdigest()
        if found != expected:
            sys.exit(f"{url}: its SHA-256 is {found}, and {list_file} says {expected}")
        (folder / Path(path).name).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
