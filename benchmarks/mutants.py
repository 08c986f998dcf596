"""Mutation test of the judging half: draws mutants by seed, runs their modules' tests.

    python benchmarks/mutants.py                    # 300 mutants, committed seed
    python benchmarks/mutants.py --count 30 --module scoring/composites

A mutant is one changed operator, comparison, number, boolean or call of min and max in
one module. Its tests are the files that import the module. A mutant is killed when one
of them fails. Prints the killed share with its Wilson interval, then the survivors.
"""

import argparse
import ast
import contextlib
import importlib.abc
import importlib.util
import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats  # loaded once, inherited by every forked child
from rich.progress import track

ROOT = Path(__file__).parents[1]
SEED = 20261122
LIMIT_S = 120  # of one mutant's tests; a mutant that hangs is killed
PLACES = ("owa_bench/scoring", "owa_bench/report")
# Text and drawing: a changed figure of a layout is no error of a judgement.
LEFT_OUT = re.compile(r"figures|drawing|render|pictures|palette|__init__")

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
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(
                child, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr
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
    found = sorted(p for place in PLACES for p in (ROOT / place).rglob("*.py"))
    kept = [p for p in found if not LEFT_OUT.search(p.as_posix())]
    return [p for p in kept if only in p.as_posix()]


def tests_of(path: Path, texts: dict[Path, str]) -> list[str]:
    """Return the test files that import a module."""
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    package, _, name = dotted.rpartition(".")
    direct = re.compile(rf"\b{re.escape(dotted)}\b")
    listed = re.compile(
        rf"from {re.escape(package)} import (?:\([^)]*|[^\n]*)\b{name}\b"
    )
    return [
        str(test)
        for test, text in texts.items()
        if direct.search(text) or listed.search(text)
    ]


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


def survives(path: Path, tree: ast.Module | None, tests: list[str]) -> bool:
    """Return whether the tests pass with the module as `tree` (None: as it is).

    They run in a forked child, in a process group of its own that is killed at the end.
    """
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.alarm(LIMIT_S)
        if tree is not None:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            sys.meta_path.insert(0, _Source(name, path, tree))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        code = 1
        with contextlib.redirect_stdout(io.StringIO()):
            code = pytest.main(
                ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
            )
        os._exit(int(code))
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
    chosen = rng.permutation(len(places))[:count]
    return [places[i] for i in sorted(chosen)]


def run(path: Path, number: int, tests: list[str]) -> Outcome:
    """Return what became of one mutant."""
    tree = ast.parse(path.read_text())
    mutant = list(mutants(path, tree))[number]
    mutant.apply()
    killed = not tests or not survives(path, ast.fix_missing_locations(tree), tests)
    place = f"{path.relative_to(ROOT).as_posix()}:{mutant.line}"
    return Outcome(place, mutant.about, killed and bool(tests))


def main() -> int:
    """Print the killed share and the survivors; exit 1 below `--least`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--module", default="", help="part of a path: only those")
    parser.add_argument("--least", type=float, default=0.9, help="killed share")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths = modules(options.module)
    texts = {p: p.read_text() for p in sorted(Path("tests").rglob("test_*.py"))}
    tests = {path: tests_of(path, texts) for path in paths}
    chosen = draw(paths, options.count, options.seed)
    began = time.perf_counter()
    with ProcessPoolExecutor(options.workers, get_context("fork")) as pool:
        jobs = [pool.submit(run, path, number, tests[path]) for path, number in chosen]
        outcomes = [job.result() for job in track(jobs, "mutants")]
    killed = sum(outcome.killed for outcome in outcomes)
    interval = scipy.stats.binomtest(killed, len(outcomes)).proportion_ci(
        method="wilson"
    )
    for outcome in outcomes:
        if not outcome.killed:
            print(f"survived  {outcome.place}  {outcome.about}")
    print(
        f"{killed} of {len(outcomes)} mutants killed: {killed / len(outcomes):.3f} "
        f"[{interval.low:.3f}, {interval.high:.3f}], seed {options.seed}, "
        f"{time.perf_counter() - began:.0f} s"
    )
    return int(killed / len(outcomes) < options.least)


if __name__ == "__main__":
    sys.exit(main())
