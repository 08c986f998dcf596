"""New provider families arrive at drift steps, and expansion closure sees them."""

from importlib.resources import files

import msgspec
import pytest

from owa_bench.drift import timeline as timelines
from owa_bench.envs.toolquest.generate import CATEGORIES, generate
from owa_bench.envs.toolquest.providers import successor_family
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.records import price_card, protocol
from owa_bench.records.events import Drift
from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store.files import read_leaves, read_trace
from owa_bench.scoring.observe.observables import observe
from tests.builders.api_worlds import drawn

ORACLE = SUITE.oracle
CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]
RETIRED = "single:api/provider_retired@1"
TASKS = 6


def families_of(categories):
    return {category.partition(":")[0] for category in categories}


def read(name):
    return (files("owa_bench.protocols") / name).read_bytes()


PROTOCOL = protocol.load(read("default.toml"))
PRICES = price_card.load(read("price_card.toml"))


@pytest.mark.part(3)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_a_successor_is_of_a_family_that_no_world_had_before(family, tier):
    timeline = drawn(family, tier, seed=31, drift=RETIRED)
    base, now = generate(timeline.instance), timeline.worlds[0]
    before, after = ORACLE.categories(base), ORACLE.categories(now)
    known = {plan.family for plan in base.providers}
    assert not families_of(after) & known
    assert families_of(after) == {successor_family(f) for f in families_of(before)}
    assert set(before) | set(after) <= set(CATEGORIES)


def test_no_base_world_knows_a_family_to_come():
    shown = {
        provider.family
        for family, tier in CELLS
        for seed in range(3)
        for provider in generate(drawn(family, tier, seed=seed).instance).providers
    }
    assert not {successor_family(family) for family in shown} & shown


def test_a_family_arrives_at_the_step_at_which_its_vendor_is_replaced():
    source = timelines.source("toolquest")
    arrivals = 0
    for seed in range(4):
        given = Instance(suite="toolquest", version=3, family="currency_rollup", tier=3, seed=seed)
        last = timelines.drift_step("toolquest", given, 1.0)
        before = ORACLE.categories(source(given).worlds[0])
        for step in range(1, last + 1):
            timeline = source(msgspec.structs.replace(given, drift_step=step))
            now = ORACLE.categories(timeline.worlds[0])
            new = families_of(now) - families_of(before)
            struck = timeline.changes[0][-1].operator == "api/provider_retired"
            assert bool(new) == struck
            arrivals += struck
            before = now
    assert arrivals == 4 * 3  # each of three vendors, once an instance


def played(tmp_path):
    """Return plan and traces of a run in which every vendor is replaced at delta 1."""
    draw = Draw(
        name="toolquest", families=("deduplicate",), tiers=(1,), deltas=(0.0, 1.0), episodes=TASKS
    )
    request = Request(agents=("oracle", "noop"), draws=(draw,), calendar=RETIRED)
    options = RunOptions(home=tmp_path / "home", in_process=True)
    batch.play(request, tmp_path / "run", options)
    layout = RunLayout(tmp_path / "run")
    traces = [read_trace(layout, leaf) for leaf in read_leaves(layout)]
    return read_plan(layout), traces


def test_new_families_of_vendors_are_offered_and_used_under_drift(tmp_path):
    _, traces = played(tmp_path)
    table = observe([t for t in traces if t.start.arm == "oracle"], PRICES)
    calm = table.offered[table.delta == 0].any(axis=0)
    stormy = table.offered[table.delta == 1].any(axis=0)
    used = table.used[table.delta == 1].any(axis=0)
    arrived = [n for n, c, s in zip(table.categories, calm, stormy, strict=True) if s > c]
    assert families_of(arrived) == {"crm-cloud", "billing-cloud"}
    assert {n for n, u in zip(table.categories, used, strict=True) if u} >= {*arrived}
    assert all(
        {event.operator for event in trace.of(Drift)} == {"api/provider_retired"}
        for trace in traces
        if trace.start.delta == 1.0
    )
