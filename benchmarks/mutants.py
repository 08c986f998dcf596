"""Mutation test of scoring and report: draws mutants by seed, runs the tests of each.

    python benchmarks/mutants.py                    # 300 mutants, committed seed
    python benchmarks/mutants.py --count 30 --module scoring/estimate/composites
    python benchmarks/mutants.py --again OUTPUT  # survivors of a run that printed this

A mutant is one changed operator, comparison, number, boolean or call of min and max in
one module. Its tests are the examples in the module's docstrings and, of the test files
that execute the changed function, the one named after the module, the twelve that
execute the fewest others, and the one that judges stored runs again: each file of
`TESTS` runs once at the start, with a tracer, and must pass. A mutant is killed when
one of them fails. Prints survivors as they are found, then the killed share with its
Wilson interval. Mutants are run in the order in which they are drawn, so the share so
far, printed every twenty, is that of a smaller draw.

Mutants are drawn of every module but those that draw or word a page: a changed figure
of a layout is no error of a judgement.

Not drawn, since they change nothing that a run does: annotations, decorators, raised
messages, formatted text, `strict=` of zip (an assertion on lengths that agree).
"""

import argparse
import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats  # loaded once, inherited by every forked child
from rich.progress import track

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "owa_bench"
SEED = 20261122
LIMIT_S = 300  # of one test; a mutant that hangs is killed
NEAREST = 12  # test files of one mutant
STORED = "tests/reports/test_stored_figures.py"  # judges whole runs; the last of all
FIRST = 3  # of them, run alone before the others: most mutants die there
TESTS = ("tests/scoring", "tests/reports")
ROOMS = ("scoring", "report")
PAGES = """
figures pictures render_html run_tables site site_server templates terms
validation_figures validation_page
"""  # modules that draw or word a page
UNCHANGED = frozenset({"annotation", "returns", "decorator_list", "type_params"})

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "nanmin": "nanmax"}
CALLS |= {"nanmax": "nanmin", "minimum": "maximum", "maximum": "minimum"}


class Mutant(NamedTuple):
    """One change of one module: `apply` makes it in the module's syntax tree."""

    path: Path
    line: int
    about: str
    apply: Callable[[], None]


class Outcome(NamedTuple):
    """A mutant's place and change, and whether a test noticed it."""

    place: str
    about: str
    killed: bool


def mutants(path: Path, tree: ast.Module) -> Iterator[Mutant]:
    """Yield every mutant of a module; texts, annotations and raises stay."""
    for node in _code(tree):
        for about, apply in _changes(node):
            yield Mutant(path, getattr(node, "lineno", 0), about, apply)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes whose change changes what the module computes."""
    for name, value in ast.iter_fields(node):
        if name in UNCHANGED:
            continue
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and not isinstance(child, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr)
                and not (isinstance(child, ast.keyword) and child.arg == "strict")
            ):
                yield child
                yield from _code(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield (description, change) for one node."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield _swap(node, "op", ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        changed = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield _swap(node, "ops", changed)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _swap(node, "op", other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _swap(node, "op", ast.UAdd())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _swap(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield _swap(node, "value", node.value + 1)
    elif isinstance(node, ast.Name) and node.id in CALLS:
        yield _swap(node, "id", CALLS[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in CALLS:
        yield _swap(node, "attr", CALLS[node.attr])


def _swap(node: ast.AST, field: str, new: Any) -> tuple[str, Callable[[], None]]:
    before = ast.unparse(node) if isinstance(node, ast.expr) else field
    old = getattr(node, field)
    setattr(node, field, new)
    after = ast.unparse(node) if isinstance(node, ast.expr) else field
    setattr(node, field, old)
    return f"{before}  ->  {after}", lambda: setattr(node, field, new)


def modules(only: str) -> list[Path]:
    """Return the modules that are mutated, in name order."""
    drawn = {"__init__", *PAGES.split()}
    found = sorted(p for room in ROOMS for p in (PACKAGE / room).rglob("*.py"))
    return [
        path for path in found if path.stem not in drawn and only in path.with_suffix("").as_posix()
    ]


class Executed(NamedTuple):
    """What one test file executes: functions as (path, first line)."""

    test: str
    functions: frozenset[tuple[str, int]]


def executed(test: str) -> Executed:
    """Return what a test file executes, run in a forked child; it must pass."""
    own = f"{ROOT}/owa_bench/"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        calls: set[tuple[str, int]] = set()

        def tracer(frame: FrameType, _event: str, _argument: object) -> None:
            code = frame.f_code
            if code.co_filename.startswith(own):
                calls.add((code.co_filename, code.co_firstlineno))

        sys.settrace(tracer)  # returns None: calls alone are traced, no lines
        threading.settrace(tracer)
        status = 1
        with contextlib.suppress(BaseException):
            status = _quiet_pytest([test])
        sys.settrace(None)
        with os.fdopen(writing, "w") as answer:
            json.dump(sorted(calls), answer)
        os._exit(status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))
    os.close(writing)
    with os.fdopen(reading) as stream:
        found = json.load(stream)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"{test} fails with nothing changed.")
    return Executed(test, frozenset((path, line) for path, line in found))


def tests_of(path: Path, tree: ast.Module, line: int, runs: list[Executed]) -> list[str]:
    """Return the test files that execute the function around a line, the nearest first.

    Before them the file that is named after the module, or after the package it is in.
    A line outside functions runs at import: every file that calls the module then.
    """
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line
        if line <= (node.end_lineno or 0)
    ]
    first = min((_first_line(node) for node in functions), default=0)
    last = max((node.end_lineno or 0 for node in functions), default=sys.maxsize)
    near = [
        (len(run.functions), run.test)
        for run in runs
        if any(p == str(path) and first <= at <= last for p, at in run.functions)
    ]
    tests = [test for _, test in sorted(near)]
    module = path.relative_to(ROOT / "owa_bench")
    named = [f"tests/{p.parent}/test_{p.stem}.py" for p in (module, module.parent)]
    own = [test for test in tests if test in named]
    others = [test for test in tests if test not in own]
    stored = [test for test in others[NEAREST:] if test == STORED]
    return [*own, *others[:NEAREST], *stored]


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _quiet_pytest(tests: list[str]) -> int:
    """Return pytest's exit status on test files, run without output."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with contextlib.redirect_stdout(io.StringIO()):
        return int(pytest.main([*options, f"--timeout={LIMIT_S}", *tests]))


class _Source(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed syntax tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def create_module(self, _spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exec(compile(self._tree, self._path, "exec"), module.__dict__)


def survives(path: Path, tree: ast.Module, tests: list[str]) -> bool:
    """Return whether the tests pass with the module as `tree`.

    They run in a forked child, in a process group of its own that is killed at the end.
    """
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            sys.meta_path.insert(0, _Source(name, path, tree))
            importlib.import_module(name)
            code = _quiet_pytest(tests)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status == 0


def draw(paths: list[Path], count: int, seed: int) -> list[tuple[Path, int]]:
    """Return `count` pairs (module, number of the mutant in it), all different."""
    places = [
        (path, number)
        for path in paths
        for number, _ in enumerate(mutants(path, ast.parse(path.read_text())))
    ]
    rng = np.random.default_rng(seed)
    return [places[i] for i in rng.permutation(len(places))[:count]]


def survivors(chosen: list[tuple[Path, int]], text: str) -> list[tuple[Path, int]]:
    """Return those mutants that an earlier run printed as survivors."""
    printed = {line.partition("survived  ")[2] for line in text.splitlines()}
    found = []
    for path, number in chosen:
        mutant = list(mutants(path, ast.parse(path.read_text())))[number]
        if f"{_place(mutant)}  {mutant.about}" in printed:
            found.append((path, number))
    return found


def _place(mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(ROOT).as_posix()}:{mutant.line}"


def run(path: Path, number: int, runs: list[Executed]) -> Outcome:
    """Return what became of one mutant."""
    tree = ast.parse(path.read_text())
    mutant = list(mutants(path, tree))[number]
    tests = [str(path)] if ">>> " in path.read_text() else []
    tests += tests_of(path, tree, mutant.line, runs)
    mutant.apply()
    ast.fix_missing_locations(tree)
    parts = [part for part in (tests[:FIRST], tests[FIRST:]) if part]
    killed = any(not survives(path, tree, part) for part in parts)
    return Outcome(_place(mutant), mutant.about, killed)


def share(killed: int, count: int) -> str:
    """Return the killed share of so many mutants in words, with its interval."""
    interval = scipy.stats.binomtest(killed, count).proportion_ci(method="wilson")
    return (
        f"{killed} of {count} mutants killed: {killed / count:.3f} "
        f"[{interval.low:.3f}, {interval.high:.3f}]"
    )


def load_libraries() -> None:
    """Import what the judging half imports, and forget the package itself.

    Every forked child imports the package anew, with one module changed; the libraries
    are those of this process.
    """
    importlib.import_module("owa_bench.reports.statement")
    for name in [name for name in sys.modules if name.partition(".")[0] == "owa_bench"]:
        del sys.modules[name]


def main() -> int:
    """Print the killed share and the survivors; exit 1 below `--least`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--module", default="", help="part of a path: only those")
    parser.add_argument("--again", type=Path, help="output: only its survivors")
    parser.add_argument("--least", type=float, default=0.9, help="killed share")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.again and not options.again.is_file():
        parser.error(f"--again must be the output of an earlier run, got {options.again}")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths = modules(options.module)
    files = [str(f) for t in TESTS for f in sorted(Path(t).rglob("test_*.py"))]
    chosen = draw(paths, options.count, options.seed)
    if options.again:
        chosen = survivors(chosen, options.again.read_text())
    load_libraries()
    began, killed = time.perf_counter(), 0
    with ProcessPoolExecutor(options.workers, get_context("fork")) as pool:
        runs = list(track(pool.map(executed, files), "test files", len(files)))
        jobs = [pool.submit(run, path, number, runs) for path, number in chosen]
        for count, job in enumerate(track(jobs, "mutants"), 1):
            outcome = job.result()
            killed += outcome.killed
            if not outcome.killed:
                print(f"survived  {outcome.place}  {outcome.about}", flush=True)
            if count % 20 == 0:
                print(share(killed, count), flush=True)
    spent = time.perf_counter() - began
    print(f"{share(killed, len(jobs))}, seed {options.seed}, {spent:.0f} s")
    return int(killed / len(jobs) < options.least)


if __name__ == "__main__":
    sys.exit(main())
