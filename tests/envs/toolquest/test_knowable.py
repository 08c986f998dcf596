"""Every fact that the oracle uses can be learnt through the tools.

Rows, paths, credentials, pagers and parameters: a reader of documents and refusals, who
may ask nobody, brings home every needed row under all drift at once. What silent drift
changes shows in what is served. The rest is learnt with help.
"""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.agents.solvers.api_solver.solver import ApiSolver
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.planning import Runner, reply
from owa_bench.envs.toolquest import wire_format
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.interfaces import Brief
from tests.builders.api_worlds import Caller, drawn

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]


def brief_of(session, hints=0):
    task = session.task
    return Brief(
        text=task.text, goal=task.goal, propositions=task.propositions, interventions_left=hints
    )


def gathered(timeline, folder):
    """Return the job after it has fetched all it could, and the state it left."""
    caller = Caller(timeline)
    job = ApiSolver(brief_of(caller.session), FactMemory(folder))
    plan = job.gather()
    try:
        call = next(plan)
        while True:
            seen = caller.call(call.tool, **call.arguments)
            call = plan.send(reply(seen.text))
    except StopIteration:
        caller.session.close()
    return job, caller.session.state


@pytest.mark.part(4)
@pytest.mark.parametrize("drift", ["", "nested"])
@pytest.mark.parametrize(("family", "tier"), [c for c in CELLS if c[1] < 4])
def test_every_needed_row_can_be_fetched_without_help(family, tier, drift, tmp_path):
    timeline = drawn(family, tier, seed=31, drift=drift)
    job, state = gathered(timeline, tmp_path)
    world = timeline.worlds[0]
    sources = [s for s in job.task.sources if not s.optional]
    for source, place in zip(sources, world.needed, strict=True):
        rows = world.provider(place[0]).table(place[1]).rows
        assert state.fetched[place] == (1 << len(rows)) - 1, source.id
        assert len(job.task.tables[source.id].fetched.rows) == len(rows)


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_help_leads_to_the_answer(family, tier, tmp_path):
    """The doc reader asks whenever it may, for as long as it takes."""
    timeline = drawn(family, tier, seed=32, drift="nested")
    env = SUITE.env(lambda _: timeline, interventions=None).unwrapped
    observation, _ = env.reset(options={"instance": timeline.instance})
    brief = Brief(text=env.task.text, goal=env.task.goal, interventions_left=None)
    runner = Runner(ApiSolver(brief, FactMemory(tmp_path), SkillConfig(asks_below=2.0)).solve())
    over = False
    while not over:
        action = runner.advance(str(observation["text"])).text()
        observation, _, ended, cut, info = env.step(action)
        over = ended or cut
    env.close()
    assert info["q_state"] == 1.0


def fields(timeline):
    """Yield every field that the answer rests on, with its rows' canonical values."""
    world = timeline.worlds[0]
    for place in world.needed:
        provider = world.provider(place[0])
        resource = provider.contract.resource(place[1])
        table = provider.table(place[1])
        for i, key in enumerate(table.columns):
            values = [row[i] for row in table.rows]
            yield provider, resource, resource.field(key), values


@pytest.mark.part(4)
@pytest.mark.parametrize("family", SUITE.card.families)
def test_units_show_in_totals_or_in_the_amounts_themselves(family):
    seen = 0
    for seed in range(60):
        timeline = drawn(family, 2, seed=seed, drift="single:api/silent_units")
        for provider, resource, field, values in fields(timeline):
            if field.kind != "money":
                continue
            lists = []
            if any(r.key == "control" for r in provider.contract.resources):
                lists = [row[0] for row in provider.table("control").rows]
            cents = any(value % 100 for value in values)
            other_vendors = {
                value
                for other, _, money, amounts in fields(timeline)
                if money.kind == "money" and other.key != provider.key
                for value in amounts
            }
            counterpart = len(set(values) & other_vendors) >= 2
            assert resource.key in lists or cents or counterpart, (seed, field.key)
            seen += 1
    assert seen >= 60


@pytest.mark.part(4)
@pytest.mark.parametrize("family", SUITE.card.families)
def test_a_renamed_choice_is_the_only_stranger_among_the_documented_ones(family):
    for seed in range(30):
        timeline = drawn(family, 1, seed=seed, drift="single:api/enum_rename")
        for provider, resource, field, values in fields(timeline):
            if not field.choices:
                continue
            documented = provider.documented.resource(resource.key).field(field.key)
            told = {choice.name for choice in documented.choices}
            served = {wire_format.to_wire(field, value) for value in values}
            strangers, silent = served - told, told - served
            if field.choices[0].name not in told:
                assert strangers == {field.choices[0].name}
                assert len(silent) == 1, (seed, field.key, silent)


@pytest.mark.parametrize("family", SUITE.card.families)
def test_a_bound_that_moved_no_longer_meets_the_next_row(family):
    for seed in range(20):
        timeline = drawn(family, 1, seed=seed, drift="single:api/date_bound")
        for _, resource, field, values in fields(timeline):
            if not field.bound or not field.shift:
                continue
            columns = {f.key: v for _, r, f, v in fields(timeline) if r is resource}
            [starts] = [
                columns[f.key] for f in resource.fields if f.kind == "date" and f is not field
            ]
            [flags] = [columns[f.key] for f in resource.fields if f.kind == "boolean"]
            shown = [str(wire_format.to_wire(field, value)) for value in values]
            assert meeting(values, flags, starts) > meeting(shown, flags, starts)


def meeting(ends, flags, starts):
    """Return how many rows end where another one begins."""
    days = [
        date.fromisoformat(end) + timedelta(days=int(flag))
        for end, flag in zip(ends, flags, strict=True)
    ]
    return sum(day.isoformat() in starts for day in days)


def test_the_goal_names_no_wire_name():
    """The solver had to read: no path, wrapper or pager stands in a goal."""
    for family, tier in CELLS:
        world = drawn(family, tier, seed=33).worlds[0]
        text = json.dumps(json.loads(world.goal.spec)["sources"])
        for place in world.needed:
            resource = world.provider(place[0]).contract.resource(place[1])
            assert resource.path not in text
            assert Path(resource.path).parts
