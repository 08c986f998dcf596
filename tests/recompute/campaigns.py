"""Revision, kappa and closures of one arm of a campaign.

Source: docs/scoring.md#attempt-sets, #kappa, #closures and #intervals.
"""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
from scipy import optimize, stats

from tests.recompute import inner
from tests.recompute.axes import base_rows, clip, expert_minutes, family_weights, weighted
from tests.recompute.days import mean_law, reach_of, share_below, with_tasks

LAGS = np.arange(0, 0.61, 0.05)


def set_of(episodes, condition, window):
    return [
        one
        for one in episodes
        if one["entry"]["condition"] == condition
        and one["entry"]["window"] == list(window)
        and one["entry"]["day"] == window[1]
    ]


def practice(episodes, since=0, until=math.inf):
    return [
        one
        for one in episodes
        if one["entry"]["phase"] == "practice" and since <= one["entry"]["day"] < until
    ]


def self_revision(run, arm):
    """Return R, and the gain that gates read: at most that over the placebo."""
    rules, own = run.protocol["revision"], run.of_arm(arm["name"])
    windows = sorted(
        {tuple(one["entry"]["window"]) for one in own if one["entry"]["condition"] == "after"}
    )
    if not windows or any(map(inner.campaign, own)):
        return inner.self_revision(run, own)
    frozen, placebo = controls(run, arm)
    total = gated = 0.0
    for window in windows:
        sets = {name: set_of(own, name, window) for name in ("before", "after")}
        sets["ablated"] = set_of(own, "ablated", window)
        for name in ("control_before", "control_after"):
            sets[name] = set_of(frozen, name, window)
        if min(len({o["entry"]["pair"] for o in s}) for s in sets.values()) < (rules["set_min"]):
            return None, None
        c = {name: weighted(run, s, lambda o: o["q"]) for name, s in sets.items()}
        one_law = len({o["entry"]["world_day"] for s in sets.values() for o in s}) == 1
        early = [
            o
            for o in base_rows(own)
            if o["entry"]["day"] is not None and o["entry"]["day"] < window[0]
        ]
        before = max(c["before"], weighted(run, early, lambda o: o["q"]) or 0.0)
        gain = c["after"] - before
        if not one_law:
            gain -= c["control_after"] - c["control_before"]
        over = weighted(run, set_of(placebo, "placebo", window), lambda o: o["q"])
        kept = gain >= 0
        if kept and c["after"] - c["ablated"] < (run.protocol["closures"]["gain_lost"] * gain):
            continue
        alpha = agents_share(own, sets["ablated"], window) if kept else 1.0
        total += alpha * gain
        gated = None if over is None else gated + alpha * min(gain, c["after"] - over)
    first, last = set_of(own, "before", windows[0]), set_of(own, "after", windows[-1])
    net = weighted(run, last, lambda o: o["q"]) - weighted(run, first, lambda o: o["q"])
    sums = (min(total, net), gated if gated is None else min(gated, net))
    return tuple(s if s is None else clip(s / rules["full_gain"]) for s in sums)


def controls(run, arm):
    same = [
        other
        for other in run.plan["arms"]
        if (other["agent"], other["fingerprint"]) == (arm["agent"], arm["fingerprint"])
    ]
    frozen = [o for other in same if other["frozen"] for o in run.of_arm(other["name"])]
    placebo = [o for other in same if other["placebo"] for o in run.of_arm(other["name"])]
    return frozen, placebo


def agents_share(own, ablated, window):
    """Return alpha: a third each for proposal, changed lines and a check between."""
    if any(one["k"] or one["cost"]["human"] for one in practice(own, 0, window[1])):
        return 0.0
    rows = practice(own, *window)
    said = [(o["entry"]["index"], e) for o in rows for e in o["kinds"]["revision"]]
    first = min((index for index, _ in said), default=math.inf)
    last = max((i for i, e in said if e.get("decision") == "adopted"), default=-1)
    lines = [
        file["added"] + file["removed"]
        for one in ablated
        for change in one["kinds"]["memory_change"]
        for file in change.get("files", ())
    ]
    checked = any(first < one["entry"]["index"] <= last for one in rows)
    return (bool(said) + (sum(lines) > 0) + checked) / 3


def mixture(x, values, days):
    """Return the slope's estimates, errors and weights under each correlation."""
    design = np.stack((np.ones_like(x), x), axis=1)
    freedom, gaps = len(x) - 2, np.abs(np.subtract.outer(days, days))
    estimates, errors, heights = [], [], []
    for lag in LAGS:
        v = lag**gaps
        inverse = np.linalg.inv(v)
        gram = np.linalg.inv(design.T @ inverse @ design)
        b = gram @ design.T @ inverse @ values
        rest = values - design @ b
        rss = max(float(rest @ inverse @ rest), 0.0)
        size = float(values @ inverse @ values)
        if rss <= 1e-12 * size:
            flat = abs(b[1]) <= 1e-12 * math.sqrt(size * gram[1, 1])
            estimates.append(0.0 if flat else b[1])
            errors.append(0.0)
            heights.append(0.0)
            continue
        estimates.append(b[1])
        errors.append(math.sqrt(rss / freedom * gram[1, 1]))
        heights.append(
            (np.linalg.slogdet(gram)[1] - np.linalg.slogdet(v)[1]) / 2 - freedom / 2 * math.log(rss)
        )
    weights = np.exp(np.array(heights) - max(heights))
    return np.array(estimates), np.array(errors), weights / weights.sum(), freedom


def tail(found, null):
    """Return the one-sided p of a slope at most `null`."""
    estimates, errors, weights, freedom = found
    if not errors.any():
        return float(estimates[0] <= null) / (1 + (estimates[0] == null))
    return float(weights @ stats.t.sf((estimates - null) / errors, freedom))


def slope_of(x, values, days, level, left=()):
    """Return slope, interval and p; `left` holds the values without each task."""
    x, days = np.array(x), np.array(days, dtype=float)
    estimates, errors, weights, freedom = mixture(x, np.array(values), days)
    if len(left) > 1:
        steps = np.array([mixture(x, np.array(one), days)[0] for one in left])
        errors = np.sqrt(errors**2 + (len(left) - 1) * steps.var(axis=0))
        freedom = min(freedom, len(left) - 1)
    found = estimates, errors, weights, freedom
    reach = 1e3 * errors.max() + 1e-9
    low, high = estimates.min() - reach, estimates.max() + reach
    ends = [estimates[0]] * 2
    if errors.any():
        ends = [
            optimize.brentq(lambda null, share=share: tail(found, null) - share, low, high)
            for share in ((1 - level) / 2, (1 + level) / 2)
        ]
    return float(weights @ estimates), ends, tail(found, 0.0)


def checkpoints(run, arm):
    """Return days, R in kappa units, and the days of the window that counts."""
    own = run.of_arm(arm["name"])
    marks = [o for o in base_rows(own) if o["entry"]["phase"] == "checkpoint"]
    days = sorted({one["entry"]["day"] for one in marks})
    if not days:
        return None
    minutes = max(sum(expert_minutes(run, o) for o in on_day(marks, day)) for day in days)
    rules, minute = run.protocol["improvement"], run.prices["micro_usd_per_million"]
    unit = minutes * minute["supervisor_min"] / 1e6 * rules["unit_share"]
    lost = [o for o in run.lost if o["entry"]["arm"] == arm["name"]]
    costs = practice(own) + practice(lost)
    spent = [
        sum(o["cost"]["agent"] for o in costs if o["entry"]["day"] <= day) / unit for day in days
    ]
    best, current = [], []
    for place, day in enumerate(days):
        enough = len(on_day(practice(own), day)) >= rules["practice_min"]
        fresh = enough and spent[place] > (spent[place - 1] if place else 0.0)
        follows = bool(current) and day == days[current[-1]] + 1
        current = [*(current if follows else []), place] if fresh else []
        best = current if len(current) >= len(best) else best
    return marks, days, spent, best


def on_day(rows, day):
    return [one for one in rows if one["entry"]["day"] == day]


def kappa(run, arm, family):
    """Return points, days of the window, slope, interval, p and slope of the logit."""
    marks, days, *_ = checkpoints(run, arm)
    own = [o for o in marks if o["family"] == family]
    values = [float(np.mean([o["q"] for o in on_day(own, day)])) for day in days]
    cells = task_cells(own, days)
    whole = np.array(list(cells.values()))
    known = len(whole) > 1 and not np.isnan(whole).any()
    left = (whole.sum(axis=0) - whole) / (len(whole) - 1) if known else []
    return kappa_of(run, arm, values, left) | {"gain": gain(run, arm, family)}


def task_cells(rows, days):
    """Return the mean quality of each task on each day, NaN where it was not played."""
    cells = {}
    for pair in sorted({o["entry"]["pair"] for o in rows}):
        played = [[o["q"] for o in on_day(rows, d) if o["entry"]["pair"] == pair] for d in days]
        cells[pair] = [float(np.mean(q)) if q else math.nan for q in played]
    return cells


def gain(run, arm, family):
    """Return what the last mornings hold over the frozen control's; None: not known."""
    rules = run.protocol["improvement"]
    marks, days, spent, window = checkpoints(run, arm)
    last = window[-rules.get("gain_days", 4) :]
    if len(window) < rules["checkpoints_min"] or arm["frozen"]:
        return None
    still = base_rows(controls(run, arm)[0])
    still = [o for o in still if o["entry"]["phase"] == "checkpoint"]
    mornings = [days[place] for place in last]
    if not set(mornings) <= {o["entry"]["day"] for o in still}:
        return None
    lanes = [
        task_cells([o for o in rows if o["family"] == family], mornings) for rows in (marks, still)
    ]
    common = sorted(lanes[0].keys() & lanes[1].keys())
    own, other = (np.array([lane[pair] for pair in common]) for lane in lanes)
    kept = ~np.isnan(own + other).any(axis=1)
    gaps = np.round((own - other)[kept], 12)
    if len(gaps) < 2:
        return None
    by_day, by_task = gaps.mean(axis=0), gaps.mean(axis=1)
    error = math.sqrt(by_day.var(ddof=1) / len(by_day) + by_task.var(ddof=1) / len(by_task))
    error = 0.0 if error < 1e-12 else error
    value, freedom = float(gaps.mean()), min(gaps.shape) - 1
    p = stats.t.sf(value / error, freedom) if error else (1 - np.sign(value)) / 2
    units = float(np.mean([spent[place] for place in last]))
    return {
        "value": value,
        "low": value - stats.t.ppf(1 - rules["alpha"], freedom) * error,
        "p": max(float(p), 2.0 ** -len(gaps)),
        "units": units,
        "per_unit": value / units,
    }


def kappa_of(run, arm, values, left=()):
    """Return the same of any series of the checkpoints, one value a day."""
    _, days, spent, window = checkpoints(run, arm)
    found = {"points": list(zip(spent, values, strict=True)), "days": len(window)}
    if len(window) < run.protocol["improvement"]["checkpoints_min"]:
        return found | {"slope": None}
    x, y, when = ([series[i] for i in window] for series in (spent, values, days))
    without = [[one[i] for i in window] for one in left]
    level = run.protocol["statistics"]["level"]
    found["slope"], found["interval"], found["p"] = slope_of(x, y, when, level, without)
    most = 1 - run.protocol["improvement"]["link_clip"]

    def logits(series):
        return [math.log(min(v, most) / (1 - min(v, most))) for v in series]

    if min(y) > 0:
        others = [logits(one) for one in without if min(one) > 0]
        others = others if len(others) == len(without) else []
        found["logit"], _, found["logit_p"] = slope_of(x, logits(y), when, level, others)
    return found


def lane_means(episodes, condition):
    days = defaultdict(list)
    for one in episodes:
        if one["entry"]["condition"] == condition:
            drifted = one["start"]["realised"] > 0 or condition == "clean"
            days[one["entry"]["day"]].append((one["q_state"], drifted))
    return {
        day: float(np.mean([q for q, _ in both]))
        for day, both in days.items()
        if any(drifted for _, drifted in both)
    }


def maintenance(run, arm):
    """Return (status, theta, lower bound) of the closure, None where untested."""
    rules, own = run.protocol["closures"], run.of_arm(arm["name"])
    clean, drifted = lane_means(own, "clean"), lane_means(own, "drifted")
    window, current = [], []
    for day in sorted(clean.keys() & drifted.keys()):
        current = [*current, day] if current and day == current[-1] + 1 else [day]
        window = current if len(current) >= len(window) else window
    blind = [
        one for other in run.plan["arms"] if other["baseline"] for one in run.of_arm(other["name"])
    ]
    if len(window) < rules["days"] or not bites(blind, window, rules["drift_bite"]):
        return "NOT TESTED", None, None
    if any(o["kinds"]["intervention"] for o in practice(own)):
        patched = [
            e
            for o in practice(own, window[0], window[-1] + 1)
            for e in o["kinds"]["intervention"]
            if e["kind"] == "patch"
        ]
        if patched:
            return "FAIL", None, None
    x, k = (np.array([lane[d] for d in window]) for lane in (drifted, clean))
    if not x.mean() > 0 or not k.mean() > 0:
        return "FAIL", None, None
    before = [d for d in clean if window[0] - rules["days"] <= d < window[0]]
    earlier = [clean[d] for d in before]
    pairs = {o["entry"]["pair"] for o in own if o["entry"]["condition"] == "clean"}
    base = [o["q_state"] for o in base_rows(own) if o["entry"]["pair"] in pairs]
    other = max([float(np.mean(s)) for s in (earlier, base) if s], default=0.0)

    def theta(kept):
        return math.log(x[kept].mean()) - math.log(max(k[kept].mean(), other))

    count, every = len(window), np.arange(len(window))
    left_out = [theta(every != day) for day in range(count)]
    whole, least = theta(every >= 0), math.log(rules["rho"])
    law = mean_law(left_out, np.array(window))
    lanes = [
        [o for o in own if o["entry"]["condition"] == name and o["entry"]["day"] in days]
        for name, days in (("drifted", window), ("clean", window), ("clean", before))
    ]
    law = with_tasks(law, thetas(lanes, [o for o in base_rows(own) if o["entry"]["pair"] in pairs]))
    reach = reach_of(law, run.protocol["statistics"]["gate_level"])
    if whole - reach >= least:
        return "PASS", whole, whole - reach
    weak = share_below(law, -least - reach) < rules["power_min"]
    return ("NO EVIDENCE" if weak else "FAIL"), whole, whole - reach


def thetas(lanes, base):
    """Return theta without each task, family by family."""
    families = defaultdict(set)
    for one in lanes[1]:
        families[one["family"]].add(one["entry"]["pair"])

    def mean(rows, pair, by):
        days = defaultdict(list)
        for one in rows:
            if one["entry"]["pair"] != pair:
                days[by(one)].append(one["q_state"])
        return float(np.mean([np.mean(q) for q in days.values()])) if days else 0.0

    def theta(pair):
        x, *others = (mean(rows, pair, lambda o: o["entry"]["day"]) for rows in lanes)
        others.append(mean(base, pair, lambda o: 0))
        return math.log(x) - math.log(max(others))

    return [[theta(pair) for pair in sorted(pairs)] for pairs in families.values()]


def bites(blind, window, most):
    """Return whether drift took enough from the drift-blind baseline."""
    clean, drifted = lane_means(blind, "clean"), lane_means(blind, "drifted")
    if not all(day in lane for lane in (clean, drifted) for day in window):
        return False
    base = np.mean([clean[day] for day in window])
    return base > 0 and np.mean([drifted[day] for day in window]) / base <= most


def installed(run, arm):
    """Return the tool families that revisions of an arm installed, as was seen."""
    return {
        family
        for one in run.of_arm(arm["name"])
        if one["entry"]["condition"] == "ablated"
        for change in one["kinds"]["memory_change"]
        for family in change.get("families", ())
    }


def daily(run):
    """Return a run's plan with the suites of the days alone, if any has days."""
    played = {e["suite"] for e in run.plan["entries"] if e["phase"] == "checkpoint"}
    suites = [suite for suite in run.plan["suites"] if suite["name"] in played]
    return replace(run, plan=run.plan | {"suites": suites or run.plan["suites"]})


def families_of_days(run):
    return sorted(family_weights(daily(run).plan))
