"""Every kind of card judges letter case, quote marks and final stops alike."""

import msgspec
import pytest

from owa_bench.envs.recall.answers import comparable, is_key
from owa_bench.envs.recall.operators.exercises import format_change
from owa_bench.envs.recall.oracle import key_of, mark
from owa_bench.envs.recall.session import RecallSession
from owa_bench.envs.recall.state import RecallState, Script
from owa_bench.envs.recall.suite import SUITE
from owa_bench.envs.recall.world import Exercise
from owa_bench.seeding import stream
from tests.builders.recall_episodes import instance, timeline

VARIANTS = {
    "as it is": str,
    "lower": str.lower,
    "upper": str.upper,
    "double quotes": '"{}"'.format,
    "single quotes": "'{}'".format,
    "typographic double quotes": "\u201c{}\u201d".format,
    "typographic single quotes": "\u2018{}\u2019".format,
    "low quotes": "\u201e{}\u201c".format,
    "guillemets": "\u00ab{}\u00bb".format,
    "one quote mark": "{}'".format,
    "final stop": "{}.".format,
    "stop in quotes": "'{}.'".format,
    "stop after quotes": '"{}".'.format,
    "spaces": "  {}\t".format,
    "all of it": lambda text: f' "{text.upper()}". ',
}
WRONG = ("{}x", "x{}", "{}5", "-{}", ".{}", "{}?", "{}; {}", "no {}")
FORMS = ("plain", "capitals", "reversed")


def cards(form):
    """Return a card of every kind with its key: (kind, world, register, card, key)."""
    kinds = {}
    for family in SUITE.card.families:
        world = SUITE.generate(instance(family))
        world = msgspec.structs.replace(world, answer_form=form)
        state = RecallState(Script(world))
        for sitting in range(len(state.script.days)):
            for card in state.script.cards(sitting):
                if card.kind != "item":
                    continue
                it = card.question or card.exercise
                key = key_of(state, card)
                amount = key["values"][0].endswith(" pell")
                name = f"{family}/{it.kind}{'/amount' if amount else ''}"
                kinds.setdefault(name, (world, state.script.register, card, key))
    return kinds


CARDS = {form: cards(form) for form in FORMS}
KINDS = sorted(CARDS["plain"])


def test_every_kind_of_card_is_in_the_table():
    kinds = {name.split("/")[1] for name in KINDS}
    assert kinds == {
        *("recall", "retrieve", "assisted", "without", "spaced", "n_back"),
        *("running_span", "list_update", "dual_task", "operation_span"),
        *("concept", "composition", "tower", "order"),
        *("extraction", "fidelity", "contradiction", "verification"),
    }
    assert "learning/recall/amount" in KINDS
    assert all(sorted(CARDS[form]) == KINDS for form in FORMS)


def judged(form, kind, change):
    world, register, card, key = CARDS[form][kind]
    values = [change(value) for value in key["values"]]
    return mark(world, register, card, values, key.get("sources", ()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_case_quote_marks_and_stops_do_not_count(form, kind, variant):
    plain = judged(form, kind, str)
    marked = judged(form, kind, VARIANTS[variant])
    _, _, card, key = CARDS[form][kind]
    free = not (card.exercise and card.exercise.options) and "/amount" not in kind
    folds = any(value != value.lower() for value in key["values"])
    if form == "capitals" and variant == "lower" and free and folds:
        assert marked.score == 0  # the task asks for capitals, in every kind of card
        return
    assert marked.score == plain.score == 1
    assert marked.contrary == plain.contrary
    assert [right for _, right in marked.entries] == [r for _, r in plain.entries]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG)
def test_any_other_difference_is_wrong(form, kind, wrong):
    assert judged(form, kind, lambda value: wrong.format(value, value)).score == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_answer_or_marks_alone_are_wrong(kind):
    for text in ("", " ", ".", '""', "'.'"):
        assert judged("plain", kind, lambda _, text=text: text).score == 0
    world, register, card, _ = CARDS["plain"][kind]
    assert mark(world, register, card, [], []).score == 0


def test_a_value_counts_once_in_whatever_letter_case_or_marks():
    world, register, card, key = CARDS["plain"]["retrieval/retrieve"]
    value, source = key["values"][0], key["sources"][0]
    values = [value, value.upper(), f'"{value}"', f"{value}."]
    marked = mark(world, register, card, values, [source] * 4)
    assert [right for _, right in marked.entries] == [True, False, False, False]
    assert marked.score == pytest.approx(1 / 5 / 4)
    assert marked.contrary == 0


@pytest.mark.parametrize(
    ("answer", "key", "right"),
    [
        ("3.5", "3.5", True),
        ("3.5.", "3.5", True),
        ("35", "3.5", False),
        ("3.5", "35", False),
        ("24", "24 pell", True),
        ("24.", "24 pell", True),
        ("24 PELL", "24 pell", True),
        ("2.4", "24 pell", False),
        ("24 dor", "24 pell", False),
        ("etc.", "etc.", True),
        ("'quay'", "'quay'", True),
        ("o'quay", "o'quay", True),
        ("oquay", "o'quay", False),
        ("A>C", "a>c", True),
        ("A > C", "A>C", False),
        ("not stated.", "not stated", True),
        ("notstated", "not stated", False),
    ],
)
def test_numbers_and_marks_that_belong_to_a_value(answer, key, right):
    assert is_key(answer, key, "plain") is right


def test_what_is_compared_stays_the_same_when_compared_again():
    for text in ("24...", "'24.'.", ' "A. B." ', "3.5", "\u201eA\u201c"):
        assert comparable(comparable(text)) == comparable(text)


def test_amounts_in_capitals_are_right_however_they_are_written():
    assert is_key("24 PELL", "24 pell", "capitals")
    assert is_key("24 pell", "24 pell", "capitals")
    assert not is_key("brusk", "BRUSK", "capitals")


def test_a_drawn_format_change_is_one_of_the_forms_that_are_tested():
    world = SUITE.generate(instance("learning"))
    drawn = {
        format_change.apply(world, "answers", 1.0, rng=stream(s, "x")).answer_form
        for s in range(20)
    }
    assert drawn == {"capitals", "reversed"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_choice_of_pairs_reads_names_alike(variant):
    chosen = instance("spaced")
    session = RecallSession(timeline(chosen))
    while session.state.card.kind != "review":
        session.call("go_on", {}, now_ms=0, step=1)
    name = session.state.script.world.watched[0]
    values = [VARIANTS[variant](name)]
    session.call("answer", {"values": values}, now_ms=0, step=2)
    assert name in session.state.page
    assert session.state.seen == {name: session.state.day}


def test_options_keep_their_own_letter_case_in_the_exercise():
    exercise = Exercise(name="x", kind="x", prompt="", key=("b",), options=("a", "b"))
    world, register, card, _ = CARDS["capitals"]["literacy/fidelity"]
    card = card._replace(exercise=exercise)
    assert mark(world, register, card, ["B"], []).score == 1
    assert mark(world, register, card, ["b"], []).score == 1
    assert mark(world, register, card, ["a"], []).score == 0
