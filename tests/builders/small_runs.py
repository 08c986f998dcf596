"""Runs small enough to play in a test."""

from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from tests.builders.trace_events import call, end, layout, start, subgoal, toy_plan

__all__ = ["call", "end", "layout", "start", "subgoal", "toy_plan"]

HERE = Path(__file__).parent


@pytest.fixture
def run_options(tmp_path):
    """How to play in this process, agents of this folder at hand."""
    return RunOptions(home=tmp_path / "home", folder=HERE, in_process=True)


@pytest.fixture
def small():
    """Return a function that makes a request over one cheap family."""

    def request(*agents, **changes):
        draw = {
            "name": "toolquest",
            "families": ("reconcile",),
            "tiers": (1,),
            "deltas": (0.0,),
            **{k: changes.pop(k) for k in Draw.__struct_fields__ if k in changes},
        }
        return Request(agents=agents, draws=(Draw(**draw),), **changes)

    return request


@pytest.fixture
def played(tmp_path, run_options):
    """Return a function that plays a request and returns the layout of the run."""

    def play(request, name="run", **changes):
        used = RunOptions(
            **{field: getattr(run_options, field) for field in RunOptions.__slots__} | changes
        )
        batch.play(request, tmp_path / name, used)
        return RunLayout(tmp_path / name)

    return play
