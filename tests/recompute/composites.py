"""Index, frontier and the band of the frontier, from the axes and episodes of an arm.

Source: docs/scoring.md#index, #frontier and #intervals.
"""

import math
from collections import defaultdict

import numpy as np
from scipy import stats

from tests.recompute.axes import scored, task, weighted
from tests.recompute.days import mean_law, reach_of, with_tasks


def indices(run, values):
    """Return the five composites of the axes' values; None where one is missing."""
    rules = run.protocol["index"]
    used = {name: w for name, w in rules["weights"].items() if w > 0}
    flows = states(run)
    whole, mean = geometric(values, used), arithmetic(values, used)
    unevenness = None if whole is None else (whole / mean if mean else 0.0)
    return {
        "AAI": whole,
        "AAI_dyn": geometric(values, flows),
        "jaggedness": unevenness,
        "AAI_J": None if whole is None else whole * unevenness ** rules["gamma"],
        "core": geometric(values, dict.fromkeys(rules["core"], 1.0)),
    }


def states(run):
    """Return the weights of the axes of AAI_dyn, those that the plan names if any."""
    rules, named = run.protocol["index"], run.plan.get("dynamics", ())
    return {
        name: weight
        for name, weight in rules["weights"].items()
        if weight > 0 and name not in rules["dynamic_without"] and (name in named or not named)
    }


def geometric(values, weights):
    if any(values.get(name) is None for name in weights):
        return None
    total = sum(weights.values())
    return math.prod(values[name] ** (w / total) for name, w in weights.items())


def arithmetic(values, weights):
    if any(values.get(name) is None for name in weights):
        return None
    return sum(values[n] * w for n, w in weights.items()) / sum(weights.values())


def frontier(run, episodes):
    """Return AUF, deleg, their bounds and deleg_cert over the plan's help budgets."""
    rules = run.protocol["frontier"]
    rows = [one for one in scored(episodes) if not one["entry"]["control"]]
    budgets = {one["entry"]["interventions"] for one in rows}
    tasks = defaultdict(set)
    for one in rows:
        tasks[task(one)].add(one["entry"]["interventions"])
    rows = [one for one in rows if tasks[task(one)] == budgets]
    if len(budgets) < 2 or not rows:
        return None

    def fits(some):
        groups = [
            [one for one in some if one["entry"]["interventions"] == budget] for budget in budgets
        ]
        places = [
            (
                weighted(run, own, lambda one: demand(one, rules)),
                weighted(run, own, lambda one: one["q_state"]),
                weighted(run, own, lambda one: one["u"]),
            )
            for own in groups
        ]
        demands, quality, share = zip(*sorted(places), strict=True)
        return np.array(demands), falling(quality), falling(share)

    demands, quality, share = fits(rows)
    gaps, least = np.diff(demands), rules["success_share"]
    high = [d for d, s in zip(demands, share, strict=True) if s >= least]
    low = [d for d, s in zip(demands, share, strict=True) if s < least]
    bands = lower_band(rows, share, lambda some: fits(some)[2])
    return {
        "demand": demands,
        "quality": quality,
        "fitted": share,
        "low": bands,
        "auf": float(np.trapezoid(quality, demands)),
        "auf_bounds": [gaps @ quality[1:], gaps @ quality[:-1]],
        "deleg": length_above(demands, share, least),
        "deleg_bounds": [max(high, default=0.0), min(low, default=1.0)],
        "deleg_cert": None if bands is None else length_above(demands, bands, least),
    }


def demand(one, rules):
    """Return a = 1 - min(k, k_max) / k_max of the budget of an episode."""
    most, budget = (
        math.ceil(rules["interventions_share"] * one["horizon"]),
        one["start"]["interventions"],
    )
    granted = most if budget is None else min(budget, most)
    return 1 - granted / most if most else 1.0


def falling(values):
    """Return the non-increasing least-squares fit, by pooling neighbours that rise."""
    blocks = []
    for value in values:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-1][0] > blocks[-2][0]:
            value, count = blocks.pop()
            mean, before = blocks[-1]
            blocks[-1] = [(mean * before + value * count) / (before + count), before + count]
    return np.array([mean for mean, count in blocks for _ in range(count)])


def length_above(demands, share, least):
    """Return the length of the demands where the line through `share` is >= least."""
    length = 0.0
    for (x0, y0), (x1, y1) in zip(
        zip(demands, share, strict=True), list(zip(demands, share, strict=True))[1:], strict=False
    ):
        if y1 >= least:
            length += x1 - x0
        elif y0 >= least:
            length += (x1 - x0) * (y0 - least) / (y0 - y1)
    return length


def lower_band(rows, whole, read):
    """Return the two-sided 95 percent lower ends of shares by logit jackknife.

    A cluster is a task within its family and, where there are several, a day; tasks that
    are played on one day each are in the cluster of their day alone. None where a family
    holds one task.
    """
    days = sorted({one["entry"]["day"] for one in rows})
    tasks = defaultdict(set)
    played = defaultdict(set)
    for one in rows:
        tasks[one["family"]].add(one["entry"]["pair"])
        played[one["entry"]["pair"]].add(one["entry"]["day"])
    fresh = len(days) > 1 and max(len(d) for d in played.values()) == 1
    families = [] if fresh else sorted(tasks)
    if any(len(tasks[family]) < 2 for family in families):
        return None
    by_task = [
        [read([o for o in rows if o["entry"]["pair"] != pair]) for pair in sorted(tasks[family])]
        for family in families
    ]
    several = days if len(days) > 1 else []
    by_day = [read([o for o in rows if o["entry"]["day"] != day]) for day in several]
    counts = [len(by_day), sum(map(len, by_task))]
    count = min(number for number in counts if number)
    lows = []
    for place, x in enumerate(whole):
        left = [[v[place] for v in values] for values in by_task]
        left_days = [v[place] for v in by_day]
        if all(v == x for values in [*left, left_days] for v in values):
            lows.append(float(x * 0.025 ** (1 / count)))
            continue
        lows.append(logit_low(x, left, left_days, days))
    return np.array(lows)


def logit_low(x, left, left_days, days):
    scale = 1.0
    every = [v for values in [*left, left_days] for v in values]
    parts = [np.array(values) for values in [*left, left_days]]
    if all(0 < v < 1 for v in every):
        parts = [np.log(v / (1 - v)) for v in parts]
    else:
        scale = x * (1 - x)
    *by_task, by_day = parts
    if left_days:
        law = with_tasks(mean_law(by_day, np.array(days)), by_task)
        reach = -reach_of(law, 0.025) / scale
    else:
        spread = sum((len(v) - 1) * np.var(v) for v in by_task)
        freedom = sum(len(v) - 1 for v in by_task)
        reach = stats.t.ppf(0.975, freedom) * math.sqrt(spread) / scale
    return 1 / (1 + math.exp(reach - math.log(x / (1 - x))))
