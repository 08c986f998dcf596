"""Commands of the command line under limits: how each ended, and what it took.

    python -m tests.builders.limited_commands [--without-bounds] COMMANDS.json

COMMANDS.json holds lists of words. Each command is a fork of this process, which has
imported everything before: what is measured is the command alone. Prints a JSON list.
"""

import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

from owa_bench import bounded_json
from owa_bench.bridges import minari
from owa_bench.cli import app, evidence, judging, people, playing, reading, viewing
from owa_bench.records import bounds, frames, toml
from owa_bench.reports import statement, verify
from owa_bench.reports.export import leaderboard, readers
from owa_bench.reports.page import site
from owa_bench.reports.read import comparison, run_tables
from owa_bench.runs import replay
from owa_bench.runs.play import batch

IMPORTED = (minari, evidence, judging, people, playing, reading, viewing, comparison)
IMPORTED += (leaderboard, readers, run_tables, site, statement, verify, replay, batch)
MEMORY = 1 << 30
DEADLINE_S = 60  # of the wall; the tests compare processor time


def without_bounds() -> None:
    """Switch the bounds off: the control of the tests that use this."""
    endless = 1 << 60
    for name in vars(bounds):
        if name.startswith(("LARGEST", "MOST", "DEEPEST")):
            setattr(bounds, name, endless)
    bounds._refuse = lambda *_: None
    frames.FLOOR = endless
    toml.LARGEST = toml._MOST_DOTS = endless
    bounded_json.refuse_deep = lambda value: None


def ended(words: list[str]) -> dict[str, object]:
    """Return how a command ended: its code, lines, seconds and bytes."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        child = os.fork()
        if not child:
            _play(words, out, err)
        _, status, usage = os.wait4(child, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": out.read_text(errors="replace").splitlines(),
            "err": err.read_text(errors="replace").splitlines(),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "bytes": usage.ru_maxrss * 1024,
        }


def _play(words: list[str], out: Path, err: Path) -> None:
    """Play a command in this process, and end it."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    resource.setrlimit(resource.RLIMIT_DATA, (2 * MEMORY, 2 * MEMORY))
    signal.alarm(DEADLINE_S)
    sys.argv = ["owa-bench", *words]
    code = 99
    try:
        app.main()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(bool(error.code))
    except BaseException:  # noqa: BLE001  as Python says it
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    if "--without-bounds" in sys.argv:
        without_bounds()
    listed = json.loads(Path(sys.argv[-1]).read_text())
    sys.stdout.write(json.dumps([ended(words) for words in listed]))
