"""A native suite in the loop: recorded, verified, replayed, resumed, reported."""

import io
import re

import numpy as np
import pytest

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import PlanError
from owa_bench.records.events import Action, Artifact, Belief, Drift
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import Transcripts
from owa_bench.reports import statement, verify
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.plan.trials import Trials
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from tests.builders.toy_native import LIMIT, NAME, register


@pytest.fixture(autouse=True)
def suite(monkeypatch):
    register(monkeypatch, discovery)


def request_of(*agents, deltas=(0.0, 1.0), episodes=2):
    draw = Draw(name=NAME, deltas=deltas, episodes=episodes)
    return Request(agents=agents or ("toy_native:Leaning",), draws=(draw,))


def traces(layout):
    return [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]


def test_rewards_sum_to_quality_and_drift_is_told(played):
    found = traces(played(request_of()))
    assert len(found) == 4
    for trace in found:
        actions = list(trace.of(Action))
        assert sum(a.reward for a in actions) == pytest.approx(trace.end.q_state)
        assert trace.end.quality == trace.end.q_state
        assert trace.end.steps == len(actions)
        assert trace.end.simulated_s == pytest.approx(0.02 * len(actions))
        assert bool(list(trace.of(Drift))) == (trace.start.delta == 1.0)
        assert [b.p for b in trace.of(Belief)] == [0.25] * len(actions)
    assert {trace.end.outcome for trace in found} <= {"finished", "truncated"}
    assert max(trace.end.q_state for trace in found) == 1.0


def test_the_array_of_an_episode_is_what_its_steps_digest(played):
    layout = played(request_of(episodes=1, deltas=(0.0,)))
    (trace,) = traces(layout)
    (kept,) = trace.of(Artifact)
    seen = np.load(io.BytesIO(Transcripts(layout).read(kept.blob)))
    assert (seen.dtype, seen.shape) == (np.float32, (trace.end.steps + 1, 4))
    digests = [sha256(row.tobytes()) for row in seen[1:]]
    assert digests == [action.observation for action in trace.of(Action)]


def test_what_is_no_action_costs_a_step_and_is_told(played):
    (trace,) = traces(played(request_of("toy_native:Stray")))[:1]
    errors = [action.error for action in trace.of(Action)]
    assert errors[:4] == ["an action is a number of 0..1"] * 4
    assert errors[4:] == [None] * (len(errors) - 4)
    assert trace.end.failed_attempts == 4


def test_a_registered_agent_of_tool_suites_is_refused(played):
    for agent in ("noop", "agentic"):  # agentic adds the arm alone
        with pytest.raises(PlanError, match=rf"no tools to call, got '{agent}'"):
            played(request_of(agent))


def test_an_agent_of_tool_suites_fails_by_its_own_fault(played):
    (trace,) = traces(played(request_of("odd_agents:Quiet", episodes=1, deltas=(0.0,))))
    assert trace.end.outcome == "finished"  # its call is a text, which is no number
    assert trace.end.failed_attempts == trace.end.steps


def test_the_agents_own_process_changes_nothing(played):
    here = played(request_of(), "here")
    apart = played(request_of(), "apart", in_process=False)
    for one, other in zip(traces(here), traces(apart), strict=True):
        assert one.start.instance.seed != other.start.instance.seed  # other masters
        assert one.start.world == other.start.world
        assert other.end.outcome in {"finished", "truncated"}


def test_a_run_verifies_replays_and_recomputes(played, run_options):
    layout = played(request_of())
    escrow.reveal(run_options.home, layout)
    assert replay.replay_run(layout).passed
    statement.write(layout.root, keys.load(run_options.home))
    assert all(check.ok for check in verify.verify(layout.root))
    assert all(check.ok for check in verify.recompute(layout.root))


def test_replay_sees_another_world(played, run_options, monkeypatch):
    layout = played(request_of(deltas=(1.0,)))
    escrow.reveal(run_options.home, layout)
    operator = discovery.get("operators", "toy/stronger")
    kept = operator.apply

    def weaker(world, target, intensity, *, rng):
        stronger = kept(world, target, intensity, rng=rng)
        return type(world)(force=stronger.force + 1e-3)

    monkeypatch.setattr(operator, "apply", weaker)
    assert not replay.replay_run(layout).passed


def test_a_stopped_run_goes_on(tmp_path, run_options):
    request = request_of(episodes=3)

    class Enough(Exception):
        pass

    seen = []

    def stop(news):
        seen.append(news)
        if len(seen) == 2:
            raise Enough

    halting = RunOptions(
        home=run_options.home, folder=run_options.folder, in_process=True, progress=stop
    )
    with pytest.raises(Enough):
        batch.play(request, tmp_path / "run", halting)
    summary = batch.resume(tmp_path / "run", run_options)
    assert (summary.complete, summary.missing) == (6, 0)
    attempts = [leaf.attempt_id for leaf in files.read_leaves(RunLayout(summary.root))]
    assert len(attempts) == len(set(attempts)) == 6


def test_the_report_shows_performance_and_no_axis(played, run_options):
    draw = Draw(name=NAME, deltas=(1.0,), episodes=6)
    trials = Trials(draw=draw, count=2, before=(2, 3))
    agents = ("toy_native:Leaning", "toy_native:Stray")
    layout = played(Request(agents=agents, trials=trials))
    judgement = statement.write(layout.root, keys.load(run_options.home))
    for verdict in judgement.verdicts:
        assert verdict.level is None
        assert "outside the AAI battery" in verdict.level_text
        assert verdict.axes == verdict.gates == verdict.indices == ()
        titles = [table.title for table in verdict.tables]
        assert titles == ["performance by level", "novelty (SAIL-ON)"]
        assert (verdict.counted, verdict.infrastructure) == (12, 0)
        levels = {(row[0], row[2]) for row in verdict.tables[0].rows}
        assert levels == {(f"{NAME}/one", 0.0), (f"{NAME}/one", 1.0)}
        names = [curve.name for curve in verdict.curves]
        assert names == ["performance around the novelty"]
        assert verdict.curves[0].x[0] < 0.0 <= verdict.curves[0].x[-1]
    page = layout.page.read_text()
    assert "outside the AAI battery" in page
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert [c for c in captions if c.startswith("Performance around the novelty")]
    assert 'aria-label="performance around the novelty"' in page


def test_the_limit_of_the_plan_cuts(played):
    from owa_bench.records.plan import Budget

    request = request_of(episodes=1, deltas=(0.0,))
    cut = Request(agents=request.agents, draws=request.draws, budget=Budget(steps=3))
    (trace,) = traces(played(cut))
    assert (trace.end.steps, trace.end.reason) == (3, "budget:steps")
    assert trace.end.q_state == pytest.approx(3 / LIMIT)
