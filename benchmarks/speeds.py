"""Measures every speed and writes docs/benchmarks.md.

    python benchmarks/speeds.py [--small] [--fresh] [NAME ..]

Each script of SCRIPTS runs by itself with a limit of time; one that fails says so on the page and
the rest goes on (exit code 1 at the end). What was measured with this code is kept in `.speeds/`
and not measured again: a run that was stopped goes on. `--fresh` forgets it; names choose scripts.
Peers are installed in environments of their own, `.speeds/peers/NAME`; one that cannot be is named
in its row. The page is written after each script.
"""

import argparse
import ast
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import speed

ROOT, HERE = speed.ROOT, speed.ROOT / "benchmarks"
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / ".speeds" / "results"
MOST_S, SMALL_S, INSTALL_S = 3_600, 600, 900
SCRIPTS = (
    *("commands", "agent_start", "toolquest", "recorder", "scoring", "scale", "episodes"),
    *(
        "actor_kills",
        "concurrency",
        "chat_agents",
        "open_sessions",
        "cartpole3d",
        "cartpole3d_batched",
    ),
    *("crew", "changesurf", "recall", "projforge", "robot_speed", "run_view", "python_desk"),
    "case_queue_speed",
)
CODE = ("owa_bench", "benchmarks", "tests/builders")
PEERS = {  # by what is installed: what it needs beside itself
    "mpe2": ("pettingzoo",),
    "textarena": (),
    "inspect-ai": ("openai",),
    "panda-gym": (),
    "browsergym-core": (),
}
NOT_FOUND = "ERROR: No matching distribution"
PINS = "torch==2.13.0\n"  # the CPU build: any other is gigabytes of what nobody uses here
INTRODUCTION = """\
# Speeds

Made by `make bench` (`python benchmarks/speeds.py`), which measures all of this; each part is by
the script that it names, at the date and the load average that it says. A machine that others use
is slower: read the ratios. A ratio is the median over rounds in which both sides took turns;
another figure is the best round's. An aim is a bound on a figure of its row. A peer is the nearest
thing of the same kind that `pip install` gives.
"""
TRIED = """\
## What was tried

**A fresh agent process** (aim: connect and end within 12 ms). Most of the time was a wait: a
process that moves into a control group waits until every processor has passed a quiet point, and
the two processes that unshared the namespaces were one too many. The first process of a sandbox
is now forked in one call, in its namespaces and its control group (`namespaces.fork_separated`),
and the group's counter replaces a look at each process of the sandbox at the end. Sandboxes made
ahead were not built: the wait that they were to hide is gone, and one that waits would have to
keep the machine's root until the folder of its episode is known. The import of an agent's file is
left: it belongs inside.

**The demonstration** (aim: 9 s of CPU). Agents' processes take less since the change above. What
remains is spread over the step of the suite, the recorder, the imports of two workers and of two
fork servers, and the agents' own work; no function's own time is a tenth of it. Rarer collections
of garbage were tried and changed nothing that the noise does not hide.

**A report on 100,000 episodes** (aims: 60 s, 600 MB). Rows of episodes become columns a thousand
at a time, a table of which all rows are taken is not copied, and leaves, names and the drift of
episodes are kept once or not at all. The time is left: an episode is read twice, once for its
evidence and once for its scores, and no part of either is large. Frames decoded in one go were
tried and given up: the decoder then passes over bytes behind a frame. Garbage collection has no
part in it.
"""
OTHERS = """\
## Peers that are not here

Tried with `pip install` alone: `tau-bench`, `tool-sandbox` and `toolsandbox` are not in the package
index under these names; `appworld` installs, but has no task without a download of its data
(`load_task_ids` says so); `bfcl-eval` and `tau2` are in the index and were not tried.
"""


class Result(NamedTuple):
    """What a script printed, or why it failed; when and by which code."""

    key: str
    commit: str
    date: str
    load: list[float]  # before and after
    small: bool
    tables: list[Any]
    fault: str = ""


# --- peers ----------------------------------------------------------------------------


def install(name: str) -> None:
    """Make the environment of a peer; leave a line in its `fault` where it cannot be made."""
    home = speed.PEERS / name
    if (home / "ready").exists():
        return
    print(f"installing {name}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "pins").write_text(PINS)
    made = [sys.executable, "-m", "venv", home]
    filled = [home / "bin" / "python", "-m", "pip", "install", "-q", "-c", home / "pins"]
    for command in (made, [*filled, name, *PEERS[name]]):
        if fault := fault_of(command):
            (home / "fault").write_text(fault)
            return
    (home / "ready").touch()


def fault_of(command: list[Any]) -> str:
    """Return why a command of an installation failed, "" if it did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {INSTALL_S} s"
    if not done.returncode:
        return ""
    # Other lines name servers and folders, which are nothing for a page.
    errors = [line for line in done.stderr.splitlines() if line.startswith(NOT_FOUND)]
    return errors[-1] if errors else f"the installation ended with {done.returncode}"


# --- scripts --------------------------------------------------------------------------


def git(*words: str) -> str:
    """Return what git says of this repository."""
    done = subprocess.run(("git", "-C", ROOT, *words), capture_output=True, text=True, check=True)
    return done.stdout


def code_digest() -> str:
    """Return a digest of the package, the scripts and what the scripts borrow of the tests."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in git("ls-files", "-co", "--exclude-standard", folder).splitlines():
            if (ROOT / path).is_file():
                digest.update(path.encode() + b"\0" + (ROOT / path).read_bytes())
    return digest.hexdigest()


def commit() -> str:
    """Return the commit; that its code was changed since, too."""
    changed = git("status", "--porcelain", "--", *CODE)
    return git("rev-parse", "--short", "HEAD").strip() + (" with changes" if changed else "")


def kept(name: str) -> Result | None:
    """Return what was measured before."""
    path = RESULTS / f"{name}.json"
    return Result(*json.loads(path.read_text())) if path.exists() else None


def measure(name: str, key: str, *, small: bool) -> Result:
    """Run a script and keep its result."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    out = RESULTS / f"{name}.tables"
    out.unlink(missing_ok=True)
    before, limit = speed.load(), SMALL_S if small else MOST_S
    words = [sys.executable, HERE / f"{name}.py", "--json", out, *(["--small"] if small else [])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    fault = ""
    try:
        done = subprocess.run(
            words, env=environment, cwd=ROOT, timeout=limit, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode or not out.exists():
            last = done.stderr.strip().splitlines()
            fault = last[-1].replace(f"{ROOT}/", "") if last else f"ended with {done.returncode}"
            print(done.stderr, file=sys.stderr)
    except subprocess.TimeoutExpired:
        fault = f"took more than {limit} s"
    found = Result(
        key=key,
        commit=commit(),
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        load=[before, speed.load()],
        small=small,
        tables=json.loads(out.read_text()) if out.exists() and not fault else [],
        fault=fault,
    )
    out.unlink(missing_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(found))
    return found


# --- the page -------------------------------------------------------------------------


def machine() -> str:
    """Return what the figures were measured on, in words."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
    model = model or platform.machine()
    return f"{os.cpu_count()} processors ({model}), Python {platform.python_version()}"


def page(results: dict[str, Result]) -> str:
    """Return the page: the aims, then each script's tables."""
    parts = [f"{INTRODUCTION}\nThis machine: {machine()}.", "## Aims", aims_table(results)]
    for name in SCRIPTS:
        parts += [f"## `python benchmarks/{name}.py`", documentation(name)]
        parts += list(section(results.get(name)))
    return "\n\n".join(part.strip("\n") for part in (*parts, TRIED, OTHERS)) + "\n"


def documentation(name: str) -> str:
    """Return the text at the head of a script."""
    tree = ast.parse((HERE / f"{name}.py").read_text())
    return ast.get_docstring(tree) or ""


def section(result: Result | None) -> Iterator[str]:
    """Yield what a script printed, and when."""
    if result is None:
        yield "Not measured."
        return
    before, after = result.load
    size = ", at small size: the figures say little" if result.small else ""
    load = f"load {before:.1f} before, {after:.1f} after"
    yield f"{result.date}, commit {result.commit}, {load}{size}."
    if result.fault:
        yield f"Not measured: it failed with `{result.fault}`"
    yield from map(str, speed.read(result.tables))


def aims_table(results: dict[str, Result]) -> str:
    """Return each aim with its figure."""
    lines = ["| script | row | aim | figure | met |", "|---|---|---|---|---|"]
    for name in SCRIPTS:
        result = results.get(name)
        if result is None or result.fault:
            lines.append(f"| {name} | | | not measured | |")
            continue
        for table in speed.read(result.tables):
            for row in table.rows:
                for aim in row.aims:
                    figure = row.figures.get(aim.column)
                    said = "" if figure is None else speed.number(figure)
                    met = "small size" if result.small else aim.verdict(row.figures)
                    about = f"{table.title}: {row.name}" + (f" ({row.note})" if row.note else "")
                    lines.append(f"| {name} | {about} | {aim} | {said} | {met} |")
    return "\n".join(lines)


def main() -> int:
    """Install peers, measure, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCRIPTS))
    parser.add_argument("--small", action="store_true", help="every script at its small size")
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SCRIPTS):
        parser.error(f"no such script: {', '.join(sorted(unknown))}")
    for name in PEERS:
        install(name)
    key, failed = code_digest(), []
    results = {name: found for name in SCRIPTS if (found := kept(name))}
    for name in given.names or SCRIPTS:
        last = results.get(name)
        current = last and (last.key, last.small, last.fault) == (key, given.small, "")
        if given.fresh or not current:
            print(f"== {name}", flush=True)
            results[name] = measure(name, key, small=given.small)
        if results[name].fault:
            failed.append(f"{name}: {results[name].fault}")
        PAGE.write_text(page(results))
    print("\n".join(["", f"{PAGE.relative_to(ROOT)} is written", *failed]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
