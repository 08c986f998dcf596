"""Embodied suites in a sample: E alone reads them, and units of a fleet are the clusters."""

import numpy as np
import pytest

from owa_bench.records.observables import NO_UNIT
from owa_bench.reports.read.delegation import delegations
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import SURROGATE, sample_of
from owa_bench.scoring.statistics.jackknife import task_clusters
from owa_bench.scoring.statistics.statistics_table import resampling_units
from tests.builders.device_episodes import both_sides, embodiment, verdict
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of


def on_units(units):
    """Return traces of a task a unit on the surrogate."""
    return [
        episode(index=number, pair=f"p{number}", side="surrogate", unit=unit)
        for number, unit in enumerate(units)
    ]


def table_of(found):
    return observe(found, PRICES)


def test_tasks_of_one_unit_are_one_cluster():
    table = table_of([*on_units([4, 4, 7]), episode(index=3, pair="q")])
    units = resampling_units(table, tuple(np.unique(table.family)))
    clusters = task_clusters(units)
    of = dict(zip(units.task[:, None].ravel().tolist(), clusters.of.tolist(), strict=True))
    assert table.unit.tolist() == [4, 4, 7, NO_UNIT]
    assert len(set(of.values())) == len(clusters.stratum) == 3
    tasks = {pair: place for place, pair in enumerate(np.unique(table.pair).tolist())}
    assert of[tasks["p0"]] == of[tasks["p1"]] != of[tasks["p2"]]
    assert clusters.stratum[of[tasks["p0"]]] == clusters.stratum[of[tasks["p2"]]]
    assert clusters.stratum[of[tasks["q"]]] != clusters.stratum[of[tasks["p0"]]]
    assert clusters.noun == "tasks and units"


def test_without_units_clusters_are_tasks():
    table = table_of([episode(index=k, pair=f"p{k}") for k in range(3)])
    clusters = task_clusters(resampling_units(table, tuple(np.unique(table.family))))
    assert clusters.noun == "tasks"
    assert len(clusters.stratum) == 3


def test_no_axis_but_e_reads_a_body():
    found = on_units([1, 2])
    plan = plan_of(found, embodied=True)
    sample = sample_of(plan, table_of(found), PROTOCOL, PRICES)
    assert sample.bodies.all()
    assert not (sample.base | sample.crews | sample.priced).any()
    assert sample.body_families == set(sample.families)
    plain = sample_of(plan_of(found), table_of(found), PROTOCOL, PRICES)
    assert plain.base.all()
    assert not plain.bodies.any()


def test_a_surrogate_is_named_at_the_axis_and_first_of_the_warnings():
    won = [True] * 12
    judged = verdict(both_sides(won, won, hours=15.0, side="surrogate"))
    assert judged.warnings[0].startswith("Surrogate device, not hardware")
    assert "180.0 exposure hours" in judged.warnings[0]
    score = embodiment(both_sides(won, won, hours=15.0, side="surrogate"))
    assert SURROGATE in score.name
    real = verdict(both_sides(won, won, hours=15.0))
    assert not any("urrogate" in one for one in real.warnings)
    assert SURROGATE not in embodiment(both_sides(won, won, hours=15.0)).name


def test_the_answer_tells_the_sides_apart_and_pools_neither():
    answer = delegations(on_units([1, 2]))["agent"]
    assert answer.still is None
    assert answer.sentence == (
        f"With an arm it does {answer.bodies[0][1].words} on a surrogate device (not hardware)."
    )
    assert delegations([episode()])["agent"].bodies == ()


@pytest.mark.parametrize(("side", "words"), [("sim", "in simulation"), ("real", "on a robot")])
def test_each_side_has_its_words(side, words):
    assert words in delegations([episode(side=side, unit=0)])["agent"].sentence
