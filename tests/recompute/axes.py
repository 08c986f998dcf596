"""The axes of one arm, each a plain function; None where there is no evidence.

Source: docs/scoring.md#axes and the numbers of the run's protocol.
"""

import math
from collections import Counter, defaultdict

import numpy as np


def clip(x):
    return min(max(x, 0.0), 1.0)


def calibrated(run, symbol, raw):
    """Return N(raw; low, high); 1 is the oracle's own statistic."""
    if raw is None:
        return None
    anchor = run.protocol["anchors"][symbol]
    high = 1.0 if anchor["high"] == "oracle" else anchor["high"]
    return clip((raw - anchor["low"]) / (high - anchor["low"]))


def scored(episodes):
    """Return the episodes axes may rest on: holdout, else every day's checkpoints.

    Suites that are played once have holdout episodes beside the days of others.
    """
    plain = [
        one
        for one in episodes
        if not one["entry"]["condition"] and not one["entry"]["calendar"] and not one["honeypot"]
    ]
    holdout = [one for one in plain if one["entry"]["phase"] == "holdout"]
    once = {one["entry"]["suite"] for one in holdout}
    return holdout + [
        one
        for one in plain
        if one["entry"]["phase"] == "checkpoint" and one["entry"]["suite"] not in once
    ]


def base_rows(episodes):
    return [one for one in crew_rows(episodes) if not one["entry"]["control"]]


def crew_rows(episodes):
    """Return the rows without help, the controls of a crew's size among them."""
    return [one for one in scored(episodes) if one["entry"]["interventions"] == 0]


def task(one):
    entry = one["entry"]
    return entry["pair"], entry["repeat"], entry["delta"], entry["day"]


def family_weights(plan):
    """Return the weight of each family; a native suite counts only if alone."""
    weights = {}
    suites = [suite for suite in plan["suites"] if not suite["native"]]
    for suite in suites or plan["suites"]:
        own = dict(suite["family_weights"])
        shares = {name: own.get(name, 1.0) for name in suite["families"]}
        for name, share in shares.items():
            weights[f"{suite['name']}/{name}"] = suite["weight"] * share / sum(shares.values())
    return weights


def weighted(run, rows, read):
    """Return the mean with tasks alike inside a family and families by the plan."""
    weights = family_weights(run.plan)
    tasks = defaultdict(list)
    for one in rows:
        if one["family"] in weights:
            tasks[one["family"], one["entry"]["pair"]].append(read(one))
    families = defaultdict(list)
    for (family, _), values in tasks.items():
        families[family].append(np.mean(values))
    total = sum(weights[family] for family in families)
    if not total:
        return None
    return sum(weights[f] * np.mean(v) for f, v in families.items()) / total


def help_share(one):
    """Return a_t: 1 unaided, else h / (1 + k), times q_state where it failed."""
    if one["u"] and not one["k"]:
        return 1.0
    h = min(one["n"], one["H"]) / one["H"] if one["H"] else 1.0
    return h / (1 + one["k"]) * (1.0 if one["u"] else one["q_state"])


def autonomy(run, episodes):
    tasks = {task(one) for one in base_rows(episodes)}
    priced = [
        one
        for one in scored(episodes)
        if one["entry"]["interventions"] == "protocol"
        and not one["entry"]["control"]
        and task(one) in tasks
    ]
    return calibrated(run, "A", weighted(run, priced, help_share))


def generality(run, episodes):
    """Return the share of families whose mean quality is at threshold, all played."""
    rules, rows = run.protocol["generality"], base_rows(episodes)
    played = {one["family"] for one in rows} & set(family_weights(run.plan))
    if not played or played < set(family_weights(run.plan)):
        return None
    covered = [
        weighted(run, [one for one in rows if one["family"] == family], quality)
        >= rules["families"].get(family, rules["threshold"])
        for family in sorted(played)
    ]
    return calibrated(run, "G", float(np.mean(covered)))


def quality(one):
    return one["q"]


def planning(run, episodes):
    rows, share = base_rows(episodes), run.protocol["admissibility"]["depth_share"]
    rows = [one for one in rows if one["family"] in family_weights(run.plan)]
    for suite in {one["entry"]["suite"] for one in rows}:
        own = [one["start"] for one in rows if one["entry"]["suite"] == suite]
        cap = max(start.get("depth_cap", 0) for start in own)
        if np.mean([start["depth"] for start in own]) < share * cap:
            return None

    def most(one):
        return min(one["start"]["depth"], one["start"].get("depth_cap") or math.inf)

    possible = weighted(run, rows, most)
    if not possible:
        return None

    def reached(one):
        return min(one["d"], most(one)) * (1.0 if one["u"] else one["q_state"])

    return calibrated(run, "P", weighted(run, rows, reached) / possible)


def tool_economy(run, episodes):
    rules, grid = run.protocol["tools"], run.protocol["drift"]["magnitudes"]
    rows = [one for one in base_rows(episodes) if one["start"].get("needs_tools", True)]
    rows = [one for one in rows if one["family"] in family_weights(run.plan)]
    succ = []
    for delta in grid:
        own = [one for one in rows if one["entry"]["delta"] == delta]
        if not own:
            return None
        succ.append(weighted(run, own, lambda one: one["u"]))
    served = {
        (category, one["entry"]["pair"])
        for one in rows
        if one["entry"]["delta"]
        for category in one["categories"]
    }
    counts = Counter(category for category, _ in served)
    drifted = [one for one in rows if one["entry"]["delta"]]
    asked = {
        (category, one["entry"]["pair"])
        for one in drifted
        for category in one["start"].get("categories", ())
    }
    needs = Counter(category for category, _ in asked)
    used, needed = (
        sum(n >= rules["distinct_instances"] for n in found.values()) for found in (counts, needs)
    )
    size, whole = (
        min(1.0, math.log(1 + n) / math.log(1 + rules["size_prior"])) for n in (used, needed)
    )
    # the oracle's own statistic: all kinds that the tasks need, and every success
    return calibrated(run, "T", size / whole * float(np.trapezoid(succ, grid))) if whole else None


def world_model(run, episodes):
    """Return the Brier skill over classes that are frequent, known and vary.

    The reference is the better of the protocol's p and the share of each class here.
    """
    rules, rows = run.protocol["world_model"], base_rows(episodes)
    truths, stated = defaultdict(list), False
    for one in rows:
        for kind, y, p in one["propositions"]:
            truths[f"{one['entry']['suite']}/{kind}"].append(y)
            stated |= p is not None
    counted = {
        kind: rules["references"][kind]
        for kind, ys in truths.items()
        if kind in rules["references"] and len(ys) >= rules["class_min"] and len(set(ys)) > 1
    }
    own, assumed, by_class = [], [], defaultdict(lambda: [0.0, 0.0])
    for one in rows:
        suite = one["entry"]["suite"]
        kept = [x for x in one["propositions"] if f"{suite}/{x[0]}" in counted]
        if kept:
            known = [counted[f"{suite}/{kind}"] for kind, _, _ in kept]
            errors = [
                ((r if p is None else p) - y, r - y)
                for r, (_, y, p) in zip(known, kept, strict=True)
            ]
            # the package adds parts of episodes in millionths
            own.append(round(float(np.mean([error**2 for error, _ in errors])), 6))
            assumed.append(round(float(np.mean([error**2 for _, error in errors])), 6))
            for kind, y, _ in kept:
                by_class[kind][0] += 1 / len(kept)
                by_class[kind][1] += y / len(kept)
    if not own or not stated:
        return None
    hindsight = sum(true - true**2 / all_ for all_, true in by_class.values())
    best = min(np.mean(assumed), hindsight / len(own))
    floor = max(best, 1 / (rules["guard"] * len(own)))
    return calibrated(run, "W", 1 - np.mean(own) / floor)


def throughput(run, episodes):
    """Return the place of tasks per USD between two multiples of an expert's."""
    rules, rows = run.protocol["economics"], base_rows(episodes)
    rows = [one for one in rows if one["family"] in family_weights(run.plan)]
    costs = [usd_spent(one) for one in rows]
    if not rows or any(cost is None for cost in costs):
        return None
    usd = weighted(run, rows, usd_spent)
    if not usd:
        return None
    minute = run.prices["micro_usd_per_million"]["supervisor_min"] / 1e12
    expert = minute * weighted(run, rows, lambda one: expert_minutes(run, one))
    share = weighted(run, rows, lambda one: one["u"])
    if not share:
        return 0.0
    low, high = rules["low"] / expert, rules["high"] / expert
    place = clip(math.log(share / usd / low) / math.log(high / low))
    return place * min(1.0, share / rules["success_share"])


def usd_spent(one):
    """Return USD of agent and human, which a checkpoint books under evaluation."""
    streams = ["agent", "human"]
    if one["entry"]["phase"] == "checkpoint":
        streams.append("evaluation")
    costs = [one["cost"][stream] for stream in streams]
    return None if None in costs else sum(costs) / 1e6


def expert_minutes(run, one):
    """Return the minutes of reading, deciding and typing that an episode is."""
    rates, start = run.protocol["economics"]["expert"], one["start"]
    decision = rates["decision"].get(one["entry"]["suite"], rates["decision"]["other"])
    minutes = start.get("read", 0) / rates["reading"] + start.get("written", 0) / rates["typing"]
    return minutes + start.get("decisions", 0) * decision
