"""S, both lifts and S_net of one arm; None where there is no evidence.

Source: docs/scoring.md#axes.
"""

from itertools import groupby, pairwise

import numpy as np

from tests.recompute.axes import clip, crew_rows, family_weights, weighted

NOTHING = dict.fromkeys(("S", "lift", "lift over the muted crew", "S_net"))


def sociality(run, episodes):
    """Return the lift over C_1*, that over the muted crew too, and both less faults."""
    rules = run.protocol["sociality"]
    rows = [one for one in crew_rows(episodes) if one["entry"]["role_cap"] is not None]
    rows = [one for one in rows if not one["start"].get("no_lift")]
    alone = [one for one in rows if cap(one) == 1]
    muted = [one for one in rows if one["entry"]["muted"]]
    full = [one for one in rows if cap(one) > 1 and not one["entry"]["muted"]]
    repeats = sorted({one["entry"]["repeat"] for one in rows})
    if not (full and alone and len(repeats) > 1 and any(map(channel, rows))):
        return NOTHING
    share = rules["control_share"]
    if any(idle(control, full, share) for control in (alone, muted)):
        return NOTHING
    best = best_sizes(run, full, repeats)
    base = [one for one in alone if not one["entry"]["control"]]
    suites = {name.split("/")[0] for name in family_weights(run.plan)}
    assert len(suites) == 1, "C_1* is pooled over one suite"
    one_role = max(weighted(run, own, quality) for own in (alone, base or alone))
    if 1 - one_role < rules["room_min"]:
        return NOTHING
    crew = at_best(run, full, best, repeats, quality)
    silent = at_best(run, muted, best, repeats, quality) if muted else None
    lift = clip((crew - one_role) / (1 - one_role))
    tau = chatter_limit(rules, full)
    penalty = rules["penalty"] * sum(
        at_best(run, full, best, repeats, lambda o, j=j: flags(rules, o, tau)[j]) for j in range(4)
    )
    found = {"lift": lift, "S": clip(lift - penalty)}
    if silent is None:
        return NOTHING | found
    rival = max(silent, one_role)
    net = min(lift, clip((crew - rival) / (1 - rival))) if rival < 1 else 0.0
    return found | {"lift over the muted crew": net, "S_net": clip(net - penalty)}


def quality(one):
    return one["q"]


def cap(one):
    return one["entry"]["role_cap"]


def channel(one):
    """Return whether the suite's own fabric carried a message or made seats."""
    return bool(fabric(one)) or len(one["start"].get("seats", ())) > 1


def fabric(one):
    return [m for m in one["kinds"]["message"] if m.get("source") == "env"]


def idle(control, full, share):
    """Return whether a control that failed did too little, or saw too little new.

    Both are counted per seat.
    """
    failed = [one for one in control if not one["u"]]
    counts = (
        lambda one: len(one["kinds"]["action"]) / seats(one),
        lambda one: (
            len({(a.get("role", ""), a["observation"]) for a in one["kinds"]["action"]})
            / seats(one)
        ),
    )
    return bool(failed) and any(
        np.mean([count(o) for o in failed]) < share * np.mean([count(o) for o in full])
        for count in counts
    )


def seats(one):
    """Return how many seats played, 1 where there are none."""
    return max(len(one["start"].get("seats", ())), 1)


def half_of(rows, repeats, half):
    return [o for o in rows if repeats.index(o["entry"]["repeat"]) % 2 == half]


def best_sizes(run, full, repeats):
    """Return m* by half and family; of equal sizes that with fewer messages."""
    sizes = sorted({cap(one) for one in full})

    def talk(size):
        own = [o for o in full if cap(o) == size]
        steps = [max(len(o["kinds"]["action"]), 1) for o in own]
        pairs = zip(own, steps, strict=True)
        return np.mean([len(fabric(o)) / n for o, n in pairs])

    best = {}
    for half in (0, 1):
        rows = half_of(full, repeats, half)
        for family in {one["family"] for one in rows}:
            own = {m: [o for o in rows if cap(o) == m and o["family"] == family] for m in sizes}
            means = {m: weighted(run, part, quality) for m, part in own.items() if part}
            best[half, family] = max(means, key=lambda m: (round(means[m], 9), -talk(m)))
    return best


def at_best(run, rows, best, repeats, read):
    """Return the mean of both halves, each at the m* that the other half chose."""
    parts = []
    for half in (0, 1):
        own = half_of(rows, repeats, half)
        kept = [o for o in own if cap(o) == best.get((1 - half, o["family"]))]
        parts.append(weighted(run, kept, read))
    return sum(parts) / 2


def chatter_limit(rules, full):
    """Return tau: the floor, or the median tokens an action of the crew of two."""
    tokens = [spoken(one) for one in full if cap(one) == 2]
    return max(rules["chatter_floor"], float(np.median(tokens)) if tokens else 0.0)


def spoken(one):
    verified = sum(action["verified"] for action in one["kinds"]["action"])
    return sum(m.get("tokens", 0) for m in fabric(one)) / max(verified, 1)


def flags(rules, one, tau):
    """Return the four faults: conflict, loop, chatter, mode collapse."""
    conflicts = [c for c in one["kinds"]["conflict"] if c.get("source", "env") == "env"]
    last = {c["item"]: c.get("resolved", False) for c in conflicts}
    dull = [not a.get("novel") for a in one["kinds"]["action"]]
    idle_rounds = longest(dull) // seats(one)
    calls, said = {}, {}
    for c in one["kinds"]["call"]:
        words = c["method"], c["target"], c["request"]
        calls.setdefault(c.get("role", ""), []).append(words)
    for message in fabric(one):
        said.setdefault(message["sender"], []).append(message)
    cycle = max((cycled(x, p) for x in calls.values() for p in range(2, 6)), default=0)
    alike = [1 + longest([near(rules, *p) for p in pairwise(x)]) for x in said.values()]
    same = [len(list(run)) for own in calls.values() for _, run in groupby(own)]
    return (
        not all(last.values()),
        max(idle_rounds, cycle) >= rules["loop_turns"],
        spoken(one) > tau,
        max([*alike, *same], default=0) >= rules["collapse_turns"],
    )


def near(rules, one, other):
    """Return whether two messages are the same or their sketches are close."""
    if one["digest"] == other["digest"]:
        return True
    if not (one.get("sketch") and other.get("sketch")):
        return False
    gap = int(one["sketch"], 16) ^ int(other["sketch"], 16)
    return gap.bit_count() <= rules["near_bits"]


def longest(marks):
    return max((len(list(run)) for mark, run in groupby(marks) if mark), default=0)


def cycled(items, period):
    """Return the most items in a row that repeat those `period` before."""
    places = range(period, len(items))
    same = [items[i] == items[i - period] for i in places]
    varied = [len(set(items[i - period : i])) > 1 for i in places]
    return longest([a and b for a, b in zip(same, varied, strict=True)])
