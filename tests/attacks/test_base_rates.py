"""W cannot be had by stating how often propositions of a kind are true.

An agent that stated 86 in 100 for documents that "differ from" what is served, and 14
for those that "agree with" it, read W above 0 without a look at the world; so did one
that knew how often the claims of each site are true.
"""

from collections import defaultdict

import msgspec
import numpy as np
import pytest

from owa_bench.discovery import find
from owa_bench.drift import timeline as timelines
from owa_bench.records.instance import Instance
from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request
from tests.builders.small_runs import played, run_options  # noqa: F401  fixtures

MOST = 0.05
DRAWS = {
    "toolquest": Draw(name="toolquest", tiers=(1, 3), episodes=2, interventions=(0,)),
    "multicrew": Draw(
        name="multicrew",
        families=("contract", "negotiate"),
        tiers=(3,),
        episodes=6,
        interventions=(0,),
    ),
    "projforge_fast": Draw(name="projforge_fast", tiers=(1, 4), episodes=6, interventions=(0,)),
    "changesurf": Draw(name="changesurf", tiers=(1,), episodes=3, interventions=(0,)),
}


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("suite", sorted(DRAWS))
@pytest.mark.parametrize("deltas", [(0.0, 1.0), (0.5,)])
def test_the_committed_rate_by_wording_buys_no_world_model(
    played,  # noqa: F811
    suite,
    deltas,
    record_property,
):
    """Real runs; at one magnitude the true rates are far from the committed ones."""
    draw = msgspec.structs.replace(DRAWS[suite], deltas=deltas)
    agents = ("rate_agents:StatesRates", "rate_agents:StatesSureRates")
    seated = find("suites")[suite].plugin.card.isolated
    layout = played(Request(agents=agents, draws=(draw,)), in_process=not seated)
    for verdict in statement.write(layout.root, None).verdicts:
        [axis] = [axis for axis in verdict.axes if axis.symbol == "W"]
        high = axis.tasks_like_these.high
        record_property(
            f"W, raw, upper of {verdict.arm}", (float(axis.value), float(axis.raw), float(high))
        )
        assert axis.details["stated"] == 1.0
        assert axis.value <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("suite", sorted(DRAWS))
def test_rates_by_family_and_wording_buy_next_to_nothing(suite, record_property):
    """A table learnt on some seeds, stated on others: what family and class tell."""
    learnt, met = (shares(suite, range(k, k + 12)) for k in (0, 1000))
    own = assumed = 0.0
    classes = defaultdict(lambda: np.zeros(2))
    for (_, kind), (true, whole) in met.items():
        classes[kind] += true, whole
    for (family, kind), (true, whole) in met.items():
        p = learnt[family, kind][0] / learnt[family, kind][1]
        own += whole * p**2 + true * (1 - 2 * p)
        q = classes[kind][0] / classes[kind][1]
        assumed += whole * q**2 + true * (1 - 2 * q)
    skill = 1 - own / assumed
    record_property("skill of rates by family", float(skill))
    assert skill <= MOST


def shares(suite, seeds):
    """Return how many propositions are true, and how many there are, by family."""
    plugin, play = find("suites")[suite].plugin, timelines.source(suite)
    counts = defaultdict(lambda: np.zeros(2))
    for family in plugin.card.families:
        for seed in seeds:
            base = Instance(
                suite=suite,
                version=plugin.card.version,
                family=family,
                tier=plugin.card.tiers[seed % len(plugin.card.tiers)],
                seed=seed,
            )
            for delta in (0.0, 0.25, 0.5, 1.0):
                step = timelines.drift_step(suite, base, delta)
                timeline = play(msgspec.structs.replace(base, drift_step=step))
                for truth in plugin.oracle.propositions(timeline):
                    counts[family, truth.kind] += truth.truth, 1
    return counts
