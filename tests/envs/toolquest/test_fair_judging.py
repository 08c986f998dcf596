"""A right answer in another form is accepted, or refused with a word at the time."""

import json
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.shells.calls import call_text
from tests.builders.api_worlds import Caller, drawn


def posts(hint):
    """Return whether a hint is to write at a vendor (not to ask for a token)."""
    arguments = hint["arguments"]
    return arguments.get("method") == "POST" and "grant_type" not in str(arguments)


class Solved:
    """An episode whose rows were all fetched by the oracle; the answer is left."""

    def __init__(self, family, seed=4, tier=1):
        self.timeline = drawn(family, tier, seed)
        self.env = SUITE.env(lambda _: self.timeline).unwrapped
        self.env.reset(options={"instance": self.timeline.instance})
        access = self.env.oracle_access()
        while True:
            hint = access.oracle.hint(*access.observe())
            if hint["tool"] in ("write_artifact", "finish") or posts(hint):
                self.answer = hint["arguments"]
                break
            self.env.step(call_text(hint["tool"], hint["arguments"]))

    def call(self, tool, **arguments):
        """Return the text of a tool's answer, and what the env says beside it."""
        observation, _, ended, _, info = self.env.step(call_text(tool, arguments))
        return str(observation["text"]), {**info, "ended": ended}

    def end(self):
        """Return q_state of the answer as it stands."""
        _, info = self.call("finish", answer="")
        return info["q_state"]


def numbers_as_text(answer):
    rows = [[str(cell) for cell in row] for row in answer["rows"]]
    return {**answer, "rows": rows}


def numbers_with_decimals(answer):
    rows = [[f"{cell}.00" if type(cell) is int else cell for cell in row] for row in answer["rows"]]
    return {**answer, "rows": rows}


def column_case(answer):
    return {**answer, "columns": [f" {name.title()}" for name in answer["columns"]]}


def notes_column(answer):
    rows = [["seen", *row] for row in answer["rows"]]
    return {**answer, "columns": ["Notes", *answer["columns"]], "rows": rows}


def other_order(answer):
    rows = [row[::-1] for row in answer["rows"]]
    return {**answer, "columns": answer["columns"][::-1], "rows": rows}


READS = ("currency_rollup", "deduplicate", "entitlement_audit", "incident_timeline",
         "reconcile", "sla_report")  # fmt: skip
FORMS = (numbers_as_text, numbers_with_decimals, column_case, notes_column, other_order)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", READS)
def test_a_right_answer_in_another_form_is_right(family, form):
    episode = Solved(family)
    text, _ = episode.call("write_artifact", **form(episode.answer))
    assert "error" not in json.loads(text)
    if form is notes_column:
        assert json.loads(text)["not_judged"] == ["Notes"]
    assert episode.end() == 1.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Z", "+00:00"),
        ("Z", ":00Z"),
        ("Z", ":00.000Z"),
        ("T", " "),
        ("Z", "+02:00"),
        ("Z", "-05:30"),
    ],
)
def test_forms_of_one_instant_are_equal(old, new):
    episode = Solved("incident_timeline")
    place = episode.answer["columns"].index("at")
    ahead = {"+02:00": 120, "-05:30": -330}.get(new, 0)
    for row in episode.answer["rows"]:
        at = datetime.fromisoformat(row[place][:-1]) + timedelta(minutes=ahead)
        row[place] = f"{at:%Y-%m-%dT%H:%M}Z".replace(old, new)
    episode.call("write_artifact", **episode.answer)
    assert episode.end() == 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: {**a, "columns": ["x", *a["columns"][1:]]}, "lacks"),
        (lambda a: {**a, "columns": [a["columns"][1], *a["columns"][1:]]}, "lacks"),
        (
            lambda a: {
                **a,
                "columns": [*a["columns"], a["columns"][0].upper()],
                "rows": [[*row, row[0]] for row in a["rows"]],
            },
            "twice",
        ),
        (
            lambda a: {**a, "rows": [[*row[:-1], "about 12"] for row in a["rows"]]},
            "must be a number",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_in_words(change, words):
    episode = Solved("reconcile")
    text, _ = episode.call("write_artifact", **change(episode.answer))
    assert words in json.loads(text)["error"]
    episode.call("write_artifact", **episode.answer)  # and can be corrected
    assert episode.end() == 1.0


def test_a_time_without_an_offset_is_refused_in_words():
    episode = Solved("incident_timeline")
    place = episode.answer["columns"].index("at")
    for row in episode.answer["rows"]:
        row[place] = row[place].removesuffix("Z")
    text, _ = episode.call("write_artifact", **episode.answer)
    assert "must be a time with its offset" in json.loads(text)["error"]


def test_a_scratch_artefact_never_replaces_the_answer_and_says_so():
    episode = Solved("reconcile")
    episode.call("write_artifact", **episode.answer)
    scratch = {"name": "draft", "columns": ["a"], "rows": [[1]]}
    text, _ = episode.call("write_artifact", **scratch)
    assert "only the artifact named `answer`" in json.loads(text)["judged"]
    assert episode.end() == 1.0


def test_an_answer_in_finish_alone_is_refused_once_with_the_way():
    episode = Solved("reconcile")
    written = json.dumps({"rows": episode.answer["rows"]})
    text, info = episode.call("finish", answer=written, p=0.9)
    assert "write_artifact" in text
    assert not info["ended"]
    episode.call("write_artifact", **episode.answer)
    assert episode.end() == 1.0
    again = Solved("reconcile")
    again.call("finish", answer=written)
    _, info = again.call("finish", answer=written)
    assert info["ended"]
    assert info["q_state"] == 0.0


def test_an_artefact_of_a_goal_that_writes_says_what_is_judged():
    episode = Solved("restock")
    scratch = {"name": "answer", "columns": ["a"], "rows": [[1]]}
    text, _ = episode.call("write_artifact", **scratch)
    assert "posted" in json.loads(text)["judged"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("drift", ["single:api/flake@1", "nested:D0+D2"])
def test_who_waits_as_retry_after_says_is_served(drift, seed):
    timeline = drawn("restock", 3, seed, drift)
    caller = Caller(timeline)
    world = timeline.worlds[0]
    waited = 0
    for vendor, source in world.needed:
        provider = world.provider(vendor)
        url = f"https://{provider.host}{provider.contract.resource(source).path}"
        for _ in range(40):
            got = caller.http(url)  # no credential: a 401 is a service too
            if got["status"] in (429, 503):
                caller.now_ms += 1000 * seconds(got["headers"])
                waited += 1
                assert caller.http(url)["status"] not in (429, 503)
    assert waited >= 3


def seconds(headers):
    """Return what Retry-After asks for, a number or a date after Date."""
    after = headers["retry-after"]
    if after.isdigit():
        return int(after)
    gap = parsedate_to_datetime(after) - parsedate_to_datetime(headers["date"])
    return int(gap.total_seconds())


def test_an_answer_to_a_task_that_cannot_be_done_is_taken_and_worth_nothing():
    timeline = drawn("reconcile-honeypot", 1, 4)
    env = SUITE.env(lambda _: timeline).unwrapped
    env.reset(options={"instance": timeline.instance})
    columns = list(timeline.worlds[0].expected_columns)
    answer = {"name": "answer", "columns": columns, "rows": [["GL1", "INV-1", 2]]}
    observation, *_ = env.step(call_text("write_artifact", answer))
    assert json.loads(str(observation["text"])) == {"artifact": "answer", "rows": 1}
    *_, info = env.step(call_text("finish", {"answer": ""}))
    assert info["q_state"] == 0.0


def test_a_belief_about_a_listed_collection_that_is_not_there_is_taken():
    timeline = drawn("reconcile-honeypot", 1, 4)
    env = SUITE.env(lambda _: timeline).unwrapped
    env.reset(options={"instance": timeline.instance})
    known = {truth.name for truth in SUITE.oracle.propositions(timeline)}
    assert set(env.task.propositions) - known
    held = dict.fromkeys(env.task.propositions, 0.5)
    *_, ended, _, _ = env.step(call_text("declare_infeasible", {"beliefs": held}))
    assert ended
