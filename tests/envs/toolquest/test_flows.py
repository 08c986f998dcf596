"""Edges of the DAG are flows: what a node served decides the next, and is no guess."""

from collections import Counter, defaultdict

import pytest

from owa_bench.envs.toolquest import families, goal, tool_calls, wire_format
from owa_bench.envs.toolquest.backend import instance_key, token_value
from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.task_spec import draw_task
from owa_bench.records.events import Subgoal
from owa_bench.scoring.observe.observables import solved_depth
from owa_bench.seeding import stream
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import ListSink
from tests.builders.api_worlds import drawn

GUESSED = 0.05  # most that a guess without the prerequisite may be right
SEEDS = range(150)
# A few yes-or-no draws: guessed in about one of eight. No plan is deeper by its edge.
WEAK = {"rows:ledger/periods"}


def product(world, seed, before):
    """Return what a right request takes from a node, by kind of the node."""
    kind, _, rest = before.partition(":")
    vendor, _, resource = rest.partition("/")
    if kind == "registry":
        return tuple(sorted(p.host for p in world.providers if not p.distractor))
    provider = world.provider(vendor)
    if kind == "docs":
        auth = provider.contract.auth
        needed = [r for v, r in world.needed if v == vendor]
        paths = [provider.contract.resource(key).path for key in needed]
        return (*paths, auth.kind, auth.name)
    if kind == "key":
        return tool_calls.working_secret(provider)
    if kind == "token":
        return token_value(instance_key(seed), vendor, 0)
    if kind == "page":
        size = provider.contract.resource(resource).pager.size
        return wire_format.make_cursor(size, rest, instance_key(seed))
    return provider.table(resource).rows


@pytest.mark.part(8)
@pytest.mark.parametrize("family", SUITE.card.families)
@pytest.mark.parametrize("tier", [1, 3])
def test_what_a_node_served_is_guessed_in_one_of_twenty_at_most(family, tier):
    """A guess is the value that other instances of family and tier have most often."""
    seen = defaultdict(list)
    for seed in SEEDS:
        world = drawn(family, tier, seed=seed).worlds[0]
        for node in SUITE.oracle.subgoals(world):
            for before in node.prerequisites:
                seen[before].append((seed, product(world, seed, before)))
    assert {name.partition(":")[0] for name in seen} >= {"docs", "key", "rows"}
    for name, found in seen.items():
        if name in WEAK:
            continue
        values = dict(found)  # a node that several need is one product a seed
        counts = Counter(values.values())
        hits = 0
        for value in values.values():
            others = counts - Counter([value])
            top = max(others.values(), default=0)
            likely = [v for v, n in others.items() if n == top]
            hits += (value in likely) / max(len(likely), 1)
        assert hits / len(values) <= GUESSED, (name, hits, len(values))


def test_no_plan_is_deeper_by_an_edge_that_may_be_guessed():
    for tier in SUITE.card.tiers:
        for seed in range(20):
            world = drawn("reconcile", tier, seed=seed).worlds[0]
            nodes, depths = SUITE.oracle.subgoals(world), {}
            for node in nodes:
                before = [depths[n] for n in node.prerequisites if n not in WEAK]
                depths[node.name] = 1 + max(before, default=0)
            assert max(depths.values()) == max(node.depth for node in nodes)


@pytest.mark.parametrize("family", SUITE.card.families)
def test_a_source_drawn_anew_makes_another_answer(family):
    declared = families.FAMILIES[family]
    for tier in (2, 3):
        tasks = []
        for seed in (5, 6):
            rng = stream(seed, "flows", family, tier)
            tasks.append(draw_task(declared, IntegerDraws(rng), tier))
        task, other = tasks
        sources, redrawn = goal.needed_rows(task), goal.needed_rows(other)
        answer = families.solve(family, sources, task.rule)
        assert answer.rows
        for source in sources:
            others = (redrawn[source], shuffled(sources[source]), [])
            answers = [solved(family, {**sources, source: rows}, task.rule) for rows in others]
            assert any(found != answer for found in answers), source


def shuffled(rows):
    """Return rows whose last value was given to the next row."""
    names = [list(row)[-1] for row in rows]
    last = [row[name] for row, name in zip(rows, names, strict=True)]
    moved = zip(rows, names, [*last[1:], *last[:1]], strict=True)
    return [{**row, name: value} for row, name, value in moved]


def solved(family, sources, rule):
    """Return the answer, None where the rule cannot be carried out with these rows."""
    try:
        return families.solve(family, sources, rule)
    except (KeyError, StopIteration, ValueError):
        return None


def test_a_right_artefact_without_its_rows_has_no_flow_behind_it():
    timeline, sink = drawn("reconcile", 1, seed=4), ListSink()
    world = timeline.worlds[0]
    answer = {
        "name": "answer",
        "columns": list(world.expected_columns),
        "rows": [list(row) for row in world.expected_rows],
    }
    episode = Episode(SUITE, timeline, sink=sink, terms=EpisodeTerms())
    episode.step(call_text("write_artifact", answer))
    episode.close()
    solved = [event for event in sink.events if isinstance(event, Subgoal)]
    assert [(event.node, event.flows) for event in solved] == [("artifact", ())]
    assert solved_depth(solved) == 1
