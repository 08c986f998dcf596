"""Results of long benchmarks, kept a line each, so that a run that was stopped goes on.

A result is one of the code that made it: when the package or a benchmark changes, what
was kept before is left aside and played again.
"""

import argparse
import functools
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.progress import Progress

import owa_bench

PACKAGE = Path(owa_bench.__file__).parent


class Job(Protocol):
    """One thing to play."""

    @property
    def key(self) -> str:
        """What its result is kept under."""
        ...


@functools.cache
def source() -> str:
    """Return the digest of the code that results come from: package and benchmarks."""
    digest = hashlib.sha256()
    for root in (PACKAGE, Path(__file__).parent):
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(root).as_posix()}|".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def kept(state: Path) -> dict[str, Any]:
    """Return the results of this code by key; those of other code are left aside."""
    lines = state.read_text().splitlines() if state.is_file() else []
    found = [json.loads(line) for line in lines]
    own = {key: result for code, key, result in found if code == source()}
    if len(own) < len(found):
        other = len(found) - len(own)
        print(f"{state.name}: {other} results of other code left aside")
    return own


def cut_torn_line(state: Path) -> None:
    """Take off what a killed run left half-written at the end."""
    text = state.read_text() if state.is_file() else ""
    if text and not text.endswith("\n"):
        state.write_text("".join(text.splitlines(keepends=True)[:-1]))


def run(todo: Sequence[Job], state: Path, minutes: float, play: Callable[[Any], Any]) -> None:
    """Play what is not kept yet, until the time is up."""
    state.parent.mkdir(parents=True, exist_ok=True)
    cut_torn_line(state)
    done = kept(state)
    start = time.perf_counter()
    with Progress() as progress, state.open("a") as file:
        bar = progress.add_task(state.stem, total=len(todo))
        for job in todo:
            progress.advance(bar)
            if job.key in done:
                continue
            if time.perf_counter() - start > minutes * 60.0:
                break
            file.write(json.dumps([source(), job.key, play(job)]) + "\n")
            file.flush()


def options(about: str, state: Path) -> argparse.ArgumentParser:
    """Return the command line of a script whose results are kept."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--state", type=Path, default=state)
    parser.add_argument("--shard", default="0/1", help="I/N: only each N-th of them")
    parser.add_argument("--print-only", action="store_true")
    return parser


def share_of(todo: Iterable[Job], shard: str) -> Sequence[Job]:
    """Return the part of a list that `--shard I/N` names."""
    try:
        first, shards = map(int, shard.split("/"))
        return list(todo)[first::shards]
    except ValueError:
        sys.exit(f"--shard wants I/N, such as 0/2, and got {shard!r}")
