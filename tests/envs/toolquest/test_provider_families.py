"""New lines of vendors arrive at drift steps; they stay of one kind of tool."""

from importlib.resources import files

import msgspec
import pytest

from owa_bench.drift import timeline as timelines
from owa_bench.envs.toolquest.generate import generate
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

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]
RETIRED = "single:api/provider_retired@1"
TASKS = 6


def families_of(world):
    """Return the lines of business of the vendors that the task needs."""
    return {world.provider(key).family for key, _ in world.needed}


def read(name):
    return (files("owa_bench.protocols") / name).read_bytes()


PROTOCOL = protocol.load(read("default.toml"))
PRICES = price_card.load(read("price_card.toml"))


@pytest.mark.part(3)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_a_successor_is_of_a_family_that_no_world_had_before(family, tier):
    timeline = drawn(family, tier, seed=31, drift=RETIRED)
    base, now = generate(timeline.instance), timeline.worlds[0]
    before, after = families_of(base), families_of(now)
    assert not after & {provider.family for provider in base.providers}
    assert after == {successor_family(family) for family in before}


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
        before = families_of(source(given).worlds[0])
        for step in range(1, last + 1):
            timeline = source(msgspec.structs.replace(given, drift_step=step))
            now = families_of(timeline.worlds[0])
            new = now - before
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


def test_successors_of_other_lines_are_no_other_kind_of_tool(tmp_path):
    _, traces = played(tmp_path)
    table = observe([t for t in traces if t.start.arm == "oracle"], PRICES)
    assert table.categories == ("http_api",)
    assert table.used[table.delta == 1].all()
    assert all(
        {event.operator for event in trace.of(Drift)} == {"api/provider_retired"}
        for trace in traces
        if trace.start.delta == 1.0
    )
