"""A provider that dies in the middle of a run, and is well again later."""

import json
import shutil
import time

import pytest
from markupsafe import escape
from starlette.responses import JSONResponse, Response

from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.reports.read.bundle import read
from owa_bench.reports.read.outcomes import arm_outcomes
from owa_bench.runs import assembly, replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.resolve import Resolver
from owa_bench.runs.store import files, keys
from owa_bench.seeding import instance_seed
from tests.field.server import Ask, completion, error, page, serving

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
MODEL = "language-model:model=stub,retries=0,name=model"


def _slow(_: Ask) -> Response:
    time.sleep(5)
    return JSONResponse({})


DEATHS = {
    "401": lambda _: error(401, "key revoked"),
    "402": lambda _: error(402, "no credit"),
    "403": lambda _: error(403, "not for you"),
    "404": lambda _: error(404, "no such model"),
    "429": lambda _: error(429, "rate limit reached"),
    "a sign-in page in 200": lambda _: page("<h1>Sign in</h1>"),
    "an error in 200": lambda _: JSONResponse({"error": {"message": "gone"}}),
    "slow": _slow,
}


class Model:
    """Plays the oracle's scripts; `dead` answers in its place after some requests."""

    def __init__(self, scripts):
        self.scripts = scripts
        self.dead = None
        self.left = 0

    def __call__(self, ask: Ask):
        if self.dead is not None:
            if self.left <= 0:
                return self.dead(ask)
            self.left -= 1
        goal = ask.messages[1]["content"].split("JSON:\n")[1].split("\n\n")[0]
        step = self.scripts[json.loads(goal)["family"]][ask.turn]
        if step["tool"] == "finish":
            step["arguments"] = {"answer": "done", "p": 0.9}
        function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
        call = {"id": f"c{ask.turn}", "type": "function", "function": function}
        return completion({"content": None, "tool_calls": [call]})


@pytest.fixture
def planned(tmp_path):
    """A signed plan of six families for a model and a script, and the scripts."""
    families = _families(6)
    draw = Draw(name="toolquest", families=families, tiers=(1,), deltas=(0.0,), interventions=(0,))
    request = Request(agents=(MODEL, "noop"), draws=(draw,), sandbox="none")
    home, layout = tmp_path / "home", RunLayout(tmp_path / "plan")
    batch.play(request, layout.root, RunOptions(home=home), plan_only=True)
    plan = read_plan(layout)
    root = escrow.find(home, plan.commitment).master
    scripts = {}
    for entry in plan.entries:
        seed = instance_seed(root, entry.pair)
        instance = Resolver(plan)(entry, seed).instance
        actions = assembly.script(instance.suite, instance)
        scripts[entry.family] = [json.loads(action) for action in actions]
    return layout, home, scripts


def _families(count):
    from owa_bench import discovery

    return tuple(discovery.get("suites", "toolquest").card.families)[:count]


def figures(layout, home):
    """Return what a report says, but for seconds and what they cost."""
    judged = statement.write(layout.root, keys.load(home, "default"))
    assert [check for check in verify.verify(layout.root) if not check.ok] == []
    verdicts = []
    for verdict in judged.verdicts:
        axes = {a.symbol: (a.value, a.reason) for a in verdict.axes if a.symbol != "$"}
        verdicts.append((verdict.arm, verdict.counted, verdict.episodes, axes))
    outcomes = [
        (o.arm, o.planned, o.counted, o.successes, o.success, o.missing, kinds_of(o))
        for o in outcomes_of(layout)
    ]
    return verdicts, outcomes


def kinds_of(outcome):
    return [(kind.kind, kind.episodes) for kind in outcome.kinds]


def outcomes_of(layout):
    return arm_outcomes(read(layout.root), {})


@pytest.mark.slow
@pytest.mark.part(2)
@pytest.mark.parametrize("death", DEATHS)
def test_nothing_is_lost(death, planned, tmp_path):
    layout, home, scripts = planned
    model = Model(scripts)
    well, faulty = RunLayout(tmp_path / "well"), RunLayout(tmp_path / "faulty")
    for copy in (well, faulty):
        shutil.copytree(layout.root, copy.root)
    with serving(model) as (url, _):
        # One that answers in time needs far less than an act.
        gateway = GatewayOptions(model_url=f"{url}/v1")
        run = RunOptions(home=home, gateway=gateway, in_process=False)
        assert batch.resume(well.root, run).missing == 0
        expected = figures(well, home)

        model.dead, model.left = DEATHS[death], len(next(iter(scripts.values()))) + 1
        summary = batch.resume(faulty.root, run)
        assert_no_zero_that_was_not_earned(faulty, summary)
        statement.write(faulty.root, None)
        page_one = faulty.page.read_text()
        [outcome] = [o for o in outcomes_of(faulty) if o.arm == "model"]
        assert outcome.missing == summary.missing >= 3
        assert "are missing, because its model" in page_one
        assert str(escape(outcome.missing_reason)) in page_one
        assert outcome.counted == outcome.successes

        model.dead = None
        assert batch.resume(faulty.root, run).missing == 0
    assert figures(faulty, home) == expected
    escrow.reveal(home, faulty)
    assert replay.replay_run(faulty).passed


def assert_no_zero_that_was_not_earned(layout, summary):
    """The model's arm stops after three failures; the other arm plays on."""
    plan = read_plan(layout)
    leaves = files.read_leaves(layout)
    assert set(summary.stopped) == {"model"}
    assert summary.missing_through_provider == 3
    arms = {entry.index: entry.arm for entry in plan.entries}
    complete = [leaf for leaf in leaves if leaf.status == "complete"]
    assert sum(arms[leaf.index] == "noop" for leaf in complete) == 6
    for leaf in complete:
        end = files.read_trace(layout, leaf).end
        assert end.success or arms[leaf.index] == "noop"
