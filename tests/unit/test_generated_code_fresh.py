"""The committed protobuf code equals the output of `make proto`."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_generated_code_is_what_the_proto_files_say(tmp_path: Path) -> None:
    generate = runpy.run_path(str(ROOT / "proto" / "generate.py"))["generate"]
    fresh = {path.relative_to(tmp_path): path.read_text() for path in generate(tmp_path)}
    package = ROOT / "proto" / "barnabas_proto"
    checked_in = {
        path.relative_to(ROOT / "proto"): path.read_text()
        for pattern in ("*.py", "*.pyi")
        for path in package.rglob(pattern)
    }
    stale = sorted(
        str(name) for name in fresh | checked_in if fresh.get(name) != checked_in.get(name)
    )
    assert not stale, f"run `make proto`: {stale}"
