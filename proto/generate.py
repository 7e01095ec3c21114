"""Generates `barnabas_proto/v1/` from `barnabas/v1/*.proto`; run by `make proto`.

The generated code is checked in, so that installing Barnabas needs no compiler; a test runs this
again and compares. There is no `_pb2_grpc`: the adapters need only the service descriptors.

protoc derives Python's package from the folder, which would collide with the client's `barnabas`,
so the imports are rewritten to `barnabas_proto`.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "barnabas" / "v1"
INIT = {
    "barnabas_proto/__init__.py": '"""Generated from `proto/barnabas/`; never edited by hand."""\n',
    "barnabas_proto/v1/__init__.py": "",
}


def generate(target: Path) -> list[Path]:
    """Write the package `barnabas_proto` under `target`; returns the files written."""
    sources = sorted(str(path) for path in SOURCES.glob("*.proto"))
    with TemporaryDirectory() as scratch:
        arguments = [f"-I{HERE}", f"--python_out={scratch}", f"--pyi_out={scratch}", *sources]
        if protoc.main(["protoc", *arguments]) != 0:
            raise SystemExit("protoc failed")
        texts = {
            f"barnabas_proto/v1/{path.name}": path.read_text().replace(
                "from barnabas.v1 import", "from barnabas_proto.v1 import"
            )
            for path in sorted(Path(scratch, "barnabas", "v1").iterdir())
        }
    return [_write(target / name, text) for name, text in (INIT | texts).items()]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


if __name__ == "__main__":
    for file in generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(file)
