"""Runs small enough to play in a test."""

from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.run import batch
from owa_bench.run.batch import Means
from owa_bench.run.draws import Draw
from owa_bench.run.request import Request
from tests.run.made_events import call, end, layout, start, subgoal, toy_plan

__all__ = ["call", "end", "layout", "start", "subgoal", "toy_plan"]

HERE = Path(__file__).parent


@pytest.fixture
def means(tmp_path):
    """How to play in this process, agents of this folder at hand."""
    return Means(home=tmp_path / "home", folder=HERE, in_process=True)


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
def played(tmp_path, means):
    """Return a function that plays a request and returns the layout of the run."""

    def play(request, name="run", **changes):
        used = Means(
            **{field: getattr(means, field) for field in Means.__slots__} | changes
        )
        batch.play(request, tmp_path / name, used)
        return RunLayout(tmp_path / name)

    return play
