"""Every figure of a report beside the one recomputed, by name.

Source: docs/check-a-report.md.
"""

from tests.recompute import axes, campaigns, composites, crews, memory

AXES = {
    "A": axes.autonomy,
    "G": axes.generality,
    "P": axes.planning,
    "T": axes.tool_economy,
    "W": axes.world_model,
    "$": axes.throughput,
}


def figures(run, verdict):
    """Yield (name, the report's figure, the recomputed one); None: missing."""
    arm = next(one for one in run.plan["arms"] if one["name"] == verdict["arm"])
    episodes = run.of_arm(arm["name"])
    values = {symbol: read(run, episodes) for symbol, read in AXES.items()}
    values["R"], gated = campaigns.self_revision(run, arm)
    crew = crews.sociality(run, episodes)
    values["S"] = crew["S"]
    values["M"], recalled = memory.memory(run, episodes)
    values["E"] = None if sides(episodes) <= {"sim"} else unseen(episodes, "")
    printed = {axis["symbol"]: axis for axis in verdict["axes"]}
    for symbol, axis in printed.items():
        yield symbol, axis["value"], values[symbol]
    beside = {s: axis["details"].get("beside", {}) for s, axis in printed.items()}
    for name in ("lift", "lift over the muted crew", "S_net"):
        yield name, beside.get("S", {}).get(name, {}).get("value"), crew[name]
    for name, cell in beside.get("M", {}).items():
        yield name, cell["value"], recalled
    yield from cognition_figures(run, episodes, verdict["gates"])
    if "R" in beside:
        place = beside["R"].get("gain over the placebo", {}).get("value")
        yield "R for gates", place, gated
    found = composites.indices(run, values)
    for index in verdict["indices"]:
        yield index["name"], index["value"], found[index["name"]]
    yield from frontier_figures(run, episodes, verdict["frontier"])
    yield from kappa_figures(run, arm, verdict["kappas"])
    yield from closure_figures(run, arm, verdict["closures"])


def cognition_figures(run, episodes, gates):
    """Yield the figures of the cognitive gate; its row prints three digits of each."""
    found = memory.cognition(run, episodes)
    for gate in gates:
        if gate["gate"] == "cognitive":
            said = gate["measured"]
            parts = [] if said == "nothing" else said.split(", ")
            shown = {name: float(x) for name, _, x in (p.rpartition(" ") for p in parts)}
            yield "cognitive gate", sorted(shown), sorted(found)
            for name, printed in shown.items():
                own = found.get(name, -1.0)
                near = abs(own - printed) <= 5.01e-4 * max(1.0, printed)
                yield name, printed, printed if near else own


def unseen(episodes, kind):
    """Return None where nothing of a kind was seen: no stored run holds it."""
    assert not any(one["kinds"][kind] for one in episodes), f"{kind} is not recomputed"


def sides(episodes):
    return {one["entry"]["side"] for one in episodes}


def frontier_figures(run, episodes, printed):
    found = composites.frontier(run, episodes) or {}
    for name in ("auf", "deleg", "deleg_cert"):
        yield name, printed[name], found.get(name)
    for name in ("auf_bounds", "deleg_bounds", "demand", "quality", "fitted", "low"):
        yield from each(name, printed[name], found.get(name))


def each(name, printed, found):
    """Yield a series place by place, its length first."""
    found = () if found is None else found
    yield f"{name}, length", len(printed), len(found)
    for place, pair in enumerate(zip(printed, found, strict=False)):
        yield (f"{name} {place}", *pair)


def kappa_figures(run, arm, printed):
    if printed:
        families = [score["family"] for score in printed]
        yield "kappas", families, [None, *campaigns.families_of_days(run)]
    for score in printed:
        family = score["family"]
        if family is None:
            series = index_by_day(run, arm)
            if None in series or min(series) <= 0:
                yield "kappa", score["slope"], None
                continue
            found, name = campaigns.kappa_of(run, arm, series), "kappa"
        else:
            found, name = campaigns.kappa(run, arm, family), f"kappa of {family}"
        yield f"{name}, days", score["checkpoints"], found["days"]
        for key in ("slope", "p", "logit", "logit_p"):
            yield f"{name}, {key}", score[key], found.get(key)
        shown, own = score.get("gain") or {}, found.get("gain") or {}
        for key in ("value", "low", "p", "units", "per_unit"):
            yield f"{name}, gain, {key}", shown.get(key), own.get(key)
        ends = found.get("interval", (None, None))
        yield f"{name}, low", score["interval"]["low"], ends[0]
        yield f"{name}, high", score["interval"]["high"], ends[1]
        for axis, place in (("R", 0), ("C", 1)):
            series = [
                [point[place] for point in all_] for all_ in (score["points"], found["points"])
            ]
            yield from each(f"{name}, {axis}", *series)


def index_by_day(run, arm):
    """Return AAI_dyn at each day's checkpoint, None where an axis is missing."""
    days = campaigns.checkpoints(run, arm)[1]
    days_run, weights = campaigns.daily(run), composites.states(run)
    own = [one for one in run.of_arm(arm["name"]) if one["entry"]["phase"] == "checkpoint"]
    series = []
    for day in days:
        rows = campaigns.on_day(own, day)
        values = {symbol: read(days_run, rows) for symbol, read in AXES.items()}
        values["M"], _ = memory.memory(days_run, rows)
        values["S"] = crews.sociality(days_run, rows)["S"]
        series.append(composites.geometric(values, weights))
    return series


def closure_figures(run, arm, printed):
    status, theta, lower = campaigns.maintenance(run, arm)
    for closure in printed:
        if closure["name"] == "maintenance":
            yield "maintenance", closure["status"], status
            yield "theta", closure["details"].get("theta"), theta
            yield "bound of theta", closure["details"].get("lower bound"), lower
        else:
            tools = campaigns.installed(run, arm)
            assert not tools, f"expansion by {tools} is not recomputed"
            yield closure["name"], closure["status"], "NOT TESTED"
