"""Sample sizes of a plan: what each gate will have to read."""

from collections import defaultdict

from owa_bench import discovery
from owa_bench.interfaces import SuiteCard
from owa_bench.records.plan import Arm, Plan, PlanEntry, SampleSizes


def sample_sizes(plan: Plan, projects: str) -> SampleSizes:
    """Return the sample sizes of a plan, those of its first agent.

    Args:
        plan: The plan.
        projects: The suite whose episodes are projects.
    Returns: Tasks by axis, families, projects, and what is played a day.
    """
    learner = next(arm for arm in plan.arms if not _is_control(arm))
    own = [entry for entry in plan.entries if entry.arm == learner.name]
    scored = [entry for entry in own if _is_scored(entry)]
    tasks: dict[str, set[str]] = defaultdict(set)
    for entry in scored:
        for symbol in _card(entry).axes:
            tasks[symbol].add(entry.pair)
    daily: dict[tuple[str, str, int], int] = defaultdict(int)
    for entry in scored:
        if entry.phase == "checkpoint" and entry.interventions == 0:
            daily[entry.suite, entry.family, entry.day or 0] += 1
    lanes: dict[int, int] = defaultdict(int)
    for entry in own:
        if entry.condition == "drifted":
            lanes[entry.day or 0] += 1
    return SampleSizes(
        tasks={symbol: len(pairs) for symbol, pairs in sorted(tasks.items())},
        families=len({(entry.suite, entry.family) for entry in scored}),
        projects=len({e.pair for e in scored if e.suite == projects}),
        family_day=min(daily.values(), default=0),
        days=len({day for _, _, day in daily}),
        lane=min(lanes.values(), default=0),
        lane_days=len(lanes),
    )


def _is_control(arm: Arm) -> bool:
    return arm.frozen or arm.placebo or arm.baseline


def _is_scored(entry: PlanEntry) -> bool:
    """Return whether axes read an entry."""
    outside = entry.control or entry.condition or entry.calendar
    return entry.phase != "practice" and not outside


def _card(entry: PlanEntry) -> SuiteCard:
    card: SuiteCard = discovery.get("suites", entry.suite).card
    return card
