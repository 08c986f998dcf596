"""A client in one thread, the loop in another, no protocol between them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from owa_bench.bridges.client_calls import ALL_PLAYED, TOO_LATE, ClientCalls, ClientRun
from owa_bench.errors import UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from tests.bridges.scripts import scripts_of

END = {"answer": "nothing", "p": 0.1}


def request(families=("reconcile", "sla_report"), **changes):
    draw = Draw(name="toolquest", families=families, tiers=(1,), deltas=(0.0,))
    return Request(agents=("client:tester",), draws=(draw,), **changes)


class Loop(ClientRun):
    """The run of a client's calls, and how its episodes ended."""

    def __init__(self, calls, out, home, asked=None):
        self.layout, self.home = RunLayout(out), home
        super().__init__(calls, asked, out, RunOptions(home=home))

    def ends(self):
        self.join(60)
        assert not self.is_alive()
        leaves = files.read_leaves(self.layout)
        return {
            leaf.index: files.read_trace(self.layout, leaf).end
            for leaf in leaves
            if leaf.status == "complete"
        }


@pytest.fixture
def begin(tmp_path):
    """Return a function that begins a run; a calls with an open episode, its loop."""

    def started(asked):
        calls = ClientCalls()
        loop = Loop(calls, tmp_path / "run", tmp_path / "home", asked)
        loop.start()
        assert calls.wait_open(60)
        return calls, loop

    return started


def test_a_client_plays_one_episode_after_the_other(begin):
    calls, loop = begin(request())
    scripts = scripts_of(loop.layout, loop.home)
    first = calls.brief.text
    answers = []
    for script in scripts:
        for step in script:
            answers.append(calls.call(step["tool"], step["arguments"]))
    ends = loop.ends()
    assert [end.q_state for end in ends.values()] == [1.0, 1.0]
    handed_over = answers[len(scripts[0]) - 1].text
    assert handed_over.startswith("The episode has ended. The next one begins.")
    assert calls.brief.text in handed_over
    assert calls.brief.text != first
    assert "q_state" not in handed_over, "the next episode could profit of it"
    assert answers[-1].text.endswith(
        f"{ALL_PLAYED}\nreconcile: finished, success, q_state 1.000 (finished)\n"
        "sla_report: finished, success, q_state 1.000 (finished)"
    )
    assert not any(answer.error for answer in answers)
    after = calls.call("vault", {})
    assert (after.error, after.ended) == (True, True)


def test_a_malformed_call_is_a_step_and_an_error(begin):
    calls, loop = begin(request(("reconcile",)))
    assert calls.call("fly", {}).error
    assert calls.call("vault", {"name": 3}).error
    assert not calls.call("vault", None).error
    calls.call("finish", END)
    (end,) = loop.ends().values()
    assert (end.outcome, end.steps, end.failed_attempts) == ("finished", 4, 2)


def test_the_brief_is_read_by_a_tool_and_is_no_step(begin):
    calls, loop = begin(request(("reconcile",)))
    first = calls.offered[0]
    assert first.name == "brief"
    assert len(first.about) <= 1024, "chat endpoints refuse longer descriptions"
    assert calls.brief.text[:500] in first.about
    told = calls.call("brief", {})
    assert not told.error
    assert calls.brief.text in told.text
    assert all(name in told.text for name in calls.brief.propositions)
    calls.call("finish", END)
    (end,) = loop.ends().values()
    assert end.steps == 1


def test_an_episode_that_is_given_up_has_failed_and_the_next_one_begins(begin):
    calls, loop = begin(request())
    calls.give_up(calls.begun)  # before its first call
    calls.call("vault", {})
    calls.give_up(1)  # has ended already
    assert calls.is_open(2)
    calls.give_up(2)
    ends = loop.ends()
    assert [end.outcome for end in ends.values()] == ["agent_raised", "agent_raised"]
    assert [end.steps for end in ends.values()] == [0, 1]


def test_a_client_that_leaves_in_mid_episode_has_failed_it(begin):
    calls, loop = begin(request())
    calls.call("vault", {})
    calls.disconnect()
    (end,) = loop.ends().values()
    assert (end.outcome, end.steps) == ("agent_raised", 1)
    assert "client left" in end.reason
    assert loop.summary().complete == 1


def test_what_was_not_begun_can_be_played_later(begin):
    calls, loop = begin(request(("reconcile",)))
    calls.disconnect()
    assert loop.ends() == {}
    calls, loop = begin(None)
    calls.call("finish", END)
    (end,) = loop.ends().values()
    assert end.outcome == "finished"
    statuses = [leaf.status for leaf in files.read_leaves(loop.layout)]
    assert statuses == ["unfinished", "complete"]


def test_a_client_too_slow_hears_of_it_before_it_plays_on(begin):
    calls, loop = begin(request(budget=Budget(act_s=1.0)))
    calls.call("vault", {})
    slow = calls.brief.text
    while calls.brief.text == slow:
        threading.Event().wait(0.02)
    late = calls.call("vault", {})
    assert late.error
    assert late.text.startswith(TOO_LATE)
    calls.call("finish", END)
    ends = loop.ends()
    assert [end.outcome for end in ends.values()] == ["agent_timeout", "finished"]
    assert ends[1].steps == 1


def test_calls_at_once_are_played_one_after_the_other(begin):
    calls, loop = begin(request(("reconcile",)))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: calls.call("vault", {}), range(4)))
    assert len({answer.text for answer in answers}) == 1
    calls.call("finish", END)
    (end,) = loop.ends().values()
    assert end.steps == 5


def test_a_client_cannot_be_run_without_a_transport(tmp_path):
    with pytest.raises(UsageError, match="owa-bench serve"):
        batch.play(request(), tmp_path / "run", RunOptions(home=tmp_path / "home"))
