"""Propositions of a crew: knowable from what is served, not from what is told."""

from collections import defaultdict

import pytest

from owa_bench.agents.solvers.crew.view import CrewView
from owa_bench.drift import timeline as timelines
from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.claims import KINDS, holds
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.envs.multicrew.wording import document_text, goal_of, notice_text
from owa_bench.records.events import Belief, Resolution
from owa_bench.shells.calls import call_text
from tests.builders import crew_episodes as episodes

LAST = 10_000  # drift step: everything strikes


def truths(played):
    return {e.proposition: e.y for e in played.of(Resolution) if e.kind in KINDS}


@pytest.mark.parametrize("family", [*generate.FAMILIES, *generate.REAL])
@pytest.mark.parametrize("tier", generate.TIERS)
def test_who_reads_everything_knows_every_claim(family, tier):
    """A reader without privilege, of the documents and notices in force at the end."""
    for seed in range(3):
        for drift_step in (0, LAST):
            chosen = episodes.instance(family, tier, seed, drift_step)
            timeline = timelines.source("multicrew")(chosen)
            world = timeline.worlds[-1]
            view = CrewView(goal_of(timeline.worlds[0], "lead"))
            for document in world.documents:
                view.read(document_text(document))
            view.read("\n".join(f"Notice: {notice_text(n)}" for n in world.notices))
            beliefs = view.beliefs()
            for claim in world.claims:
                assert (beliefs[claim.name] > 0.5) == holds(world, claim), claim


@pytest.mark.parametrize("name", ["list_scheduler", "contract_net"])
def test_the_reference_agents_state_what_they_know_and_are_mostly_right(name):
    errors = []
    for family in generate.FAMILIES:
        for seed in range(2):
            chosen = episodes.instance(family, 3, seed)
            played = episodes.play(episodes.reference(name), chosen)
            stated = {e.proposition: e.p for e in played.of(Belief) if e.kind in KINDS}
            truth = truths(played)
            errors += [(p - truth[claim]) ** 2 for claim, p in stated.items()]
    assert len(errors) > 20
    assert sum(errors) / len(errors) < 0.1


def test_no_claim_states_a_value_and_no_table_of_what_is_told_knows_it():
    """Rates by everything that the goal tells of a claim, learnt on other seeds."""
    learnt, met = shares(range(30)), shares(range(1000, 1030))
    own = assumed = whole = 0.0
    for features, (true, count) in met.items():
        if features not in learnt:
            continue
        p = learnt[features][0] / learnt[features][1]
        own += count * p**2 + true * (1 - 2 * p)
        assumed += count * 0.25
        whole += count
    assert whole > 1000
    assert 1 - own / assumed <= 0.05


def shares(seeds):
    """Return true and all claims by kind, attribute, and whose item it is."""
    counts = defaultdict(lambda: [0, 0])
    for seed in seeds:
        for family in generate.FAMILIES:
            for tier in generate.TIERS:
                world = SUITE.generate(episodes.instance(family, tier, seed))
                doers = {item.name: item.role for item in world.items}
                for claim in world.claims:
                    clause = world.clause_of[claim.clause]
                    assert "-" not in clause.value or clause.value not in str(claim)
                    of_item = clause.subject in doers
                    same = doers.get(clause.subject) == claim.role
                    key = (claim.kind, tier, clause.attribute, of_item, same)
                    counts[key][0] += holds(world, claim)
                    counts[key][1] += 1
    return counts


def test_a_claim_that_a_notice_decides_has_its_deadline_then():
    found = 0
    for seed in range(40):
        chosen = episodes.instance("schedule", 1, seed, LAST)
        timeline = timelines.source("multicrew")(chosen)
        changed = {
            change.target.partition("/")[2]: start
            for start, changes in zip(timeline.starts, timeline.changes, strict=True)
            for change in changes
            if change.operator == "crew/criterion_changed"
        }
        claims = {claim.name: claim for claim in timeline.worlds[0].claims}
        for truth in SUITE.oracle.propositions(timeline):
            expected = changed.get(claims[truth.name].clause)
            if truth.kind != "in_force" or expected is None:
                assert truth.deadline_ms is None
            else:
                assert truth.deadline_ms == expected > 0
                found += 1
    assert found


def whose(contested, *, tier, strange=False, cap=None):
    """Return an env and a clause of it, strange to the lead if that is asked."""
    for seed in range(40):
        env, *_ = episodes.begun(episodes.instance("contract", tier, seed), cap=cap)
        for clause in env.timeline.worlds[0].clauses:
            fits = bool(clause.rival) == contested
            if fits and not (strange and "lead" in clause.sides):
                return env, clause
    raise AssertionError("no such clause")


def test_asking_the_rules_whether_a_clause_is_contested_is_no_cheaper_than_settling():
    """Else W could be had by refusals: one call a claim, and no document read."""
    spent, told = {}, {}
    for contested in (True, False):
        env, clause = whose(contested, tier=2, cap=1)
        env.step(call_text("arbitrate", {"name": clause.name}))
        spent[contested] = env.simulated_ms
        env, clause = whose(contested, tier=3, strange=True)
        call = call_text("propose", {"clause": clause.name, "value": "x"})
        text = env.step(call)[0]["text"]
        while clause.name not in text.split("\n")[0]:
            text = env.step(call_text("pass_turn", {}))[0]["text"]
        told[contested] = text.split("\n")[0].replace(clause.name, "it")
    assert spent[True] == spent[False] > 60_000
    assert told[True] == told[False] == "it is not yours to settle."


def test_every_kind_is_drawn_where_its_world_has_it():
    for tier in generate.TIERS:
        world = SUITE.generate(episodes.instance("contract", tier, 1))
        kinds = [claim.kind for claim in world.claims]
        assert kinds.count("in_force") == 2
        assert kinds.count("owner") == (2 if tier > 2 else 0)
        assert kinds.count("contested") == (2 if tier > 1 else 0)
