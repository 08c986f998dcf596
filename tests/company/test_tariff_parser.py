"""The parser of `tariff` reaches 1.0 by what is served; what it leaves out costs it."""

import ast
import inspect

import pytest

from owa_bench.agents.solvers.cases import tariff as parser
from tests.company.tariff_play import play


@pytest.mark.parametrize(("level", "delta"), [(1, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)])
def test_the_parser_solves_a_world(level, delta):
    row = play(level, 10_000, delta=delta)
    assert row.q == pytest.approx(1.0)
    assert row.brier < 0.01
    assert row.acts <= 32
    assert row.quotes <= {1: 60, 2: 50, 3: 40}[level]


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_parser_solves_many_worlds(level):
    for seed in range(10_001, 10_013):
        assert play(level, seed, delta=0.5 * (seed % 3)).q == pytest.approx(1.0)


def test_without_new_rules_it_misses_them():
    assert 0.3 < play(2, 10_000, ("new",)).q < 0.95


def test_the_parser_imports_neither_world_nor_judge():
    modules = [parser, *parser._SOURCES]
    for module in modules:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith(
                    ("owa_bench.company.kinds", "owa_bench.company.draw", "owa_bench.envs")
                )


def test_what_runs_in_the_sandbox_needs_numpy_alone():
    for module in parser._SOURCES:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names]
                root = node.module if isinstance(node, ast.ImportFrom) else names[0]
                own = root.rpartition(".")[2]
                assert own.startswith("tariff_") or root.partition(".")[0] in {
                    *("collections", "datetime", "itertools", "json", "numpy", "pathlib", "typing")
                }, root
    assert len(parser._modules()) < 60_000
