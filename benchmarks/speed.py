"""What scripts that measure speed share: rounds in turns, ratios, aims, tables, peers.

A script is a function `tables(given)` and a call of `main`. Every script takes `--small`
(seconds, to see that it works; its figures say little) and `--json FILE`, by which
`benchmarks/speeds.py` reads what it prints.

What is compared is measured in turns within one run. A ratio is the median of the rounds'
ratios; other figures are the best round's, since a busy machine only adds time.

A peer lives in an environment of its own (`speeds.py` makes it) and is a program of
`benchmarks/peers/` that answers lines: arguments as JSON in, figures as JSON out.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".speeds" / "peers"
MISSING = "not installed"


class Aim(NamedTuple):
    """A bound on a figure of a row."""

    column: str
    sign: str  # ">=" or "<="
    bound: float

    def met(self, figures: Mapping[str, float]) -> bool:
        """Return whether the figure keeps the bound; what is no number does not."""
        figure = figures.get(self.column, math.nan)
        return figure >= self.bound if self.sign == ">=" else figure <= self.bound

    def verdict(self, figures: Mapping[str, float]) -> str:
        """Return whether the bound is kept, in a word or two."""
        if self.column not in figures:
            return "not measured"
        return "yes" if self.met(figures) else "no"

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.bound:,}"


class Row(NamedTuple):
    """Figures by column under a name; `note` says why a row has none, or of what kind it is."""

    name: str
    figures: Mapping[str, float] = {}
    aims: Sequence[Aim] = ()
    note: str = ""


class Table(NamedTuple):
    """Rows under a title."""

    title: str
    rows: Sequence[Row]

    def __str__(self) -> str:
        columns = list(dict.fromkeys(column for row in self.rows for column in row.figures))
        lines = ["| " + " | ".join([self.title, *columns, "aim", "met"]) + " |"]
        lines.append("|---" * (len(columns) + 3) + "|")
        for row in self.rows:
            cells = [number(row.figures[c]) if c in row.figures else "" for c in columns]
            name = f"{row.name} ({row.note})" if row.note else row.name
            lines.append("| " + " | ".join([name, *cells, *judged(row)]) + " |")
        return "\n".join(lines)


def judged(row: Row) -> tuple[str, str]:
    """Return the aims of a row, and whether each is met."""
    return "; ".join(map(str, row.aims)), "; ".join(aim.verdict(row.figures) for aim in row.aims)


def number(figure: float) -> str:
    """Return a figure with three digits, or with all before the point; a count whole."""
    if isinstance(figure, int):
        return f"{figure:,}"
    if figure == 0 or not math.isfinite(figure):
        return f"{figure:g}"
    places = max(0, 2 - math.floor(math.log10(abs(figure))))
    return f"{figure:,.{min(places, 4)}f}"


# --- measuring ------------------------------------------------------------------------


def in_turns(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """Return what each way measured in each round; a round is a turn of every way."""
    found: dict[str, list[Any]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return found


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Return the median over rounds of ours by theirs."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class Spent(NamedTuple):
    """What a command and its children took."""

    wall_s: float
    cpu_s: float
    mb: float  # the largest process


def command(words: Sequence[str | Path], folder: Path) -> Spent:
    """Run a command of `owa_bench` in a folder that has keys of its own; it must end well."""
    environment = {**os.environ, "OWA_BENCH_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+") as said:
        began = time.perf_counter()
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(map(str, words))}: {said.read()}")
    return Spent(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def owa(*words: str | Path) -> list[str | Path]:
    """Return the command line of `owa-bench` with these words."""
    return [sys.executable, "-m", "owa_bench", *words]


# --- peers ----------------------------------------------------------------------------


Ask = Callable[..., dict[str, float]]


@contextmanager
def peer(package: str, program: str) -> Iterator[tuple[Ask, str]]:
    """Yield a function that lets a peer measure once and returns its figures, and "".

    A package without an environment has no such function: then the text says why.
    """
    home = PEERS / package
    if not (home / "ready").exists():
        fault = home / "fault"
        reason = fault.read_text().strip() if fault.exists() else "`make bench` installs it"
        yield _nothing, f"{MISSING}: {reason}"
        return
    command = [home / "bin" / "python", "-W", "ignore", "-u", ROOT / "benchmarks/peers" / program]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):

        def ask(**arguments: Any) -> dict[str, float]:
            with contextlib.suppress(BrokenPipeError):
                print(json.dumps(arguments), file=process.stdin, flush=True)
            for line in process.stdout or ():
                if line.startswith("{"):  # peers print words, too
                    return json.loads(line)
            said.seek(0)
            last = said.read().strip().splitlines()
            raise RuntimeError(f"{program}: {last[-1] if last else 'ended without a word'}")

        try:
            yield ask, ""
        finally:
            process.kill()


def _nothing(**_: Any) -> dict[str, float]:
    raise RuntimeError("a peer that is not installed was asked")


# --- a script's end -------------------------------------------------------------------


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of what every script takes."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--small", action="store_true", help="seconds, to see that it works")
    made.add_argument("--json", type=Path, help="write the tables there, too")
    return made


def main(
    tables: Callable[[argparse.Namespace], Iterable[Table]], arguments: argparse.ArgumentParser
) -> None:
    """Print the tables; write them where `--json` says."""
    given = arguments.parse_args()
    found = []
    for table in tables(given):
        print(table, end="\n\n", flush=True)
        found.append(table)
    print(f"load {load():.1f} on {os.cpu_count()} processors", file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps(found))


def read(tables: Iterable[Any]) -> list[Table]:
    """Return tables from their JSON."""
    return [
        Table(
            title,
            [
                Row(name, figures, [Aim(*aim) for aim in aims], note)
                for name, figures, aims, note in rows
            ],
        )
        for title, rows in tables
    ]


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]
