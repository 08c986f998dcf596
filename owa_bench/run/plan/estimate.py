"""What a plan would take: episodes, seconds, the most it can cost; plays nothing."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench import discovery
from owa_bench.interfaces import Suite
from owa_bench.records import price_card, protocol
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.run.plan.request import Request, RunOptions, draft_plan

# Seconds that a worker takes to start; measured on a 2-core machine.
WORKER_START_S = 1.0


class RunEstimate(NamedTuple):
    """What a plan would take.

    `scripted_s` is the time of agents that answer at once, by what the suites' cards
    say that an episode takes; `longest_s` that of agents
    that use every deadline of every step. `cost_micro_usd` is the most that steps,
    hints and metered ceilings can cost, None if a meter has no price; `unknown` are the
    meters an agent may declare and no ceiling bounds.
    """

    episodes: int
    by_arm: Mapping[str, int]
    scripted_s: float
    longest_s: float
    cost_micro_usd: int | None
    unknown: tuple[str, ...]


def estimate(request: Request, options: RunOptions) -> RunEstimate:
    """Return what playing a request would take; wrong requests raise as in `play`."""
    made = draft_plan(request, options.folder)
    plan = made.plan
    rules = protocol.load(made.protocol)
    prices = price_card.load(made.price_card)
    hands = options.workers * options.concurrency
    steps = sum(_steps(plan, entry) for entry in plan.entries)
    costs = [
        prices.cost(meter, amount)
        for meter, amount in _most(plan, rules.quality.minutes_per_hint).items()
    ]
    bounded = {meter for meter, _ in plan.budget.episode_meters}
    bounded |= {meter for meter, _ in plan.budget.run_meters}
    return RunEstimate(
        episodes=len(plan.entries),
        by_arm=Counter(entry.arm for entry in plan.entries),
        scripted_s=sum(map(_seconds, plan.entries)) / options.workers + WORKER_START_S,
        longest_s=steps * plan.budget.act_s / hands,
        cost_micro_usd=None
        if None in costs
        else sum(cost for cost in costs if cost is not None),
        unknown=tuple(
            meter for meter in ("tokens_in", "tokens_out") if meter not in bounded
        ),
    )


def _most(plan: Plan, minutes_per_hint: float) -> dict[str, float]:
    """Return the most a plan can use of each meter that steps or ceilings bound."""
    most: dict[str, float] = defaultdict(float)
    ceilings = dict(plan.budget.episode_meters)
    for entry in plan.entries:
        for meter, amount in _of_entry(plan, entry, minutes_per_hint).items():
            most[meter] += amount if meter not in ceilings else 0
    for meter, ceiling in ceilings.items():
        most[meter] = ceiling * len(plan.entries)
    for meter, ceiling in plan.budget.run_meters:
        most[meter] = min(most.get(meter, ceiling), ceiling)
    return dict(most)


def _of_entry(
    plan: Plan, entry: PlanEntry, minutes_per_hint: float
) -> dict[str, float]:
    """Return the most one episode can use by its steps: a call or a hint in each."""
    steps = _steps(plan, entry)
    hints = steps if entry.interventions is None else min(steps, entry.interventions)
    return {"api_calls": steps, "supervisor_min": hints * minutes_per_hint}


def _seconds(entry: PlanEntry) -> float:
    suite: Suite = discovery.get("suites", entry.suite)
    return suite.card.episode_s


def _steps(plan: Plan, entry: PlanEntry) -> int:
    suite: Suite = discovery.get("suites", entry.suite)
    return plan.budget.steps or suite.card.step_limit
