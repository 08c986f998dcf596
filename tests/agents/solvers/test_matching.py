"""Phrases find the texts that share their words."""

from owa_bench.agents.solvers import documents


def test_the_nearest_text_wins() -> None:
    texts = {"a": "Day of the booking.", "b": "Amount of the booking.", "c": "Code."}
    assert documents.best("the booking's amount", texts) == "b"
    assert documents.best("weather", texts) is None
    assert documents.best("booking", texts, least=0.9) is None


def test_words_of_wire_names_are_split() -> None:
    assert documents.words("unitPrice_cents") == {"unit", "price", "cent"}


def test_each_option_is_assigned_once() -> None:
    scores = {("a", "x"): 3.0, ("a", "y"): 1.0, ("b", "x"): 2.9, ("b", "y"): 0.5}
    assert documents.assign(scores, ["a", "b"]) == {"a": "x", "b": "y"}
    assert documents.assign(scores, ["b"]) == {"b": "x"}
