"""The whole judging half over hand-made runs."""

import subprocess
import sys
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from owa_bench.records.plan import HARNESS, Arm
from owa_bench.records.score import AgentVerdict, Judgement
from owa_bench.records.trace import Trace
from owa_bench.scoring import pipeline
from owa_bench.scoring.axes.self_revision import GATED
from owa_bench.scoring.gate import LevelPlacement
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.verdict import reading
from tests.builders import attempt_sets
from tests.builders.attempt_sets import campaign_evidence
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of, with_help
from tests.builders.verdicts import verdict

GRID = PROTOCOL.drift.magnitudes


def battery(
    *, arm: str = "agent", tasks: int = 20, skill: float = 1.0, repeats: int = 1
) -> list[Trace]:
    """Return an admissible battery; tasks above `skill` of them fail under drift."""
    traces = []
    for family in ("reconcile", "restock"):
        for k in range(tasks):
            for delta in GRID:
                for repeat in range(repeats):
                    won = delta == 0 or k < skill * tasks
                    traces.append(
                        episode(
                            index=len(traces),
                            arm=arm,
                            family=family,
                            pair=f"{family}{k}",
                            delta=delta,
                            repeat=repeat,
                            q_state=1.0 if won else 0.0,
                            stated=1.0 if won else 0.0,
                            solved=6 if won else 3,
                        )
                    )
    return with_help(traces)


def judged(traces: list[Trace], root: str = ROOT, **changes: object) -> Judgement:
    plan = msgspec.structs.replace(plan_of(traces), **changes)
    return judge(plan, traces, PROTOCOL, PRICES, evidence_root="e", replay_root=root)


def only(traces: list[Trace], **changes: object) -> AgentVerdict:
    return judged(traces, **changes).verdicts[0]


def test_it_is_a_pure_function_and_survives_json() -> None:
    traces = battery(skill=0.6)
    first, second = judged(traces), judged(traces)
    assert first == second
    again = msgspec.json.decode(msgspec.json.encode(first), type=Judgement)
    assert msgspec.json.encode(again) == msgspec.json.encode(first)


def test_arms_that_are_controls_are_not_judged() -> None:
    names = ("agent", "agent (frozen)", "agent (placebo)", "agent (baseline)")
    traces = [episode(index=index, arm=arm, pair="p") for index, arm in enumerate(names)]
    found = [verdict.arm for verdict in judged(traces).verdicts]
    assert found == ["agent", "agent (frozen)"]


def test_order_of_the_traces_does_not_matter() -> None:
    traces = battery(skill=0.6, tasks=20)
    plan = plan_of(traces)
    one, two = (
        judge(plan, order, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
        for order in (traces, traces[::-1])
    )
    assert one == two


def test_intervals_do_not_depend_on_the_replay_root() -> None:
    one, two = (judged(battery(skill=0.6), root) for root in (ROOT, "f" * 64))
    assert one.verdicts[0].axes == two.verdicts[0].axes


def test_a_good_agent_is_placed_and_named() -> None:
    found = only(battery(skill=0.9))
    assert (found.level, found.level_text) == (1, "AAI-1")
    assert [axis.symbol for axis in found.axes] == list("AGPMTRSEW$")
    missing = {axis.symbol for axis in found.axes if axis.value is None}
    assert missing == {"M", "R", "S", "E", "W"}
    assert all(axis.reason for axis in found.axes if axis.value is None)
    assert found.indices[0].missing == ("M", "R", "S", "W")


def test_fixed_automation_is_level_zero() -> None:
    found = only(battery(skill=0.0))
    assert found.level == 0
    assert "G" in found.level_text


def test_a_run_without_a_battery_gets_no_level_but_its_gates() -> None:
    found = only(battery(skill=0.9), battery=None)
    assert found.level is None
    assert "no battery" in found.level_text
    assert found.gates


def test_an_inadmissible_battery_gets_no_level_and_says_why() -> None:
    found = only(battery(skill=0.9, tasks=5))
    assert found.level is None
    assert "(b)" in found.inadmissible[0]


def test_no_episode_at_all_is_said_not_scored() -> None:
    traces = battery(tasks=1)
    plan = plan_of(traces)
    found = judge(plan, [], PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    agent = found.verdicts[0]
    assert agent.level is None
    assert (agent.counted, agent.infrastructure) == (0, len(traces))
    assert {axis.reason for axis in agent.axes if axis.symbol in "AGPTW$"} == {"no counted episode"}
    assert agent.frontier.reason == "no counted episode"


def test_one_task_has_axes_but_no_interval() -> None:
    axis = only([episode()]).axes[2]
    assert axis.value == 1.0
    assert axis.tasks_like_these.low is None
    assert axis.tasks_like_these.reason == "a family holds one task"
    assert axis.same_tasks.reason == "a task was played with one repeat"


def test_repeats_give_the_second_interval() -> None:
    rng = np.random.default_rng(0)
    traces = [
        episode(
            index=i * 4 + r,
            pair=f"p{i}",
            repeat=r,
            q_state=float(rng.random() < 0.5),
            verified=int(rng.integers(0, 8)),
        )
        for i in range(12)
        for r in range(4)
    ]
    axis = only(with_help(traces)).axes[0]
    assert axis.same_tasks.low is not None
    assert axis.same_tasks.method == (
        "same tasks, new seeds: jackknife over 48 repeats, 36 degrees of freedom"
    )
    assert axis.tasks_like_these.method == (
        "tasks like these: jackknife over 12 tasks, 11 degrees of freedom"
    )


def test_infrastructure_failures_are_counted_not_scored() -> None:
    traces = battery(skill=1.0)
    index = traces[3].start.index
    traces[3] = episode(
        index=index,
        family="reconcile",
        pair=traces[3].start.pair,
        delta=traces[3].start.delta,
        q_state=0.0,
        outcome="infrastructure",
    )
    found = only(traces)
    assert found.infrastructure == 1
    assert found.axes[0].value == 1.0


def test_honeypots_count_in_no_axis() -> None:
    traces = battery(skill=1.0)
    pot = episode(index=len(traces), pair="pot", family="pot", honeypot=True, q_state=0.0)
    found = only([*traces, pot])
    assert found.axes[0].value == 1.0
    assert found.axes[1].value == 1.0
    assert "infeasible tasks" in {table.title for table in found.tables}


def test_practice_is_never_scored() -> None:
    traces = battery(skill=1.0)
    drill = episode(index=len(traces), pair="drill", phase="practice", q_state=0.0, verified=0)
    assert only([*traces, drill]).axes[0].value == 1.0


def test_violations_stand_in_the_verdict_by_attempt() -> None:
    traces = battery(skill=1.0)
    traces[0] = episode(
        index=0, family="reconcile", pair="reconcile0", violations=(("hidden_link", "disqualify"),)
    )
    found = only(traces)
    assert found.violations == ("000000.0: hidden_link (disqualify): seen",)
    assert any("disqualified" in warning for warning in found.warnings)
    assert found.axes[2].value < 1.0


def test_two_arms_are_judged_apart_on_the_same_weights() -> None:
    good, bad = battery(skill=0.8), battery(arm="other", skill=0.8)
    moved = [
        Trace(
            msgspec.structs.replace(t.leaf, attempt_id=f"{len(good) + i:06d}.0"),
            (msgspec.structs.replace(t.start, index=len(good) + i), *t.events[1:]),
        )
        for i, t in enumerate(bad)
    ]
    one, two = judged([*good, *moved]).verdicts
    assert one.arm == "agent"
    assert two.arm == "other"
    assert one.axes[4].tasks_like_these == two.axes[4].tasks_like_these


def test_curves_and_tables_are_there() -> None:
    found = only(battery(skill=0.5))
    names = [curve.name for curve in found.curves]
    assert names == [
        "success by drift magnitude",
        "quality by drift magnitude",
        "calibration of own-success forecasts",
    ]
    curve = found.curves[0]
    assert curve.x == GRID
    assert curve.y == (1.0, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert curve.used == (40,) * 6
    titles = {table.title for table in found.tables}
    assert {"by family", "by tier", "by magnitude", "by drift class"} <= titles


def test_closures_say_why_they_are_not_tested() -> None:
    maintenance, expansion = only(battery()).closures
    assert maintenance.status == expansion.status == "NOT TESTED"
    assert "0 consecutive days" in maintenance.reason
    assert "no tool family" in expansion.reason


@pytest.mark.parametrize(("realised", "count"), [(0.0, 1), (0.5, 0)])
def test_drift_that_was_asked_for_and_never_came_is_warned_of(realised, count) -> None:
    """Of two episodes with a magnitude, one at most drifted; a third asked for none."""
    deltas = ((0.0, 0.0), (0.5, 0.0), (0.5, realised))
    traces = [
        episode(index=i, pair=f"p{i}", delta=delta, realised=amount)
        for i, (delta, amount) in enumerate(deltas)
    ]
    words = [w for w in only(traces).warnings if w.startswith("nothing drifted")]
    assert len(words) == count
    assert all("2 episodes" in w for w in words)


def test_a_small_family_warns_with_what_it_can_tell() -> None:
    found = only(battery(tasks=12, skill=0.5))
    assert any("12 tasks, fewer than 20" in warning for warning in found.warnings)
    assert any("are one finding there, not three" in warning for warning in found.warnings)


def test_no_number_of_a_judgement_is_nan() -> None:
    text = msgspec.json.encode(judged(battery(skill=0.3)))
    assert b"NaN" not in text
    assert b"Infinity" not in text


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"gymnasium", "torch", "playwright", "pybullet",
                                  "stable_baselines3", "starlette", "httpx"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import owa_bench.scoring.pipeline
from owa_bench.discovery import find
assert find("axes") and find("gates")
held = [m for m in sys.modules if m.startswith(("owa_bench.runs", "owa_bench.shells",
        "owa_bench.envs", "owa_bench.agents", "owa_bench.drift", "gymnasium"))]
assert not held, held
"""


def test_scoring_imports_without_the_acting_half() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.part(4)
@pytest.mark.slow
def test_axis_intervals_cover_at_the_stated_rate() -> None:
    """Tasks drawn anew each round: the interval of a success rate covers its mean."""
    rng = np.random.default_rng(4)
    hits, rounds = 0, 300
    for k in range(rounds):
        traces = [
            episode(index=i, pair=f"p{i}", q_state=float(rng.random() < 0.5)) for i in range(40)
        ]
        axes = judged(with_help(traces), sha(k)).verdicts[0].axes
        band = axes[0].tasks_like_these
        hits += bool(band.low <= 0.5 <= band.high)
    assert 0.92 <= hits / rounds <= 0.98


def sha(number: int) -> str:
    return f"{number:064x}"


def test_controls_that_do_not_fit_take_every_level() -> None:
    own = msgspec.structs.replace(
        verdict([episode()]), level=2, level_text="AAI-2", provisional=True
    )
    context = SimpleNamespace(plan=SimpleNamespace(battery="b"), protocol=PROTOCOL)
    (kept,) = pipeline._with_controls(context, (own,))
    assert (kept.level, kept.level_text, kept.provisional) == (2, "AAI-2", True)
    assert kept.inadmissible == own.inadmissible
    assert kept.warnings[-1].endswith("oracle and noop did not play")
    poor = [msgspec.structs.replace(axis, value=0.5) for axis in own.axes]
    oracle = msgspec.structs.replace(own, agent="oracle", axes=tuple(poor))
    both = pipeline._with_controls(context, (own, oracle))
    for found in both:
        assert (found.level, found.provisional) == (None, False)
        assert "must read 1 on A" in found.inadmissible[-1]
        assert found.warnings[-1].endswith(": noop did not play")
    context.plan.battery = None
    assert pipeline._with_controls(context, (own, oracle)) == (own, oracle)


def test_cut_points_stand_with_every_arm_that_has_a_score() -> None:
    own = verdict([episode()])
    able = msgspec.structs.replace(own, level=1)
    first, second, third = pipeline._with_cut_points([(able, 0.75), (own, 0.5), (able, None)])
    (table,) = first.tables[len(own.tables) :]
    assert table.rows == (("AAI-1", 0.75, 1),)
    assert second.tables[-1] == table
    assert third.tables == own.tables
    (alone,) = pipeline._with_cut_points([(own, 0.5)])
    assert alone == own


def campaign(trace: Trace) -> CampaignEvidence:
    """Return a campaign inside an episode; only that of `agent` has a gain."""
    arm, pair = trace.start.arm, trace.start.pair
    gain = PROTOCOL.revision.full_gain / 2 if arm == "agent" else 0.0
    return campaign_evidence(arm, pair, gain)


def test_each_arm_has_the_campaigns_of_its_own_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "read_campaign", campaign)
    traces = [
        episode(index=i, arm=arm, pair=pair, suite="selfrev", family="memory")
        for i, (arm, pair) in enumerate((a, p) for a in ("agent", "other") for p in ("p", "q", "r"))
    ]
    values = {
        verdict.arm: {axis.symbol: axis.value for axis in verdict.axes}["R"]
        for verdict in judged(traces, battery=None).verdicts
    }
    assert values == {"agent": pytest.approx(0.5), "other": 0.0}


@pytest.mark.parametrize("instances", [8, 2])
def test_both_sources_of_r_are_read_and_the_gate_takes_the_declared_one(
    monkeypatch: pytest.MonkeyPatch, instances: int
) -> None:
    """The fault: in a plan with attempt sets SelfRev gave no R."""
    monkeypatch.setattr(
        pipeline, "read_campaign", lambda t: campaign(t) if t.start.pair[0] == "s" else None
    )
    practised = [
        *attempt_sets.practice(3),
        *(episode(index=900 + day, pair="c", day=day, phase="checkpoint") for day in range(3)),
        *attempt_sets.sets(),
    ]
    given = [
        episode(index=5000 + k, pair=f"s{k % instances}", suite="selfrev", family="memory")
        for k in range(24)
    ]
    found = judged([*practised, *given]).verdicts[0]
    alone = {axis.symbol: axis for axis in judged(practised).verdicts[0].axes}["R"]
    axis = {axis.symbol: axis for axis in found.axes}["R"]
    assert axis.value == pytest.approx(0.5)
    assert axis.details["source"] == "R of a given subject (SelfRev)"
    assert axis.details["beside"][GATED]["value"] == pytest.approx(0.5)
    beside = axis.details["beside"]["R of practice"]
    assert beside["value"] == alone.value == pytest.approx(0.9 * 0.2 / 0.25, abs=1e-3)
    assert beside["lower"] == alone.lower
    assert len(axis.details["revisions, R of practice"]) == 1
    assert alone.details["source"] == "R of practice"
    assert "R of practice" not in alone.details["beside"]
    line = next(gate for gate in found.gates if gate.gate == "R")
    assert (line.measured, line.status) == ("0.500", "PASS" if instances == 8 else "NO EVIDENCE")
    assert line.reason.startswith("R of a given subject" if instances == 8 else "R rests on 2")


def test_a_plan_that_names_axes_has_a_dynamic_index_over_them() -> None:
    plan = plan_of([episode()])
    assert reading.with_dynamics(PROTOCOL, plan) is PROTOCOL
    named = msgspec.structs.replace(plan, dynamics=("A", "G"))
    found = reading.with_dynamics(PROTOCOL, named).index
    kept = {s for s in found.weights if s not in found.dynamic_without}
    assert kept == {"A", "G"} - set(PROTOCOL.index.dynamic_without)
    assert len(set(found.dynamic_without)) == len(found.dynamic_without)


@pytest.mark.parametrize(
    ("battery", "faults", "own_terms", "underpowered", "level", "text"),
    [
        (None, ("f",), "x", True, None, "no battery that gives a level was played"),
        ("b", ("f",), "", False, None, "the battery is not admissible"),
        ("b", (), "x", False, None, "(own terms: x); by them AAI-"),
        ("b", (), "", True, None, "AAI-1 (under-powered"),
        ("b", (), "", False, 1, "AAI-1"),
    ],
)
def test_a_level_needs_a_battery_without_faults_on_published_terms(
    monkeypatch: pytest.MonkeyPatch,
    battery: str | None,
    faults: tuple[str, ...],
    own_terms: str,
    underpowered: bool,
    level: int | None,
    text: str,
) -> None:
    placed = LevelPlacement(1, "AAI-1", False, ())
    monkeypatch.setattr(pipeline.gate, "place", lambda *_, **__: placed)
    monkeypatch.setattr(pipeline.gate, "is_fixed_automation", lambda *_: False)
    plan = SimpleNamespace(battery=battery, underpowered=underpowered)
    context = SimpleNamespace(plan=plan, faults=faults, own_terms=own_terms, protocol=PROTOCOL)
    arm = Arm(name="a", agent="a", fingerprint="", hosting="sandboxed")
    judged = (context, arm, (), SimpleNamespace(axes={}))
    found = pipeline._placement(*judged)  # type: ignore[arg-type]
    assert found.level == level
    assert text in found.text


def test_a_control_policy_has_no_level_and_its_learner_keeps_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack: the suite's own oracle as an arm; the control: not by the harness."""
    placed = LevelPlacement(1, "AAI-1", False, ())
    monkeypatch.setattr(pipeline.gate, "place", lambda *_, **__: placed)
    monkeypatch.setattr(pipeline.gate, "is_fixed_automation", lambda *_: False)
    plan = SimpleNamespace(battery="b", underpowered=False)
    context = SimpleNamespace(plan=plan, faults=(), own_terms="", protocol=PROTOCOL)
    arm = Arm(name="our-model", agent="policy:oracle", fingerprint="", hosting=HARNESS)
    levels = {}
    for hosting in (HARNESS, "sandboxed"):
        one = msgspec.structs.replace(arm, hosting=hosting)
        judged = (context, one, (), SimpleNamespace(axes={}))
        levels[hosting] = pipeline._placement(*judged).level  # type: ignore[arg-type]
    assert levels == {HARNESS: None, "sandboxed": 1}
