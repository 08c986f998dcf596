"""Line-up: agents of any number of runs, grouped by the terms they were played on.

    from owa_bench.reports.export.lineup import lineup

    for agent in lineup(["runs/a", "runs/b:agentic"]).agents:
        print(agent.group, agent.label, agent.own_cost)

The figures are those that `owa-bench report` prints of each agent. Nothing is checked or signed.
Source: docs/read-a-run.md#compare-many
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import msgspec
import numpy as np

from owa_bench.canonical import canonical_json, sha256
from owa_bench.errors import OwaError, RunDirectoryError
from owa_bench.records.bounds import read_document
from owa_bench.records.events import Stream
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.price_card import episode_cost
from owa_bench.records.score import AgentVerdict, Interval
from owa_bench.records.trace import Trace
from owa_bench.reports.composition import judge_bundle
from owa_bench.reports.read.bundle import Bundle
from owa_bench.reports.read.comparison import ComparedArm, arms_of, different_terms, plan_terms
from owa_bench.reports.read.delegation import Delegation, SuccessCount, count_success, tells_alone
from owa_bench.reports.read.outcomes import ArmOutcomes, arm_outcomes
from owa_bench.scoring.statistics.task_means import estimate_over_tasks, task_of

_MICRO = 10**6
_LISTED = 8  # values of a term that are named; more are counted
_MIX = "mix of tasks"
_NO_REPORT = "no report"
_OTHER_REPORT = "its report is of other evidence"


class CostMean(msgspec.Struct, frozen=True):
    """Mean cost of some episodes in USD an episode, with its interval over tasks."""

    usd: float
    episodes: int
    interval: Interval


class LineupAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of a line-up.

    Attributes:
        label: Its name on the page, no other agent's.
        run: The run directory as it was given.
        group: Place of its terms in the line-up's groups.
        level: The line of the run's report, or why there is none.
        alone: Success alone at all drift magnitudes, None where no episode tells it.
        alone_cost: What it took itself in those episodes, whatever stream it is booked on
            (a campaign's checkpoints are evaluation), None where it is unknown.
        own_cost: Its own cost in all that count, None where it is unknown.
    """

    label: str
    run: str
    group: int
    level: str
    outcomes: ArmOutcomes
    verdict: AgentVerdict
    alone: SuccessCount | None
    alone_cost: CostMean | None
    own_cost: CostMean | None

    @property
    def answer(self) -> Delegation | None:
        """What it does alone and with help."""
        return self.outcomes.answer


class TermsGroup(msgspec.Struct, frozen=True):
    """Agents that were played on the same terms and tasks alike.

    `differs` names the terms in which the group is not as the first one, `masters` counts the
    secrets that its worlds were drawn from: agents of one met the same worlds.
    """

    name: str
    differs: tuple[str, ...]
    masters: int


class Lineup(msgspec.Struct, frozen=True):
    """Agents group by group, in each as they were named, and the groups in which they compare."""

    agents: tuple[LineupAgent, ...]
    groups: tuple[TermsGroup, ...]

    def of(self, group: int) -> list[tuple[int, LineupAgent]]:
        """Return the agents of a group, each with its place among all."""
        return [(i, one) for i, one in enumerate(self.agents) if one.group == group]


def lineup(sides: Sequence[str]) -> Lineup:
    """Return the agents of runs, grouped by the terms that they were played on.

    Args:
        sides: "RUN" for all agents of a run but its controls, "RUN:ARM" for one.
    Raises: RunDirectoryError: Naming the first that cannot be read.
    """
    found: dict[tuple[Path, str], tuple[ComparedArm, LineupAgent]] = {}
    for text in sides:
        try:
            for arm, agent in _agents_of(text):
                key = (arm.bundle.layout.root.resolve(), arm.arm)
                found.setdefault(key, (arm, agent))
        except OwaError as error:
            raise RunDirectoryError(f"{text} cannot be read: {error}") from error
    labels = _labels([(agent.outcomes.arm, agent.run) for _, agent in found.values()])
    groups: list[TermsGroup] = []
    agents: list[LineupAgent] = []
    by_terms: dict[tuple[tuple[str, Any], ...], list[tuple[str, ComparedArm, LineupAgent]]] = {}
    for label, (arm, agent) in zip(labels, found.values(), strict=True):
        by_terms.setdefault(tuple(_terms(arm).items()), []).append((label, arm, agent))
    for place, (terms, members) in enumerate(by_terms.items()):
        masters = {arm.bundle.plan.commitment for _, arm, _ in members}
        differs = different_terms(dict(terms), dict(next(iter(by_terms))))
        named = tuple(line for line in differs if not line.startswith(_MIX)) or tuple(differs)
        groups.append(TermsGroup(_group_name(place), named, len(masters)))
        agents += [
            msgspec.structs.replace(agent, group=place, label=label) for label, _, agent in members
        ]
    return Lineup(tuple(agents), tuple(groups))


def efficient(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Return the places of the points that no other one beats, by rising cost.

    A point beats another if it costs no more, succeeds no less often, and differs.

    Args:
        points: Cost and success of each.
    """
    kept = [
        place
        for place, (cost, success) in enumerate(points)
        if not any(
            other <= cost and more >= success and (other, more) != (cost, success)
            for other, more in points
        )
    ]
    return tuple(sorted(kept, key=points.__getitem__))


# --- figures of one agent -------------------------------------------------------------


def _agents_of(text: str) -> list[tuple[ComparedArm, LineupAgent]]:
    """Return the agents that a text names; label and group are set later."""
    arms = arms_of(text)
    if not arms:
        return []
    bundle = arms[0].bundle
    verdicts = {verdict.arm: verdict for verdict in judge_bundle(bundle, None).verdicts}
    outcomes = {one.arm: one for one in arm_outcomes(bundle, {})}
    traces: dict[str, list[Trace]] = {arm.arm: [] for arm in arms}
    for trace in bundle.traces():
        if trace.start.arm in traces:
            traces[trace.start.arm].append(trace)
    levels = _levels(bundle)
    agents = []
    for arm in arms:
        seen = traces[arm.arm]
        tells = [] if bundle.plan.placement else [t for t in seen if tells_alone(t.start)]
        agent = LineupAgent(
            label=arm.arm,
            run=arm.label,
            group=0,
            level=levels.get(arm.arm, levels[""]),
            outcomes=outcomes[arm.arm],
            verdict=verdicts[arm.arm],
            alone=count_success([t.start.pair for t in tells], [t.end.success for t in tells]),
            alone_cost=_cost(bundle, tells, "agent", "evaluation"),
            own_cost=_cost(bundle, seen, "agent"),
        )
        agents.append((arm, agent))
    return agents


def _cost(bundle: Bundle, traces: Sequence[Trace], *streams: Stream) -> CostMean | None:
    """Return the cost of episodes on some streams; None for none, or where one is unknown."""
    known: list[int] = []
    for trace in traces:
        costs = episode_cost(bundle.prices, trace.events)
        parts = [cost for cost in (costs[stream] for stream in streams) if cost is not None]
        if len(parts) < len(streams):
            return None
        known.append(sum(parts))
    if not known:
        return None
    usd = np.array(known, dtype=np.float64) / _MICRO
    tasks = np.array([task_of(trace.start.pair) for trace in traces])
    interval = estimate_over_tasks(usd, tasks, share=False)
    return CostMean(float(usd.mean()), len(usd), interval)


def _levels(bundle: Bundle) -> dict[str, str]:
    """Return the level line of each arm as the run's report has it; "" says why there is none."""
    if not bundle.layout.report.exists():
        return {"": _NO_REPORT}
    judgement = read_document(bundle.layout.report).get("judgement", {})
    if judgement.get("evidence_root") != bundle.evidence_root:
        return {"": _OTHER_REPORT}
    lines = {str(one.get("arm")): str(one.get("level_text")) for one in judgement["verdicts"]}
    return {"": _NO_REPORT, **lines}


# --- terms ----------------------------------------------------------------------------


def _terms(arm: ComparedArm) -> dict[str, Any]:
    """Return the terms that decide the difficulty and the cost of an agent's tasks."""
    plan = arm.bundle.plan
    return {"battery": plan.battery or "none", **task_terms(plan, arm.arm), **plan_terms(plan)}


def task_terms(plan: Plan, arm: str) -> dict[str, object]:
    """Return the kinds of tasks in an arm's plan and their proportions, by name.

    Twice as many tasks of every kind are the same terms.

    Args:
        plan: The plan.
        arm: One of its arms.
    """
    own = [entry for entry in plan.entries if entry.arm == arm]
    kinds = Counter(_kind(entry) for entry in own)
    least = math.gcd(*kinds.values()) or 1
    mix = sorted((kind, count // least) for kind, count in kinds.items())
    names = {
        name: _list_words(kind[place] for kind in kinds) for place, name in enumerate(_KIND_NAMES)
    }
    return {**names, _MIX: sha256(canonical_json(mix))[:12]}


_KIND_NAMES = (
    *("suites", "families", "tiers", "drift magnitudes", "help budgets", "phases"),
    *("days", "ceilings on roles", "tools taken away", "calendars of their own"),
)


def _kind(entry: PlanEntry) -> tuple[str, ...]:
    """Return the kind of an entry in words: everything but its world and seed."""
    budget = entry.interventions
    delta = "by day" if entry.delta is None else f"{entry.delta:g}"
    roles = "none" if entry.role_cap is None else f"{entry.role_cap}"
    return (
        entry.suite,
        f"{entry.suite}/{entry.family}",
        f"{entry.suite} {entry.tier}",
        delta,
        "unlimited" if budget is None else str(budget),
        f"{entry.condition or ('control' if entry.control else entry.phase)}",
        "none" if entry.day is None else str(entry.day),
        f"{roles}, muted" if entry.muted else roles,
        ", ".join(entry.tools_off) or "none",
        entry.calendar or "none",
    )


def _list_words(values: Iterable[str]) -> str:
    """Return distinct values as a list in words, cut after the first few."""
    known = sorted(set(values))
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return ", ".join(known[:_LISTED]) + more


def _group_name(place: int) -> str:
    return ascii_uppercase[place] if place < len(ascii_uppercase) else str(place + 1)


def _labels(names: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each (arm, run) that no other has: with its folder, or its path."""
    for form in ([arm for arm, _ in names], [f"{arm} ({Path(run).name})" for arm, run in names]):
        if len(set(form)) == len(form):
            return form
    return [f"{arm} ({run})" for arm, run in names]
