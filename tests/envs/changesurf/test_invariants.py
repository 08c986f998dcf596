"""What holds of every site, seed, magnitude and split, or the oracle proves nothing.

Each line of the list in the specification is one check here or one test named there:
aliases, lexicons and the split of words in test_generate.py, the oracle through the
browser in the control battery, bytes in other processes in test_walk.py.
"""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    SHARED_WORDS,
    TIERS,
    pools,
    sites,
)
from owa_bench.envs.changesurf.oracle import goal
from owa_bench.envs.changesurf.oracle.walk import walk
from owa_bench.envs.changesurf.server.app import field_refs, page_keys, value_refs
from owa_bench.envs.changesurf.server.forms import slots_on, steps
from owa_bench.envs.changesurf.server.page_model import aliases_of
from owa_bench.seeding import PRACTICE_BIT
from tests.builders import changesurf_worlds as worlds
from tests.builders import goal_questions
from tests.builders.slices import WHOLE

# Practice holds the public sites only; held-out words and operators never strike it.
SPLITS = st.one_of(
    st.tuples(st.sampled_from(FAMILIES), st.integers(PRACTICE_BIT, 2**63 - 1)),
    st.tuples(st.sampled_from((*FAMILIES, *HELD_OUT_FAMILIES)), st.integers(0, PRACTICE_BIT - 1)),
)
CASES = st.builds(
    lambda split, tier, delta: (worlds.instance(split[0], tier, split[1]), delta),
    SPLITS,
    st.sampled_from(TIERS),
    st.sampled_from((0.0, 0.1, 0.25, 0.5, 0.75, 1.0)),
)


# --- the plan -------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(case=CASES)
def test_every_required_slot_is_reached_once_however_the_flow_was_cut(case):
    [world] = worlds.drifted(*case).worlds
    for workflow in world.spec.workflows:
        for values in _branches(workflow, dict(world.spec.goal.values)):
            pages = [p for p in steps(world, workflow, values) if p.startswith("flow:")]
            reached = [
                slot.key
                for page in pages
                for slot in slots_on(world, workflow, int(page.partition("/")[2]), values)
            ]
            assert len(set(reached)) == len(reached)
            needed = {
                slot.key
                for slot in workflow.slots
                if slot.required and (slot.when is None or values.get(slot.when[0]) == slot.when[1])
            }
            assert needed <= set(reached)
            places = {key: i for i, key in enumerate(reached)}
            for later, first in workflow.after:
                assert places[first] < places[later]


def _branches(workflow, values):
    """Return what a visitor may have chosen at each branch of a workflow."""
    yield values
    for slot in workflow.slots:
        if slot.when is not None:
            deciding = workflow.slot(slot.when[0])
            for option in deciding.options:
                yield {**values, deciding.key: option.value}


@settings(max_examples=60, deadline=None)
@given(case=CASES)
def test_aliases_are_bijective_however_the_site_drifted(case):
    timeline = worlds.drifted(*case)
    [world] = timeline.worlds
    book = aliases_of(timeline.instance)
    for kind, refs in (
        ("route", page_keys(world, world.spec.tables)),
        ("field", field_refs(world.spec)),
        ("value", value_refs(world.spec, world.spec.tables)),
    ):
        assert sorted(book.codebook(kind, refs).values()) == sorted(set(refs))


@settings(max_examples=60, deadline=None)
@given(case=CASES)
def test_held_out_words_are_in_no_drifted_site_of_practice(case):
    of, delta = case
    of = msgspec.structs.replace(of, seed=of.seed | PRACTICE_BIT)
    if of.family in HELD_OUT_FAMILIES:
        return
    [world] = worlds.drifted(of, delta).worlds
    words = {**SHARED_WORDS, **sites()[world.spec.site].words}
    for label in world.plan.labels:
        known, held_out = pools(words[label.key])
        assert label.text in known
        assert not {label.text, *label.others} & set(held_out)


# --- visits ---------------------------------------------------------------------------


def pages_can_be_read(case, found):
    """Named controls with a role, told apart; no address outside the sandbox."""
    for sight in found.pages:
        worlds.readable(sight.html)


def pages_are_the_same_bytes(case, found):
    again = walk(worlds.drifted(*case))
    assert again.pages == found.pages
    assert again.state.tables == found.state.tables


def the_database_ends_equal(case, found):
    """Another look and other names end in the same rows."""
    of, delta = case
    other = worlds.walked(of, 1.0 - delta)
    named = worlds.walked(msgspec.structs.replace(of, repeat=1), delta)
    assert other.state.tables == found.state.tables == named.state.tables
    assert not {sight.html for sight in named.pages} & {sight.html for sight in found.pages}


def the_judge_is_right(case, found):
    assert goal_questions.faults(goal, found.state) == []


CHECKS = (
    *(pages_can_be_read, pages_are_the_same_bytes),
    *(the_database_ends_equal, the_judge_is_right),
)


def check(case):
    found = worlds.walked(*case)
    worlds.solved(found)
    for each in CHECKS:
        each(case, found)


@settings(max_examples=8, deadline=None)
@given(case=CASES)
def test_what_must_hold_of_a_visit_holds(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=300 if WHOLE else 40, deadline=None)
@given(case=CASES)
def test_what_must_hold_of_a_visit_holds_wherever_one_looks(case):
    check(case)
