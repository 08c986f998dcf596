"""Ratings of open texts: which text, in whose order, and what two raters give."""

import json
from types import SimpleNamespace

import pytest

from owa_bench.errors import TraceError, UsageError
from owa_bench.records.people import RaterScores, Rubric
from owa_bench.reports.read import ratings
from owa_bench.reports.read.ratings import rated_items, rating_tables, ratings_of
from tests.builders.episodes import PROTOCOL

RUBRIC = Rubric(schema="owa-rubric-1", name="tone", question="?", scores={"0": "bad", "1": "good"})


def trace(*actions, attempt="000000.0", first=("task",)):
    """Return an episode of actions that began with these observations."""
    found = {
        "Action": [SimpleNamespace(action=action) for action in actions],
        "Observation": [SimpleNamespace(blob=blob) for blob in first],
    }
    return SimpleNamespace(
        leaf=SimpleNamespace(attempt_id=attempt), of=lambda kind: iter(found[kind.__name__])
    )


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ((), ""),
        (("{",), ""),
        (("[1]",), ""),
        ((call("look", answer="x"),), ""),
        ((call("finish", answer=" one "), call("finish", answer="two")), "two"),
        ((call("finish", answer=" one "), call("look"), "{"), "one"),
        ((call("finish", answer="one"), call("finish", other="two")), ""),
        ((call("finish", answer=3),), ""),
        (('{"tool": "finish", "arguments": "one"}',), ""),
    ],
)
def test_the_text_is_that_of_the_last_call_that_the_rubric_names(actions, text):
    assert ratings._text(trace(*actions), RUBRIC) == text


def run(*traces, **fields):
    whole = {"layout": SimpleNamespace(root="run"), "traces": lambda: iter(traces)}
    return SimpleNamespace(**(whole | fields))


@pytest.fixture
def transcripts(monkeypatch):
    def read(_self, blob):
        if blob == "gone":
            raise TraceError("gone")
        return blob.encode()

    made = type("Kept", (), {"__init__": lambda *_: None, "read": read})
    monkeypatch.setattr(ratings, "Transcripts", made)


def test_items_are_texts_in_an_order_of_the_raters_own(transcripts):
    traces = [
        trace(call("finish", answer=f"text {i}"), attempt=f"00000{i}.0", first=first)
        for i, first in enumerate([("task",), (), ("gone",), ("a", "b"), ("c",)])
    ]
    traces.append(trace(attempt="000009.0"))
    orders = {rater: rated_items(run(*traces), RUBRIC, rater) for rater in ("ann", "ben")}
    assert sorted(orders["ann"]) == sorted(orders["ben"])
    assert orders["ann"] != orders["ben"]
    assert {item.text: item.task for item in orders["ann"]} == {
        "text 0": "task",
        "text 1": "",
        "text 2": "",
        "text 3": "a",
        "text 4": "c",
    }
    with pytest.raises(UsageError, match="holds a text in `finish`"):
        rated_items(run(trace()), RUBRIC, "ann")


SCORES = {f"{i:06d}.0": i % 2 for i in range(6)}


def rated(rater, scores=SCORES, **fields):
    whole = {"rater": rater, "rubric": RUBRIC, "evidence_root": "root"}
    return RaterScores(**(whole | {"scores": scores} | fields))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a run with a function that sets its ratings."""
    kept = {}
    monkeypatch.setattr(ratings, "read_ratings", lambda _, name: kept[name])
    arms = [SimpleNamespace(name=name) for name in ("x", "y", "idle")]
    entries = [SimpleNamespace(arm="x" if i < 2 else "y") for i in range(6)]
    bundle = run(
        layout=SimpleNamespace(ratings=tmp_path),
        plan=SimpleNamespace(arms=arms, entries=entries),
        counting_leaves=[None, *(SimpleNamespace(attempt_id=name) for name in SCORES)],
        evidence_root="root",
        protocol=PROTOCOL,
    )

    def put(*found, names=()):
        for place, one in enumerate(found):
            name = names[place] if names else f"{one.rater}.dsse.json"
            (tmp_path / name).write_text("")
            kept[name] = one
        return bundle

    return put


def test_ratings_of_this_run_read_by_name(folder):
    assert ratings_of(folder()) == ()
    one, two = rated("ann"), rated("ben")
    assert ratings_of(folder(two, one)) == (one, two)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evidence_root": "other"}, "rates another run"),
        ({"scores": SCORES | {"000000.0": 7}}, "that its rubric does not have"),
        ({"scores": SCORES | {"000009.0": 1}}, "attempts that do not count"),
        ({"scores": {"000000.0": 1}}, "rates other items than"),
        (
            {"rubric": Rubric(schema="owa-rubric-1", name="n", question="?", scores=RUBRIC.scores)},
            "has another rubric than",
        ),
    ],
)
def test_ratings_that_do_not_fit_are_named(folder, changes, words):
    with pytest.raises(UsageError, match=words):
        ratings_of(folder(rated("ann"), rated("ben", **changes)))


def test_two_raters_each_with_a_file_of_their_own_name(folder):
    with pytest.raises(UsageError, match="must be named after its rater, ann"):
        ratings_of(folder(rated("ann"), names=("other.dsse.json",)))


def test_three_raters_are_too_many(folder):
    with pytest.raises(UsageError, match="two raters at most, got 3"):
        ratings_of(folder(rated("ann"), rated("ben"), rated("cat")))


def test_one_rater_alone_has_no_agreement(folder):
    (table,) = rating_tables(folder(rated("ann")))
    assert table.rows == (("ann",),)
    assert table.note.startswith("tone: one rater alone")
    assert PROTOCOL.norms.rater_alpha_min is not None


def test_raters_who_agree_give_scores_by_agent(folder):
    agreement, differences, scores = rating_tables(folder(rated("ann"), rated("ben")))
    assert [row[:2] for row in agreement.rows] == [
        ("Cohen's kappa", 1.0),
        ("Krippendorff's alpha", 1.0),
    ]
    assert {row[-1] for row in agreement.rows} == {6}
    assert agreement.note.endswith("reached")
    assert "not reached" not in agreement.note
    assert differences.rows == ()
    assert scores.rows == (("x", 2, 0.5), ("y", 4, 0.5))


def test_raters_who_do_not_agree_give_their_differences_alone(folder):
    other = {name: 1 - score for name, score in SCORES.items()}
    other["000001.0"] = 1
    found = rating_tables(folder(rated("ann"), rated("ben", other)))
    agreement, differences = found
    assert "not reached" in agreement.note
    assert differences.rows[0] == ("000000.0", 0, 1)
    assert len(differences.rows) == 5
    assert differences.columns == ("attempt", "ann", "ben")
