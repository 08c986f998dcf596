"""Reading of passages: every kind of question on many worlds, nothing else."""

import pytest

from owa_bench.agents.solvers.recall.reading import read_passage, transfers_in
from owa_bench.envs.recall.generate import draw_world


@pytest.mark.parametrize("tier", [1, 2, 3, 4])
def test_every_question_of_literacy_is_answered_rightly(tier):
    kinds = set()
    for seed in range(10):
        for exercise in draw_world(seed, "literacy", tier, "A").exercises:
            said = read_passage(exercise.prompt, list(exercise.pages))
            assert said is not None, exercise.prompt
            key = list(exercise.key)
            assert (sorted(said), exercise.name) == (sorted(key), exercise.name)
            kinds.add(exercise.kind)
    assert kinds == {"extraction", "fidelity", "contradiction", "verification"}


def test_sentences_in_other_words_are_one_record():
    first = "On Monday Ann Lee gave the pim to Bo Day in Rath."
    second = "In Rath, Bo Day was given the pim by Ann Lee on Monday."
    assert transfers_in(first) == transfers_in(second)
    assert transfers_in(first) != transfers_in(second.replace("given", "sold"))


def test_what_is_no_question_on_a_passage_is_left():
    assert read_passage("Which word was third?", ["one", "two"]) is None
    assert read_passage("Claim: nothing of the kind.", [""]) is None
