"""Families: forms, keys that are unique, registers that hide what they hold."""

from itertools import permutations, product

import pytest

from owa_bench.envs.recall import generate
from owa_bench.envs.recall.families.reasoning import RULES
from owa_bench.envs.recall.wording import SLOTS, claim_texts, notice_line
from owa_bench.envs.recall.world import Register
from owa_bench.shells.calls import REPLY_LIMIT


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_forms_have_one_structure_and_no_common_name(family):
    worlds = [generate.draw_world(4, family, 2, form) for form in "ABC"]

    def structure(world):
        notices = [(n.number, n.day, n.withdraws, n.style) for n in world.notices]
        asked = [(q.name, q.day, q.without) for q in world.questions]
        tasks = [(e.name, len(e.key), len(e.pages)) for e in world.exercises]
        return notices, asked, tasks

    assert structure(worlds[0]) == structure(worlds[1]) == structure(worlds[2])
    assert not set(worlds[0].watched) & set(worlds[1].watched)
    assert len({world.digest() for world in worlds}) == 3


def test_a_register_fits_no_prompt_and_its_keys_follow_from_its_rules():
    """A second reading of the rules: all that was said, from the last back."""
    for tier in generate.TIERS:
        world = generate.draw_world(5, "learning", tier, "B")
        text = "\n".join(notice_line(world, n) for n in world.notices)
        assert len(world.notices) >= 150
        assert len(text) > 2 * REPLY_LIMIT
        struck = {n.withdraws for n in world.notices}
        for question in world.questions:
            said = [
                n.value
                for n in world.notices
                if (n.subject, n.relation) == (question.subject, question.relation)
                and n.number not in struck
            ]
            assert said[-1] == Register(world).value(question)
        pairs = [(q.subject, q.relation) for q in world.questions if q.lag == 1]
        assert len(set(pairs)) == len(pairs) == 42


def test_claims_hold_by_the_rules_and_show_no_value():
    """The same second reading; withdrawn notices count for contradictions alone."""
    true = []
    for seed, tier in product(range(5), generate.TIERS):
        world = generate.draw_world(seed, "learning", tier, "A")
        struck = {n.withdraws for n in world.notices}
        assert len({(c.subject, c.relation) for c in world.claims}) == 4
        for claim in world.claims:
            said = [
                n
                for n in world.notices
                if (n.subject, n.relation) == (claim.subject, claim.relation)
            ]
            values = [n.value for n in said]
            last = [n.value for n in said if n.number not in struck][-1]
            holds = {
                "supersession": last != values[0],
                "contradiction": any(value != values[0] for value in values),
            }
            assert Register(world).truth(claim) == holds[claim.kind]
            text = claim_texts(world)[claim.name]
            assert not any(value in text for value in world.values[claim.relation])
            true.append(holds[claim.kind])
    assert 0.1 < sum(true) / len(true) < 0.45


def test_every_retrieval_has_at_least_as_many_entries_as_are_asked_for():
    for tier in generate.TIERS:
        world = generate.draw_world(6, "retrieval", tier, "A")
        register = Register(world)
        for q in world.questions:
            assert len(register.in_force(q.subject, q.relation, q.day)) >= SLOTS


def test_a_counterfactual_needs_the_notice_it_names():
    world = generate.draw_world(7, "counterfactual", 2, "A")
    register = Register(world)
    moved = [
        register.in_force(q.subject, q.relation, q.day)[-1].value != register.value(q)
        for q in world.questions
    ]
    assert moved == [int(q.name[1:]) % 3 != 2 for q in world.questions]


def test_rules_on_lists_differ_on_one_list():
    words = ("a", "b", "c", "d", "e")
    assert len({rule(words) for rule in RULES.values()}) == len(RULES)


@pytest.mark.parametrize("seed", range(4))
def test_an_order_is_the_only_one_that_its_statements_allow(seed):
    world = generate.draw_world(seed, "reasoning", 2, "A")
    for task in (e for e in world.exercises if e.kind == "order"):
        lines = task.pages[0].splitlines()
        rows = [row for row in permutations(task.key) if all(holds(s, row) for s in lines)]
        assert rows == [task.key]


def holds(statement, row):
    names = [word.strip(".") for word in statement.split() if word[0].isupper()]
    first, second = (row.index(name) for name in names)
    return first < second if "left" in statement else abs(first - second) > 1


@pytest.mark.parametrize("seed", range(3))
def test_a_tower_is_solved_in_the_fewest_moves(seed):
    world = generate.draw_world(seed, "reasoning", 1, "A")
    for task in (e for e in world.exercises if e.kind == "tower"):
        discs = task.pages[0].split("largest: ")[1].split(".")[0].split(", ")
        wanted = task.pages[0].split("Wanted: ")[1].rstrip(".").split(", ")
        goal = tuple("ABC".index(part[-1]) for part in wanted)
        ways = shortest((0,) * len(discs), goal)
        moves = tuple(tuple("ABC".index(peg) for peg in m.split(">")) for m in task.key)
        assert ways == [moves]


def shortest(start, goal):
    """Return every shortest way, by breadth-first search."""
    ways = {start: [()]}
    while goal not in ways:
        after = {}
        for state, found in ways.items():
            for disc, peg in enumerate(state):
                if peg in state[:disc]:
                    continue  # a smaller one lies on it
                for to in {0, 1, 2} - {peg} - set(state[:disc]):
                    moved = (*state[:disc], to, *state[disc + 1 :])
                    after.setdefault(moved, []).extend((*w, (peg, to)) for w in found)
        ways = after
    return ways[goal]
