"""Worlds are pure data, and every promise of the generator holds over seeds."""

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    HONEYPOT_FAMILIES,
    SHARED_WORDS,
    TIERS,
    generate,
    pools,
    sites,
)
from owa_bench.envs.changesurf.oracle.oracle import is_true
from owa_bench.envs.changesurf.server.app import field_refs, page_keys, value_refs
from owa_bench.envs.changesurf.server.forms import slots_on, steps
from owa_bench.envs.changesurf.server.page_model import Aliases
from owa_bench.envs.changesurf.world import distance
from owa_bench.errors import InstanceError
from tests.builders import changesurf_worlds as worlds

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES, *HONEYPOT_FAMILIES)
cases = st.builds(
    worlds.world, st.sampled_from(EVERY), st.sampled_from(TIERS), st.integers(0, 10**6)
)
PRINT = """
from tests.builders import changesurf_worlds as worlds
from owa_bench.envs.changesurf.generate import FAMILIES
print(*[worlds.world(f, t, 7).digest() for f in FAMILIES for t in (1, 2, 3)])
"""


def test_every_site_has_an_extract_a_state_change_an_undo_and_an_infeasible_goal():
    for site in sites().values():
        assert len(site.goals) == 3
        assert f"{site.key}/{site.infeasible}-honeypot" in HONEYPOT_FAMILIES
        flows = {worlds.world(f"{site.key}/{g}").spec.goal.workflow for g in site.goals}
        assert len(flows) == 3
        assert "answer" in flows
    assert {name.partition("/")[0] for name in HELD_OUT_FAMILIES} == {"desk"}


def test_worlds_are_equal_in_another_process():
    runs = [
        subprocess.run(
            [sys.executable, "-c", PRINT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": "."},
        ).stdout
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0].split())) == len(FAMILIES) * 3


@pytest.mark.parametrize("family", [*FAMILIES, *HELD_OUT_FAMILIES])
def test_an_answer_is_the_sum_of_its_cells_or_as_often_as_the_goal_says(family):
    for seed in range(30):
        spec = worlds.world(family, 1 + seed % 3, seed).spec
        if spec.goal.workflow != "answer":
            continue
        total = 0
        for table, key, name in spec.goal.evidence:
            [row] = [row for row in spec.table(table).rows if row[0] == key]
            names = [column.key for column in spec.collection(table).columns]
            total += row[names.index(name)]
        answer = dict(spec.goal.values)["answer"]
        assert answer == total or f" {answer / total:g} " in spec.goal.text


@settings(max_examples=150, deadline=None)
@given(world=cases)
def test_a_goal_stands_on_what_the_site_has(world):
    goal = world.spec.goal
    workflow = world.spec.workflow(goal.workflow)
    values = dict(goal.values)
    for collection, key, column in goal.evidence:
        assert any(row[0] == key for row in world.spec.table(collection).rows)
        world.spec.collection(collection).column(column)
    for slot in workflow.slots:
        if slot.key in values and slot.options:
            assert values[slot.key] in {option.value for option in slot.options}
        if slot.kind == "date" and slot.key in values:
            # day and month must not be mistaken for each other unseen
            assert int(str(values[slot.key])[-2:]) > 12
    assert len(goal.arguments) <= 12
    assert all(name and text for name, text in goal.arguments)
    assert bool(goal.wanted) != world.spec.honeypot
    assert {is_true(world, p) for p in world.spec.propositions} <= {True, False}


@settings(max_examples=100, deadline=None)
@given(world=cases)
def test_every_slot_is_reached_once_on_the_sampled_path(world):
    goal = world.spec.goal
    workflow = world.spec.workflow(goal.workflow)
    values = dict(goal.values)
    path = steps(world, workflow, values)
    reached = [
        slot.key
        for page in path
        if page.startswith("flow:")
        for slot in slots_on(world, workflow, int(page.partition("/")[2]), values)
    ]
    assert len(set(reached)) == len(reached)
    assert set(values) <= set(reached)
    needed = {s.key for s in workflow.slots if s.required and s.when is None}
    assert needed <= set(reached)


@settings(max_examples=60, deadline=None)
@given(world=cases, seed=st.integers(0, 2**62), step=st.integers(0, 40))
def test_aliases_are_bijective_and_differ_between_attempts(world, seed, step):
    refs = {
        "route": page_keys(world, world.spec.tables),
        "field": field_refs(world.spec),
        "value": value_refs(world.spec, world.spec.tables),
    }
    here, again = Aliases(seed, step, 0, 0), Aliases(seed, step, 0, 0)
    others = [
        Aliases(seed, step + 1, 0, 0),
        Aliases(seed, step, 1, 0),
        Aliases(seed, step, 0, 1),
        Aliases(seed + 1, step, 0, 0),
    ]
    for kind, names in refs.items():
        book = here.codebook(kind, names)
        assert sorted(book.values()) == sorted(set(names))
        assert book == again.codebook(kind, names)
        for other in others:
            assert not set(book) & set(other.codebook(kind, names))


def test_no_goal_names_a_year_that_a_clock_could_know():
    for family in EVERY:
        spec = worlds.world(family, 3, 1).spec
        years = set(re.findall(r"\b(20\d\d)-", spec.goal.text))
        site = int(spec.today[:4])
        assert all(abs(int(year) - site) <= 1 for year in years)
    found = {worlds.world("stay/book", 1, s).spec.today[:4] for s in range(40)}
    assert len(found) > 10


@pytest.mark.parametrize("site", sorted(sites()))
def test_lexicons_are_disjoint(site):
    words = {**SHARED_WORDS, **sites()[site].words}
    for kind in ("slot", "menu", "act", "commit", "go", "column", "field"):
        seen: dict[str, str] = {}
        for key, text in words.items():
            if not key.startswith(f"{kind}:"):
                continue
            known, held_out = pools(text)
            assert len(known) >= 3
            assert len(held_out) >= 2
            for word in (*known, *held_out):
                assert seen.setdefault(word.lower(), key) == key, word
                assert word.isascii()
            assert not set(known) & set(held_out)


def test_held_out_words_are_in_no_practice_world():
    practice = (1 << 62) | 11
    for family in FAMILIES:
        made = generate(worlds.instance(family, 3, practice))
        words = {**SHARED_WORDS, **sites()[family.partition("/")[0]].words}
        for label in made.plan.labels:
            held_out = pools(words[label.key])[1]
            assert not {label.text, *label.others} & set(held_out)
    with pytest.raises(InstanceError, match="public site"):
        generate(worlds.instance("desk/file", 1, practice))


@pytest.mark.parametrize(
    ("change", "rule"), [({"family": "stay/fly"}, "family"), ({"tier": 4}, "tier")]
)
def test_what_changesurf_does_not_have_is_refused(change, rule):
    given_ = {"family": "stay/book", "tier": 1, **change}
    with pytest.raises(InstanceError, match=rule):
        generate(worlds.instance(**given_))


def test_distance_is_of_plans_alone():
    here = worlds.world("stay/book", 2, 3)
    assert distance(here, here) == 0.0
    near = here.with_plan(theme=here.plan.theme + 1)
    far = near.with_plan(nav="side", churn=4)
    assert 0 < distance(here, near) < distance(here, far) < 1
    assert distance(here, near) == distance(near, here)


def test_higher_tiers_ask_more():
    for site in sites().values():
        for goal in site.goals:
            sizes = [
                len(worlds.world(f"{site.key}/{goal}", tier).spec.tables[0].rows) for tier in TIERS
            ]
            assert sizes == sorted(sizes)
        flow = f"{site.key}/{site.goals[1]}"
        slots = [len(worlds.world(flow, tier).spec.goal.values) for tier in TIERS]
        assert slots[0] < slots[2]
