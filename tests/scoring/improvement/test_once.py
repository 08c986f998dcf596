"""Suites that are played once beside the days: no cost, no day, no kappa of theirs."""

import msgspec

from owa_bench.records.trace import Trace
from owa_bench.scoring.improvement.checkpoints import checkpoint_series
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import daily_families
from owa_bench.scoring.pipeline import judge
from tests.builders.campaign import practice
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of

COST = (("api_calls", 9e6, "agent"),)


def campaign(days: int = 3) -> list[Trace]:
    traces: list[Trace] = []
    for day in range(days):
        traces += practice(day, len(traces))
        for k in range(4):
            terms = {"index": len(traces), "pair": f"p{k}", "day": day, "q_state": 0.5}
            traces.append(episode(**terms, phase="checkpoint"))
    return traces


def once(traces: list[Trace]) -> list[Trace]:
    more = {"suite": "recall", "family": "learning", "costs": COST, "solved": 2}
    return [*traces, *(episode(index=len(traces) + k, pair=f"r{k}", **more) for k in range(3))]


def test_what_is_played_once_is_no_spending_of_the_lane() -> None:
    """Else a dear suite outside the days would stand for practice that never was."""
    families = daily_families(plan_of(once(campaign())))
    assert families == ("toolquest/reconcile",)
    series = [
        checkpoint_series(observe(t, PRICES), families, PROTOCOL, PRICES)
        for t in (campaign(), once(campaign()))
    ]
    assert series[0].spent.tolist() == series[1].spent.tolist()
    assert series[0].unit == series[1].unit
    assert series[0].counted == series[1].counted == (0, 1, 2)


def test_kappa_is_planned_for_the_families_of_the_days_alone() -> None:
    traces = once(campaign())
    plan = msgspec.structs.replace(plan_of(traces), dynamics=("G",))
    found = judge(plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    (verdict,) = found.verdicts
    assert [k.family for k in verdict.kappas] == [None, "toolquest/reconcile"]


def test_kappa_reads_the_axes_that_the_plan_names() -> None:
    """All others may be missing; without names all of the index must have evidence."""
    traces = campaign(8)
    plan = plan_of(traces)
    reasons = []
    for dynamics in ((), ("G",), ("G", "M")):
        named = msgspec.structs.replace(plan, dynamics=dynamics)
        found = judge(named, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
        reasons.append(found.verdicts[0].kappas[0].reason)
    assert str(reasons[0]).startswith("not computable: no evidence on")
    assert reasons[2] == "not computable: no evidence on M"
    assert reasons[1] != reasons[2]
