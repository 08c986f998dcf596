"""R of campaigns inside episodes, from the attempts that the laboratory played.

Source: docs/selfrev.md#evidence and #holdouts.
"""

import math
from collections import defaultdict

import numpy as np
from scipy import stats

from tests.recompute.axes import clip, family_weights

SETS = ("before", "after", "ablated", "control_before", "control_after")
LEVEL = 0.05
STAKES = np.arange(1, 20) / 20


def self_revision(run, episodes):
    """Return R, and what gates read; None without campaigns of enough attempts."""
    found = [one for one in map(campaign, episodes) if one]
    if not found or sum(one["size"] for one in found) < (run.protocol["revision"]["set_min"]):
        return None, None
    weights, means = family_weights(run.plan), {}
    for name in SETS:
        families = defaultdict(list)
        for one in found:
            families[one["family"]].append(one["quality"][name])
        total = sum(weights[family] for family in families)
        means[name] = sum(weights[f] * np.mean(v) for f, v in families.items()) / total
    gain = means["after"] - means["before"]
    lost = means["after"] - means["ablated"]
    lines = sum(one["lines"] for one in found)
    least = run.protocol["closures"]["gain_lost"] * max(gain, 0.0)
    if gain >= 0 and not (lost >= least and lines > 0):
        return 0.0, 0.0
    changed = [one for one in found if one["confirmed"]]
    flags = [flag for one in found for flag in one["confirmed"]]
    stages = (
        np.mean([one["proposals"] > 0 for one in changed]) if changed else 0.0,
        np.mean([one["lines"] > 0 for one in changed]) if changed else 0.0,
        np.mean(flags) if flags else 0.0,
    )
    shares = np.array(run.protocol["revision"]["stage_weights"], dtype=float)
    alpha = 1.0 if gain < 0 else float(shares @ np.array(stages) / shares.sum())
    value = clip(alpha * gain / run.protocol["revision"]["full_gain"])
    return value, value


def campaign(one):
    """Return what an episode's campaign shows, None where it held none."""
    kinds = one["kinds"]
    attempts = kinds["inner_attempt"]
    if not kinds["campaign_revision"] or not attempts:
        return None
    last = kinds["campaign_revision"][0]
    sets = defaultdict(list)
    for attempt in attempts:
        if attempt["draw"].startswith("confirmation/"):
            sets[attempt.get("condition", "")].append(attempt["quality"])
    if last["start"] == last["final"]:
        sets = dict.fromkeys(SETS, sets["before"])
    quality = {name: float(np.mean(sets[name])) for name in SETS}
    plans = {plan["plan"]: plan for plan in kinds["holdout_registration"]}
    values = dict.fromkeys(plans, 1.0)
    for answer in kinds["holdout_answer"]:
        plan = plans[answer["plan"]]
        differences = differences_of(plan, answer, attempts)
        values[answer["plan"]] = found = round(wealth(differences), 6)
        told = {
            "e_process": found,
            "mean": np.mean(differences),
            "lower_bound": lower_bound(differences, plan["level"]),
        }[plan["rule"]]
        assert abs(answer["e_value"] - found) < 2e-6
        assert abs(answer["statistic"] - told) < 2e-6
    components = last.get("components", ())
    answered = {answer["plan"] for answer in kinds["holdout_answer"]}
    tested = all(
        part.get("plan", "") in answered
        and plans[part["plan"]]["metric"] == "quality"
        and part["name"] in plans[part["plan"]]["components"]
        for part in components
    )
    helped = any(e["kind"] == "hint" for e in kinds["intervention"])
    if quality["after"] >= quality["before"] and (not tested or helped or one["void"]):
        quality = dict.fromkeys(SETS, quality["before"])
    rejected = e_bh(values)
    return {
        "family": one["family"],
        "quality": quality,
        "size": min(len(sets[name]) for name in SETS),
        "lines": last.get("lines", 0),
        "proposals": last.get("proposals", 0),
        "confirmed": [part.get("plan", "") in rejected for part in components],
    }


def differences_of(plan, answer, attempts):
    """Return candidate less base by pair, of the holdout that answers a plan."""
    key = "logged" if plan["metric"] == "logged" else "quality"
    sides = {"base": {}, "candidate": {}}
    for attempt in attempts:
        if attempt["batch"] == answer["batch"]:
            assert attempt["draw"] == "holdout/" + plan["plan"]
            sides[attempt["condition"]][attempt["pair"]] = attempt[key]
    base, candidate = sides["base"], sides["candidate"]
    assert base.keys() == candidate.keys()
    return [candidate[pair] - base[pair] for pair in base]


def wealth(differences):
    """Return the mean over stakes of the product of 1 + stake x difference."""
    return float(np.mean([math.prod(1 + b * d for d in differences) for b in STAKES]))


def lower_bound(differences, level):
    size = len(differences)
    error = np.std(differences, ddof=1) / math.sqrt(size)
    return np.mean(differences) - stats.t.ppf(1 - level, size - 1) * error


def e_bh(values):
    """Return the plans rejected: the k largest, k / n x E_(k) at least 1 / level."""
    order = sorted(values, key=lambda plan: -values[plan])
    kept = 0
    for rank, plan in enumerate(order, 1):
        if values[plan] * rank * LEVEL >= len(order):
            kept = rank
    return set(order[:kept])
