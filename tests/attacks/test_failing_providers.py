"""A submitter's model server that fails when an episode goes badly."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records.events import ModelCall, PlainQuestion, Resource
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement
from owa_bench.reports.read.bundle import read
from owa_bench.reports.read.outcomes import arm_outcomes
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from tests.field.server import error, page, serving, usual

PLAIN = "Say OK."
BUILDERS = Path(__file__).parents[1] / "builders"
FAILURES = {
    "402": lambda: error(402, "no credit"),
    "429": lambda: error(429, "rate limit reached"),
    "500": lambda: error(500, "broken"),
    "503": lambda: error(503, "overloaded"),
    "a page in 200": lambda: page("<h1>Sign in</h1>"),
    "an error in 200": lambda: JSONResponse({"error": {"message": "gone"}}),
    "an empty body": lambda: JSONResponse({}),
}


def is_plain(ask):
    return any(m.get("content") == PLAIN for m in ask.messages)


@pytest.fixture
def options(tmp_path):
    return RunOptions(home=tmp_path / "home", folder=BUILDERS)


@pytest.fixture
def lost(tmp_path, options):
    """Return a function that plays an agent at a server, and what became of it."""
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,))
    places = itertools.count()

    def play(answer):
        request = Request(agents=("odd_agents:AsksModel",), draws=(draw,))
        layout = RunLayout(tmp_path / f"run{next(places)}")
        with serving(answer) as (url, server):
            reach = GatewayOptions(model_url=f"{url}/v1")
            batch.play(request, layout.root, replace(options, gateway=reach))
        traces = [files.read_trace(layout, one) for one in files.read_leaves(layout)]
        (outcome,) = arm_outcomes(read(layout.root), {})
        return layout, traces, outcome.provider_failures, server

    return play


@pytest.mark.part(3)
@pytest.mark.parametrize("kind", FAILURES)
def test_a_server_that_fails_by_choice_is_counted_apart(lost, kind):
    def by_choice(ask):
        return usual(ask) if is_plain(ask) else FAILURES[kind]()

    _, traces, counted, _ = lost(by_choice)
    assert {trace.leaf.status for trace in traces} == {"provider"}
    assert (counted.attempts, counted.outages, counted.unconfirmed) == (2, 0, 2)
    for trace in traces:
        (question,) = trace.of(PlainQuestion)
        assert question.answered
        assert question.late_s < 60
    _, _, counted, _ = lost(lambda _: FAILURES[kind]())  # an outage: for all who ask
    assert (counted.attempts, counted.outages, counted.unconfirmed) == (2, 2, 0)


def test_without_the_plain_question_both_look_alike(lost, monkeypatch):
    """The control: the page could tell no failure by choice from an outage."""
    monkeypatch.setattr(AgentLauncher, "model_answers", lambda *_: False)

    def by_choice(ask):
        return usual(ask) if is_plain(ask) else error(500, "broken")

    _, _, counted, server = lost(by_choice)
    assert (counted.attempts, counted.outages) == (2, 2)
    assert not any(map(is_plain, server.asked))


def test_the_plain_question_tells_nothing_of_the_episode(lost):
    """It comes on a connection of its own, and holds no word of the episode."""
    others, plain = [], []

    def answer(ask):
        (plain if is_plain(ask) else others).append(ask)
        return error(500, "broken")

    lost(answer)
    assert len(plain) == 2
    for ask in plain:
        assert set(ask.body) == {"model", "messages"}
        assert not {name for name in ask.headers if "owa" in name}
    used = {ask.port for ask in others}
    assert not used & {ask.port for ask in plain}
    assert len({ask.port for ask in plain}) == len(plain)


def test_its_cost_falls_on_nobody(lost):
    def by_choice(ask):
        return usual(ask) if is_plain(ask) else error(500, "broken")

    _, traces, _, _ = lost(by_choice)
    for trace in traces:
        assert not [r for r in trace.of(Resource) if r.meter.startswith("tokens")]
        assert len(list(trace.of(ModelCall))) == 1


def test_a_question_that_comes_late_confirms_nothing(lost, monkeypatch):
    from owa_bench.reports.read import outcomes

    monkeypatch.setattr(outcomes, "SAME_MINUTE_S", -1.0)
    _, _, counted, _ = lost(lambda _: error(500, "broken"))
    assert (counted.outages, counted.unconfirmed) == (0, 2)


def test_page_one_counts_both(lost, options):
    def by_choice(ask):
        return usual(ask) if is_plain(ask) else error(500, "broken")

    layout, _, _, _ = lost(by_choice)
    statement.write(layout.root, keys.load(options.home, options.key))
    text = layout.page.read_text()
    assert "2 attempts of" in text
    assert "0 are outages that a plain question at the same minute confirmed" in text
    assert "2 are failures that it did not confirm" in text
