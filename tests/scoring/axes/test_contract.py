"""Every axis: headings, marks, a doctest, and what it does without evidence."""

import doctest
import re
import sys
from typing import Any

import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.records.protocol import SYMBOLS
from owa_bench.scoring.axis import AXIS_NAMES
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import Sample, sample_of
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, resampling_units
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of

AXES = {name: found.plugin for name, found in find("axes").items() if not found.package}
HEADINGS = ("Formula:", "Shapes:", "Units:", "Missing:", "Errors:", "Source:")


@pytest.fixture(params=sorted(AXES))
def axis(request: pytest.FixtureRequest) -> Any:
    return AXES[request.param]


def test_symbol_and_name_are_those_of_the_scale(axis: Any) -> None:
    assert axis.symbol in SYMBOLS
    assert AXIS_NAMES[axis.symbol] == axis.name


def test_every_symbol_is_measured() -> None:
    assert {axis.symbol for axis in AXES.values()} == set(SYMBOLS)


def test_docstring_carries_headings_and_a_mark(axis: Any) -> None:
    text = axis.formula.__doc__
    places = [text.find(heading) for heading in HEADINGS]
    assert min(places) > 0, f"{axis.name} lacks a heading of {HEADINGS}"
    assert places == sorted(places)
    assert re.search(r"\[[SRD]\]", text[places[-1] :])


def test_docstring_holds_an_example_that_runs(axis: Any) -> None:
    module = sys.modules[axis.formula.__module__]
    examples = doctest.DocTestFinder().find(axis.formula, globs=vars(module).copy())
    assert sum(len(test.examples) for test in examples) >= 1
    runner = doctest.DocTestRunner(verbose=False)
    assert all(runner.run(test).failed == 0 for test in examples)


def test_without_an_episode_it_is_missing_with_a_reason(axis: Any) -> None:
    played = [episode()]
    sample = sample_of(plan_of(played), observe(played, PRICES), PROTOCOL, PRICES)
    units = resampling_units(sample.table, sample.families)
    none = np.zeros(1, dtype=bool)
    empty = Sample(
        table=sample.table,
        base=none,
        priced=none,
        crews=none,
        bodies=none,
        families=sample.families,
        body_families=frozenset(),
        weights=sample.weights,
        protocol=PROTOCOL,
        prices=PRICES,
    )
    coverage = axis.add_columns(empty, StatisticsTable(units))
    assert coverage.used == 0
    assert coverage.reason
