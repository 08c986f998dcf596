"""Records the six stored runs of tests/golden/runs anew, each under its old master.

A report that gained a figure, or a trace that gained a field, needs it; the table of
tests/golden/runs/README.md holds the commands. Prints in how many episodes world,
actions or q_state are others than before: if any, say so in the changelog.
Run: python benchmarks/record_runs.py [NAME ..]
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import zstandard

from owa_bench.records.events import Action
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import escrow

RUNS = Path(__file__).resolve().parent.parent / "tests" / "golden" / "runs"
ROW = re.compile(r"^\| `(\w+)` \| `owa-bench (.*)` \|$", re.M)
LEVEL = 19  # of the archives


def main() -> int:
    """Record the runs that are named, or all."""
    commands = dict(ROW.findall((RUNS / "README.md").read_text()))
    if sys.argv[1:2] == ["--under"]:
        return call(bytes.fromhex(sys.argv[2]), sys.argv[3:])
    for name in sys.argv[1:] or sorted(commands):
        record(name, commands[name])
    return 0


def call(master: bytes, words: list[str]) -> int:
    """Call the command line with plans that commit to a given master."""
    from owa_bench.cli import app

    commit = escrow.commit
    escrow.commit = lambda folder, _=None: commit(folder, master)
    sys.argv = ["owa-bench", *words]
    app.main()
    return 0


def record(name: str, command: str) -> None:
    """Play, reveal, replay, report and pack a run.

    Args:
        name: Of the run and its archive.
        command: That plays it.
    """
    archive = RUNS / f"{name}.tar.zst"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        packed = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes())
        with tarfile.open(fileobj=io.BytesIO(packed.read())) as old:
            old.extraction_filter = getattr(tarfile, "data_filter", None)  # from 3.11.4
            old.extractall(folder / "old")
        master = reveal_of(folder / "old" / name)
        for words in (
            [*shlex.split(command), "--out", name],
            ["escrow", "reveal", name],
            ["keygen", "verifier"],
            ["replay", name, "--sign", "--key", "verifier"],
            ["report", name],
        ):
            owa_under(master, folder, words)
        old, new = (episodes_of(folder / at / name) for at in ("old", "."))
        if len(old) != len(new):
            print(f"{name}: {len(new)} episodes, {len(old)} before: another plan")
        else:
            moved = sum(one != other for one, other in zip(old, new, strict=True))
            print(f"{name}: {moved} of {len(new)} episodes are others", flush=True)
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as made:
            made.add(folder / name, name)
        archive.write_bytes(zstandard.ZstdCompressor(LEVEL).compress(data.getvalue()))


def owa_under(master: str, folder: Path, words: list[str]) -> None:
    """Call this file in a folder with keys of its own."""
    subprocess.run(
        [sys.executable, __file__, "--under", master, *words],
        cwd=folder,
        env={**os.environ, "OWA_BENCH_HOME": str(folder / "home")},
        check=True,
        stdout=subprocess.DEVNULL,
    )


def reveal_of(run: Path) -> str:
    """Return the master of a revealed run."""
    return str(json.loads((run / "reveal.json").read_text())["master"])


def episodes_of(run: Path) -> list[tuple[object, ...]]:
    """Return world, actions and q_state of every counted episode."""
    return [
        (t.start.world, [a.action for a in t.of(Action)], t.end.q_state)
        for t in bundle.read(run).traces()
    ]


if __name__ == "__main__":
    sys.exit(main())
