"""A call of an episode's Python: the desk that stays open beside a fresh sandbox a call.

Both run the same code under bubblewrap with the same files in sight; a fresh process imports numpy
where the code does. Milliseconds are the median call of the best round, the first call of a desk,
which starts it, in a row of its own.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import speed

from owa_bench.sandbox import backends, python_desk
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import SandboxJob
from owa_bench.sandbox.python_desk import PythonDesk

CODES = {
    "`print(1)`": "print(1)",
    "numpy: a system of 50 equations": (
        "import numpy as np\n"
        "a = np.arange(2500.0).reshape(50, 50) % 17 + 9 * np.eye(50)\n"
        "print(np.linalg.solve(a, np.ones(50)).sum().round(6))"
    ),
    "a table of 2,000 rows, summed by key": (
        "import collections, csv\n"
        "sums = collections.Counter()\n"
        "for row in csv.DictReader(open('rows.csv')):\n"
        "    sums[row['key']] += int(row['cents'])\n"
        "print(sorted(sums.items())[:3])"
    ),
}
AIM_MS = 15.0


def write_rows(folder: Path) -> None:
    """Write the table that a code sums."""
    lines = [f"{number},K{number * 7 % 40},{number * 991 % 90_000}" for number in range(2_000)]
    (folder / "rows.csv").write_text("\n".join(["id,key,cents", *lines]))


def fresh(folder: Path, code: str) -> str:
    """Return what code prints in a sandbox of its own."""
    path = f"import sys; sys.path.append({python_desk.PACKAGES!r})\n"
    job = SandboxJob(
        argv=(str(binds.interpreter()), "-s", "-S", "-P", "-c", path + code),
        work=folder,
        env=python_desk.ENVIRONMENT,
        binds=(*binds.python(), *python_desk.numpy_binds()),
        hidden=binds.python_hidden(),
        limits=python_desk.LIMITS,
    )
    return backends.get(python_desk.BACKEND).run(job).output.decode().rstrip("\n")


def call_ms(run: Callable[[str], str], code: str, calls: int) -> float:
    """Return the milliseconds of the median call."""
    took, texts = [], set()
    for _ in range(calls):
        began = time.perf_counter()
        texts.add(run(code))
        took.append(1e3 * (time.perf_counter() - began))
    if len(texts) != 1 or not texts.pop():
        raise SystemExit(f"calls of one code print different texts, or none: {code}")
    return statistics.median(took)


def start_ms(folder: Path) -> float:
    """Return the milliseconds of a desk's first call."""
    desk = PythonDesk(folder)
    milliseconds = call_ms(lambda code: desk.run(code).text, CODES["`print(1)`"], 1)
    desk.close()
    return milliseconds


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield milliseconds a call by code, and of the first call."""
    calls, singles, rounds = (10, 2, 1) if given.small else (200, 10, 5)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder)
        desk = PythonDesk(folder)
        desk.run("")
        rows = []
        for name, code in CODES.items():
            if desk.run(code).text != fresh(folder, code):
                raise SystemExit(f"the desk and a fresh process print different texts: {code}")
            found = speed.in_turns(
                {
                    "desk": lambda code=code: call_ms(lambda c: desk.run(c).text, code, calls),
                    "fresh": lambda code=code: call_ms(lambda c: fresh(folder, c), code, singles),
                },
                rounds,
            )
            figures = {
                "desk, ms": min(found["desk"]),
                "fresh process, ms": min(found["fresh"]),
                "fresh / desk": speed.ratio(found["fresh"], found["desk"]),
            }
            rows.append(speed.Row(name, figures, [speed.Aim("desk, ms", "<=", AIM_MS)]))
        desk.close()
        yield speed.Table("a call", rows)
        starts = [start_ms(folder) for _ in range(rounds)]
    yield speed.Table("started", [speed.Row("a desk, with its first call", {"ms": min(starts)})])


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
