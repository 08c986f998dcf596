"""The first screen says how episodes ended, and why those that broke did."""

import shutil
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from benchmarks.report_pages import CRASHING
from owa_bench.reports import statement
from owa_bench.reports.read import bundle as bundles
from owa_bench.reports.read.outcomes import (
    MISSING,
    NO_BUDGET,
    NOT_PLAYED,
    PROVIDER,
    STOPPED,
    OutcomeCount,
    _CountedEpisode,
    _Ending,
    _ending,
    _of_arm,
    arm_outcomes,
)
from owa_bench.reports.read.success import pooled_terms
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics.task_means import mean_over_tasks
from tests.builders import run_directory
from tests.builders.episodes import episode


@pytest.fixture(scope="module")
def half_crashed(tmp_path_factory):
    """Return a run of which about half the episodes crashed."""
    folder = tmp_path_factory.mktemp("crashed")
    (folder / "crashing.py").write_text(CRASHING)
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), episodes=8)
    request = Request(agents=("crashing.py",), draws=(draw,))
    options = RunOptions(home=folder / "home", folder=folder, in_process=True)
    batch.play(request, folder / "run", options)
    return folder


def outcomes(run):
    (found,) = arm_outcomes(bundles.read(run), {"crashing": 4000})
    return found


def test_every_planned_episode_is_counted_once_with_the_first_error(half_crashed):
    found = outcomes(half_crashed / "run")
    assert sum(kind.episodes for kind in found.kinds) == found.planned == 8
    crashed = next(kind for kind in found.kinds if kind.kind == "crashed")
    assert 0 < crashed.episodes < 8
    assert "no field `choices`" in crashed.reason
    assert crashed.first
    assert found.alarming
    assert found.broken_share == crashed.episodes / 8
    assert found.cost_micro_usd is None  # no success


def test_helped_episodes_are_counted_as_the_columns_of_scoring_have_them(tmp_path):
    layout = run_directory.make_run(tmp_path / "run")
    bundle = bundles.read(layout.root)
    (found, *_) = arm_outcomes(bundle, {})
    table = observe(bundle.traces(), bundle.prices)
    mine = table.helped[table.arm == found.arm]
    assert found.helped == (mine > 0).sum() > 0


def test_what_was_not_played_is_said(half_crashed, tmp_path):
    run = tmp_path / "cut"
    shutil.copytree(half_crashed / "run", run)
    (shard,) = (run / "trace").glob("*.zst")
    shard.write_bytes(b"")
    (run / "leaves.jsonl").write_bytes(b"")
    found = outcomes(run)
    assert [(k.kind, k.episodes) for k in found.kinds] == [(NOT_PLAYED, 8)]
    assert found.success.reason == "no counted episode"


def test_the_page_begins_with_the_crashes(half_crashed):
    run = half_crashed / "run"
    statement.write(run, keys.load(half_crashed / "home"))
    page = (run / "report.html").read_text()
    head = page[page.index("<main>") : page.index('<div class="tiles">')]
    assert "did not end by its own act" in head
    assert "crashed, <code>KeyError" in head
    assert "(first in 00000" in head
    assert "no field `choices`" in head
    assert 'class="calm"' not in head


def test_four_crashes_in_a_hundred_are_no_alarm(half_crashed):
    found = outcomes(half_crashed / "run")
    kinds = (OutcomeCount("finished", 96), OutcomeCount("crashed", 4))
    healthy = msgspec.structs.replace(found, planned=100, kinds=kinds)
    assert not healthy.alarming
    assert healthy.broken_share == 0.04


def ended(outcome="finished", *, reason="r", steps=3, calls=(), success=False):
    """Return an attempt that ended so, with calls of (source, status, failure)."""
    end = SimpleNamespace(outcome=outcome, reason=reason, steps=steps, success=success)
    made = [
        SimpleNamespace(source=source, status=status, failure=failure)
        for source, status, failure in calls
    ]
    return SimpleNamespace(
        leaf=SimpleNamespace(attempt_id="a"),
        start=episode().start,
        end=end,
        of=lambda kind: iter(made),
    )


REFUSED = "the model's provider: HTTP 402. The agent: r"


@pytest.mark.parametrize(
    ("trace", "kind", "reason"),
    [
        (ended(), "finished", ""),
        (ended("infeasible"), "declared infeasible", ""),
        (ended("agent_timeout"), "timed out", "r"),
        (ended("truncated", reason="budget:steps"), "out of steps", ""),
        (ended("truncated", reason="budget:steps", steps=0), "out of steps", ""),
        (ended("truncated", reason="budget:tokens", steps=1), "out of budget (tokens)", ""),
        (
            ended("truncated", reason="budget:tokens", steps=0),
            NO_BUDGET,
            "the run's budget of tokens was spent before its first step",
        ),
        (ended("agent_raised", calls=[("harness", 402, "")]), PROVIDER, REFUSED),
        (ended("finished", calls=[("harness", 402, "")]), "finished", ""),
        (ended("agent_raised", calls=[("harness", 500, "")]), "crashed", "r"),
        (ended("agent_raised", calls=[("agent", 402, "")]), "crashed", "r"),
        (ended("agent_raised", calls=[("harness", 402, ""), ("harness", 200, "")]), "crashed", "r"),
        (
            ended("agent_raised", calls=[("harness", 200, ""), ("harness", 0, "down")]),
            PROVIDER,
            "the model's provider: down. The agent: r",
        ),
    ],
)
def test_an_ending_is_said_in_words(trace, kind, reason):
    assert _ending(trace) == ("a", kind, reason)


def arm(*endings, successes=0, cost=None):
    found = [_Ending(f"a{i}", *ending) for i, ending in enumerate(endings)]
    counted = [
        _CountedEpisode(pooled_terms(episode(pair=f"p{i}").start), i < successes, not i)
        for i in range(len(endings))
    ]
    return _of_arm("x", found, counted=counted, cost=cost, again=2)


def test_the_commonest_fault_is_that_of_a_kind_and_a_reason():
    found = arm(
        ("finished", ""),
        ("crashed", "one"),
        ("timed out", "two"),
        ("crashed", "two"),
        ("timed out", "two"),
        ("finished", ""),
        ("finished", ""),
    )
    assert found.commonest == OutcomeCount("timed out", 2, "a2", "two")
    assert found.kinds == (
        OutcomeCount("finished", 3, "a0", ""),
        OutcomeCount("crashed", 2, "a1", "one"),
        OutcomeCount("timed out", 2, "a2", "two"),
    )
    assert (found.planned, found.own, found.helped, found.again) == (7, 3, 1, 2)
    assert found.broken_share == pytest.approx(4 / 7)
    assert arm(("finished", "")).commonest is None
    assert arm().broken_share == 0.0
    assert arm(("crashed", "r")).broken_share == 1.0


@pytest.mark.parametrize(
    ("cost", "successes", "each"), [(None, 2, None), (7, 2, 3), (7, 0, None), (0, 1, 0)]
)
def test_a_success_costs_what_all_episodes_cost_over_the_successes(cost, successes, each):
    found = arm(*[("finished", "")] * 3, successes=successes, cost=cost)
    assert found.cost_micro_usd == each


def test_a_share_has_an_interval_over_its_tasks():
    one = arm(*[("finished", "")] * 10, successes=4)
    values = np.array([1.0] * 4 + [0.0] * 6)
    _, low, high = mean_over_tasks(values, np.arange(10))
    assert (one.success.low, one.success.high) == (low, high)
    assert one.pools == "10 episodes of 10 tasks"
    assert arm().success.reason == "no counted episode"


def test_five_in_a_hundred_are_the_most_that_are_no_alarm():
    kinds = (OutcomeCount("finished", 95), OutcomeCount("crashed", 5))
    found = msgspec.structs.replace(arm(), planned=100, kinds=kinds)
    assert not found.alarming
    assert msgspec.structs.replace(found, planned=99).alarming


def test_an_attempt_that_failed_counts_where_none_does():
    """Entry 0 counts, 1 failed twice, 2 was lost to the provider, 3 was not played."""
    traces = [ended(success=True)]
    traces[0].leaf.index = 0
    helps = [SimpleNamespace(kind="refused")]
    traces[0].of = lambda kind: iter(helps if kind.__name__ == "Intervention" else ())

    def failed(index, number, reason, outcome="infrastructure", status=""):
        last = SimpleNamespace(outcome=outcome, reason=reason)
        return SimpleNamespace(
            attempt_id=f"{index}.{number}",
            status=status or outcome,
            leaf=SimpleNamespace(index=index),
            events=[last] if reason else [],
        )

    attempts = [
        failed(1, 0, "first"),
        failed(1, 1, "second"),
        failed(2, 0, "ProviderFailure: down", status="provider"),
        failed(3, 0, ""),
    ]
    entries = [SimpleNamespace(index=i, arm="x") for i in range(4)]
    plan = SimpleNamespace(arms=[SimpleNamespace(name="x")], entries=entries, placement=True)
    bundle = SimpleNamespace(
        plan=plan, due=entries, traces=lambda: iter(traces), incomplete=lambda: iter(attempts)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("owa_bench.reports.read.outcomes.EpisodeEnd", SimpleNamespace)
        (found,) = arm_outcomes(bundle, {"x": 12})
    assert {kind.kind: (kind.first, kind.reason) for kind in found.kinds} == {
        "finished": ("a", ""),
        "failed through the harness": ("1.1", "second"),
        MISSING: ("2.0", "down"),
        STOPPED: ("", "down"),
    }
    assert (found.missing, found.missing_reason) == (2, "down")
    assert (found.counted, found.successes, found.again) == (1, 1, 3)
    assert (found.helped, found.cost_micro_usd) == (0, 12)


def test_a_provider_failure_of_an_older_run_keeps_its_name():
    """Its leaf says no more than that the harness failed."""
    last = SimpleNamespace(outcome="infrastructure", reason="ProviderFailure: down")
    attempt = SimpleNamespace(
        attempt_id="0.0", status="infrastructure", leaf=SimpleNamespace(index=0), events=[last]
    )
    entries = [SimpleNamespace(index=0, arm="x")]
    plan = SimpleNamespace(arms=[SimpleNamespace(name="x")], entries=entries, placement=True)
    bundle = SimpleNamespace(
        plan=plan, due=entries, traces=lambda: iter(()), incomplete=lambda: iter([attempt])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("owa_bench.reports.read.outcomes.EpisodeEnd", SimpleNamespace)
        (found,) = arm_outcomes(bundle, {"x": None})
    [kind] = found.kinds
    assert (kind.kind, kind.reason) == (PROVIDER, "ProviderFailure: down")
    assert found.missing == 0
