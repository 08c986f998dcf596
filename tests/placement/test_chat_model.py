"""A chat model of drawn skill behind a server: placed in USD, killed, resumed."""

import json
from dataclasses import replace

import pytest

from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.placement import place
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import look_path, signed_looks
from owa_bench.reports import verify
from owa_bench.runs import assembly
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.resolve import Resolver
from owa_bench.runs.store import keys
from owa_bench.seeding import instance_seed
from tests.builders import placements
from tests.builders.stub_server import completion, serving

pytestmark = pytest.mark.slow


class DrawnModel:
    """A model that knows the way through its episodes and takes it in a share of them.

    It tells episodes apart by their order: one worker plays a batch in the order of the plan.
    """

    def __init__(self, layout, home, skill):
        self._layout, self._home, self._skill = layout, home, skill
        self._episodes = 0
        self._script = []

    def __call__(self, messages):
        """Answer the next request of a conversation."""
        place = sum(message["role"] == "assistant" for message in messages)
        if place == 0:
            self._script = self._next_script()
        step = self._script[min(place, len(self._script) - 1)]
        if step["tool"] == "finish":
            step = {"tool": "finish", "arguments": {"answer": "done", "p": 0.9}}
        return completion((step["tool"], step["arguments"]))

    def _next_script(self):
        plan = read_plan(self._layout)
        order = [i for one in signed_looks(self._layout) for i in sorted(one.look.batch)]
        index = order[self._episodes]
        self._episodes += 1
        if (index * 0.618) % 1 >= self._skill:
            return [{"tool": "finish", "arguments": {}}]
        entry = plan.entries[index]
        root = escrow.find(self._home, plan.commitment).master
        resolved = Resolver(plan)(entry, instance_seed(root, entry.pair))
        timeline = resolved.source(resolved.instance)
        return [json.loads(action) for action in assembly.solution(entry.suite, timeline).actions]


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A signed pool and the model that is to play it; yields (folder, options, model).

    The worlds are the same in every run: what an episode costs follows from its world, and the
    budget is held against what the next batch is expected to cost.
    """
    monkeypatch.setattr(escrow, "fresh_bytes", lambda: b"the same in every test run")
    home, out = tmp_path / "home", tmp_path / "run"
    keys.keygen(home)
    model = DrawnModel(RunLayout(out), home, 0.95)
    with serving(model) as url:
        run_options = RunOptions(home=home, gateway=GatewayOptions(model_url=url))
        request = Request(
            agents=("language-model:model=stub,retries=0",),
            battery=placements.pool_file(tmp_path, placements.QUICK),
            sandbox="none",
        )
        yield request, out, run_options, model


def test_a_budget_in_usd_stops_it_and_a_larger_one_goes_on(served):
    request, out, run_options, _ = served
    looks = []
    made = place.place(request, out, run_options, PlacementLimits(usd=0.5), looks.append)
    assert looks[-1].stop == "the budget of 0.5 USD"
    assert 0 < looks[-1].usd <= 0.5
    assert any("the rule would go on" in warning for warning in made.verdicts[0].warnings)
    kept = [look_path(RunLayout(out), n).read_bytes() for n in range(len(looks))]
    more = []
    place.go_on(out, run_options, PlacementLimits(episodes=20), more.append)
    assert more[-1].state.number > looks[-1].state.number
    assert [look_path(RunLayout(out), n).read_bytes() for n in range(len(looks))] == kept


def test_a_model_behind_a_server_is_named_by_its_date(served):
    request, out, run_options, _ = served
    looks = []
    made = place.place(request, out, run_options, PlacementLimits(), looks.append)
    assert looks[-1].stop == "AAI-1"
    (verdict,) = made.verdicts
    assert verdict.level is None
    assert "AAI-1 as served on" in verdict.level_text
    assert all(check.ok for check in verify.verify(out))
    assert all(check.ok for check in verify.recompute(out))


def test_a_kill_between_acts_costs_the_episode_and_no_look(served):
    """The cut-off episode counts 0: a kill when an episode goes badly buys nothing."""
    request, out, run_options, _ = served

    class Killed(KeyboardInterrupt):
        pass

    def kill(news):
        if news.done == 8:
            raise Killed

    told = replace(run_options, progress=kill)
    with pytest.raises(Killed):
        place.place(request, out, told, PlacementLimits(), lambda news: None)
    before = [look_path(RunLayout(out), n).read_bytes() for n in range(2)]
    looks = []
    place.go_on(out, run_options, PlacementLimits(episodes=14), looks.append)
    assert [look_path(RunLayout(out), n).read_bytes() for n in range(2)] == before
    assert all(check.ok for check in verify.verify(out))
