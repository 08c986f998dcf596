"""The parser of `tariff` reaches 1.0 by what is served; what it leaves out costs it."""

import ast
import inspect
import json

import pytest

from owa_bench.agents.solvers.cases import tariff as parser
from owa_bench.company.kinds.tariff import KIND
from tests.company.case_stub import draw
from tests.company.tariff_play import play


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_parser_solves_a_world(level, tmp_path):
    world = draw(KIND, 3, level)
    played = play(world, tmp_path)
    assert played.q == pytest.approx(1.0)
    assert played.brier < 0.01
    assert played.acts <= 30
    state = json.loads((tmp_path / "tariff-state.json").read_text())
    assert len(state["asked"]) <= world.matter.quota


def test_without_quotes_late_departures_are_missed(tmp_path):
    played = play(draw(KIND, 3, 3), tmp_path, ("quotes",))
    assert played.q < 0.85


def test_without_new_rules_it_misses_them(tmp_path):
    played = play(draw(KIND, 3, 2), tmp_path, ("new",))
    assert 0.3 < played.q < 0.95


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
                    *("collections", "datetime", "json", "numpy", "pathlib", "typing")
                }, root
    assert len(parser._modules()) < 60_000
