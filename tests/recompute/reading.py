"""A run directory as plain dictionaries: plan, protocol, price card, counted episodes.

Nothing here imports the package whose figures are checked. Source: docs/traces.md.
"""

import json
import math
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

import zstandard

DECLARATIONS = "agent"  # source of what an agent says about itself: never priced
UNCOUNTED = {"docker", "local address", "remote", "client", "person", "reader"}


@dataclass
class Run:
    """What a run directory says: its terms, its entries, its counted episodes."""

    plan: dict
    protocol: dict
    prices: dict
    report: dict
    episodes: list = field(default_factory=list)
    lost: list = field(default_factory=list)  # attempts that the harness lost

    def of_arm(self, name):
        return [one for one in self.episodes if one["entry"]["arm"] == name]


def read_run(folder):
    run = Run(
        plan=json.loads((folder / "plan.json").read_bytes()),
        protocol=tomllib.loads((folder / "protocol.toml").read_text()),
        prices=tomllib.loads((folder / "price_card.toml").read_text()),
        report=json.loads((folder / "report.json").read_bytes()),
    )
    attempts = read_attempts(sorted((folder / "trace").glob("*.jsonl.zst")))
    last, entries = {}, run.plan["entries"]
    for name, (events, closing) in attempts.items():
        index, number = (int(part) for part in name.split("."))
        complete = closing and closing["status"] == "complete"
        if complete and events[-1]["outcome"] != "infrastructure":
            last[index] = max(last.get(index, (-1, "")), (number, name))
    for name, (events, _) in attempts.items():
        index = int(name.split(".")[0])
        kept = run.episodes if last.get(index, ("", ""))[1] == name else run.lost
        if kept is run.episodes or events[-1]["event"] == "episode_end":
            kept.append(episode_of(entries[index], events, run.prices))
    return run


def read_attempts(shards):
    """Return {attempt id: [its events, its closing line or None]}."""
    attempts = defaultdict(lambda: [[], None])
    for path in shards:
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            lines = reader.read().splitlines()
        current = None
        for record in map(json.loads, lines):
            if "attempt_id" in record:
                current = attempts[record["attempt_id"]]
            elif "closing" in record:
                attempts[record["closing"]][1] = record
            elif "event" in record:
                current[0].append(record)
    return attempts


def episode_of(entry, events, prices):
    """Return the observables of one episode: everything that axes read."""
    start, end = events[0], events[-1]
    kinds = defaultdict(list)
    for event in events:
        kinds[event["event"]].append(event)
    void = any(event["severity"] == "disqualify" for event in kinds["violation"])
    q_state = 0.0 if void else end["q_state"]
    success = not void and q_state >= start["theta"]
    granted = [e for e in kinds["intervention"] if e["kind"] != "refused"]
    return {
        "entry": entry,
        "start": start,
        "kinds": kinds,
        "void": void,
        "q_state": q_state,
        "q": 0.0 if void else end["quality"],
        "u": float(success),
        "k": len(granted),
        "n": 0 if void else longest_segment(events),
        "d": 0 if void else longest_path(kinds["subgoal"]),
        "horizon": start["horizon"],
        "H": min(start["horizon"], start.get("horizon_cap") or math.inf),
        "categories": kinds_of_tool(start, kinds["action"]) if success else set(),
        "propositions": propositions(kinds, void=void),
        "probes": memory_probes(events, void=void),
        "cost": cost_by_stream(kinds, start, prices),
        "family": entry["suite"] + "/" + entry["family"],
        "honeypot": start.get("honeypot", False),
    }


def longest_segment(events):
    """Return n: the most verified actions between two granted interventions."""
    best = run = 0
    for event in events:
        if event["event"] == "action" and event["verified"]:
            run += 1
            best = max(best, run)
        elif event["event"] == "intervention" and event["kind"] != "refused":
            run = 0
    return best


def longest_path(subgoals):
    """Return d: the longest path over flows; its last node must flow on or be final."""
    flows = {e["node"]: e.get("flows", ()) for e in subgoals}
    useful = {name for above in flows.values() for name in above}
    useful |= {e["node"] for e in subgoals if e.get("final")}

    def length(node):
        return 1 + max((length(p) for p in flows[node] if p in flows), default=0)

    return max((length(node) - (node not in useful) for node in flows), default=0)


def kinds_of_tool(start, actions):
    """Return the kinds that the task needs, of calls up to the last verified action."""
    last = max((a["step"] for a in actions if a["verified"]), default=0)
    called = {action.get("category") for action in actions if action["step"] <= last}
    return called & set(start.get("categories", ()))


def propositions(kinds, *, void):
    """Return (suite-less class, y, last p before the deadline or None) each."""
    found = []
    for event in kinds["resolution"]:
        if event["kind"] == "own_success":
            continue
        deadline = event.get("deadline_ms")
        stated = [
            belief["p"]
            for belief in kinds["belief"]
            if belief["proposition"] == event["proposition"]
            and (deadline is None or belief.get("at_ms", 0) < deadline)
        ]
        p = min(max(stated[-1], 0.0), 1.0) if stated and not void else None
        found.append((event["kind"], float(event["y"]), p))
    return found


def memory_probes(events, *, void):
    """Return the memory probes as asked; in a void episode all are wrong."""
    found, offers, sittings, helped = [], {}, {}, False
    answering = {"answer", "go_on", "finish", "declare_infeasible"}
    for event in events:
        kind, role = event["event"], event.get("role", "")
        if kind == "tools":
            offers[role] = set(event["names"])
        elif kind == "sitting":
            sittings[role] = event["number"]
        elif kind == "intervention":
            helped |= event["kind"] != "refused"
        elif kind == "probe":
            returned = [(e, v and not void) for e, v in event.get("returned", ())]
            contrary, shown = event.get("contrary"), event.get("sitting")
            probe = {
                "item": event["item"],
                "mode": event.get("mode", "recall"),
                "lag_days": event["lag_days"],
                "span": event.get("span", 0),
                "guess": event.get("guess", 0.0),
                "relevant": event.get("relevant", 1),
                "correct": event["correct"] and not void,
                "returned": returned,
                "contrary": len(returned) if void and returned else contrary,
                "zero_tool": offers.get(role, {"unknown"}) <= answering,
                "later": shown is None or shown < sittings.get(role, 0),
                "helped": helped,
            }
            found.append(probe)
    return found


def cost_by_stream(kinds, start, prices):
    """Return micro-USD by stream; None where a price or an amount is unknown."""
    amounts, declared, seen = defaultdict(list), defaultdict(float), defaultdict(float)
    for event in kinds["resource"]:
        if event.get("source") == DECLARATIONS:
            declared[event["meter"]] += event["amount"]
        else:
            seen[event["meter"]] += event["amount"]
            stream = event.get("stream", "agent")
            amounts[stream, event["meter"]].append(event["amount"])
    total = {"agent": 0, "human": 0, "evaluation": 0}
    for (stream, meter), parts in amounts.items():
        amount, price = math.fsum(parts), prices["micro_usd_per_million"].get(meter)
        if amount == 0:
            continue
        if price is None or total[stream] is None:
            total[stream] = None
            continue
        exact = Decimal(repr(float(amount))) * price / 10**6
        total[stream] += int(exact.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
    if (
        start.get("hosting") in UNCOUNTED
        or any(not model.get("metered", True) for model in kinds["model"])
        or any(not egress.get("refused") for egress in kinds["egress"])
        or any(amount > seen[meter] for meter, amount in declared.items())
    ):
        total["agent"] = total["evaluation"] = None
    return total
