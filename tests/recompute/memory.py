"""Axis M and the figures of the cognitive gate, from the probes of one arm.

Source: docs/scoring.md#axes and #gates.
"""

import math
from collections import defaultdict

import numpy as np
from scipy import optimize, stats

from tests.recompute.axes import base_rows, calibrated

FASTEST = 8.0  # forgetting per day that is told from any faster one
NEVER = 1e-6  # forgetting per day that counts as none


def probes(run, episodes):
    """Return the probes of base rows that were answered without help."""
    return [
        dict(probe, family=one["family"], repeat=one["entry"]["repeat"])
        for one in base_rows(episodes)
        for probe in one["probes"]
        if not probe["helped"]
    ]


def memory(run, episodes):
    """Return (M, recall@K); None each without evidence."""
    rules, asked = run.protocol["memory"], probes(run, episodes)
    recall = [p for p in asked if p["mode"] == "recall" and p["zero_tool"]]
    retrieval = [
        p
        for p in asked
        if p["mode"] == "retrieve" and p["lag_days"] >= rules["retrieval_days"] and p["later"]
    ]
    families = defaultdict(list)
    for probe in recall:
        families[probe["family"]].append(probe)
    enough = all(lags_and_items(own, rules) for own in families.values())
    if not recall or not retrieval or not enough:
        return None, None
    pooled = float(np.mean([found(p, rules["recall_at"]) for p in retrieval]))
    shares = [
        family_share(run, own, recall_of(run, retrieval, name, pooled))
        for name, own in families.items()
    ]
    return calibrated(run, "M", float(np.median(shares))), pooled


def lags_and_items(own, rules):
    lags = {probe["lag_days"] for probe in own}
    return (
        len(lags) >= rules["lags_min"]
        and max(lags) >= rules["longest_lag_days"]
        and len({probe["item"] for probe in own}) >= rules["items_min"]
    )


def found(probe, most):
    right = sum(verified for _, verified in probe["returned"][:most])
    return min(right / min(most, probe["relevant"]), 1.0)


def recall_of(run, retrieval, family, pooled):
    most = run.protocol["memory"]["recall_at"]
    own = [found(p, most) for p in retrieval if p["family"] == family]
    return float(np.mean(own)) if own else pooled


def family_share(run, own, recall):
    """Return sqrt(ret recall@K) of one family."""
    rules = run.protocol["memory"]
    lags = sorted({probe["lag_days"] for probe in own})
    trials = np.array([sum(p["lag_days"] == lag for p in own) for lag in lags])
    hits = np.array([sum(p["correct"] for p in own if p["lag_days"] == lag) for lag in lags])
    start, rate = fitted(hits, trials, np.array(lags))
    guess = float(np.mean([probe["guess"] for probe in own]))
    z = stats.norm.ppf(run.protocol["statistics"]["gate_level"])
    if start - guess <= z * math.sqrt(start * (1 - start) / trials[0]):
        return 0.0
    encoded = np.clip((start - guess) / (rules["full_encoding"] - guess), 0, 1)
    kept = np.clip(1 - rate * rules["half_life_days"] / math.log(2), 0, 1)
    return math.sqrt(encoded * kept * recall)


def fitted(hits, trials, lags):
    """Return r0 and lambda of the greatest likelihood, by the roots of its slopes."""
    if not hits.any():
        return 0.0, 0.0

    def excess(start, rate):  # expected less seen, weighted as the slope has it
        p = np.minimum(start * np.exp(-rate * lags), 1 - 1e-15)
        return (trials - hits) * p / (1 - p) - hits

    def best_start(rate):
        if excess(1.0, rate).sum() <= 0:
            return 1.0
        return optimize.brentq(lambda s: excess(s, rate).sum(), 1e-15, 1.0, xtol=1e-15, rtol=1e-14)

    def slope(rate):
        return (excess(best_start(rate), rate) * lags).sum()

    rate = 0.0
    if slope(0.0) > 0:
        rate = optimize.brentq(slope, 0.0, FASTEST, xtol=1e-14, rtol=1e-13)
    rate = 0.0 if rate < NEVER else rate
    return best_start(rate), rate


def cognition(run, episodes):
    """Return the figures of the cognitive gate by name, as its row prints them."""
    rules, asked = run.protocol["memory"], probes(run, episodes)
    retrieval = [p for p in asked if p["mode"] == "retrieve"]
    alone = [p for p in asked if p["zero_tool"]]
    late = [
        p["correct"]
        for p in alone
        if p["mode"] == "recall" and p["lag_days"] >= rules["delayed_days"]
    ]
    said = [p["correct"] for p in alone if p["mode"] == "fidelity"]
    slots = rules["recall_at"]
    precision = [sum(v for _, v in p["returned"][:slots]) / slots for p in retrieval]
    false = [
        p["contrary"] / len(p["returned"])
        for p in retrieval
        if p["returned"] and p["contrary"] is not None
    ]
    parts = {
        "VRP@5": np.mean(precision) if precision else None,
        "1 - HR@5": 1 - np.mean(false) if false else None,
        "span": span([p for p in alone if p["mode"] == "span"], rules),
        "delayed recall": np.mean(late) if late else None,
        "fidelity": np.mean(said) if said else None,
    }
    return {name: float(x) for name, x in parts.items() if x is not None}


def span(trials, rules):
    """Return the median over repeats of the longest length that is answered."""
    lengths = {p["repeat"]: defaultdict(list) for p in trials}
    count = defaultdict(int)
    for probe in trials:
        lengths[probe["repeat"]][probe["span"]].append(probe["correct"])
        count[probe["span"]] += 1
    ladder, n = [], rules["span_start"]
    while count[n] >= rules["span_trials"]:
        ladder.append(n)
        n += 1
    if not ladder:
        return None
    best = []
    for own in lengths.values():
        reached = 0
        for n in ladder:
            if not own[n] or np.mean(own[n]) < rules["span_accuracy"]:
                break
            reached = n
        best.append(reached)
    return float(np.median(best))
