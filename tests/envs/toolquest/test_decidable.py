"""Every silent change is entailed by what is served and what the goal states.

A solver without privilege fetches everything by itself. From its rows, the documents'
names, control totals and the invariants that the goal states it must conclude the
truth; which evidence settles which operator in which family stands in
docs/toolquest.md#decidable.
"""

import json
import re
from collections import defaultdict
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from owa_bench.agents.solvers.api_solver.resource_table import number
from owa_bench.envs.toolquest.suite import SUITE
from tests.builders.api_worlds import drawn
from tests.envs.toolquest.test_knowable import gathered

PAGE = Path(__file__).parents[3] / "docs" / "toolquest.md"
OPERATORS = ("silent_units", "enum_rename", "date_bound")
SEEDS = range(8)
UNDOCUMENTED = 4  # the tier whose documents are missing or old
DRAWN = [(tier, seed) for tier in (1, 3, UNDOCUMENTED) for seed in SEEDS]


class Served:
    """What a solver has of an episode: the goal, and every list by role as served."""

    def __init__(self, timeline, folder):
        job, _ = gathered(timeline, folder)
        self.goal = json.loads(timeline.worlds[0].goal.spec)
        about = {s["id"]: s["fields"] for s in self.goal["sources"]}
        self.lists = {
            name: [
                {role: row.get(wire) for role, wire in names.items()} for row in table.fetched.rows
            ]
            for name, table in job.task.tables.items()
            for names in [by_type(table.names, table.fetched.rows, about[name])]
        }
        served = [str(table.fetched.rows) for table in job.task.tables.values()]
        # What no document names may be found with help only: another list was taken.
        self.found = {
            name
            for name, table in job.task.tables.items()
            if served.count(str(table.fetched.rows)) == 1
        }
        self.providers = {s["id"]: s["provider"] for s in self.goal["sources"]}

    def stated(self, kind, source=""):
        """Return the invariants of a kind that are about a source."""
        return [
            one
            for one in self.goal["invariants"]
            if one["kind"] == kind
            and (not one["of"] or source in {of.partition(".")[0] for of in one["of"]})
        ]

    def total(self, source):
        """Return the control total of a list in cents, None without one."""
        for name, rows in self.lists.items():
            if "control" in name and self.providers[name] == self.providers[source]:
                for row in rows:
                    if row["list"] == source:
                        return row["total"]
        return None


def by_type(names, rows, about):
    """Return the columns by role; no document names them, their values must fit."""
    names = dict(names)
    for role, words in about.items():
        fits = is_amount if role in MONEY else listed(words)
        if fits and not fits([row.get(names.get(role)) for row in rows]):
            columns = {c for row in rows for c in row}
            free = [c for c in sorted(columns) if fits([row.get(c) for row in rows])]
            if len(free) == 1:
                names[role] = free[0]
    return names


MONEY = (
    *("amount", "cost", "credit", "loss", "opening", "price", "seat_price"),
    *("total", "value"),
)


def is_amount(values):
    """Return whether all values are numbers, as text or not."""
    return all(
        re.fullmatch(r"-?\d+(\.\d+)?", str(value))
        for value in values
        if not isinstance(value, bool)
    ) and not any(isinstance(value, bool) for value in values)


def listed(words):
    """Return the test for a role whose description lists its values, else None."""
    known = re.split(r", | or ", words.rpartition(": ")[2].rstrip("."))
    if ": " not in words or len(known) < 2:
        return None
    return lambda values: len(set(known) & set(map(str, values))) >= len(known) - 1


def unit(served, source, role):
    """Return the unit of a money field and the evidence that settles it."""
    amounts = [number(row[role]) for row in served.lists[source]]
    total = served.total(source)
    if total is not None:
        fits = {"cents": sum(amounts), "dollars": sum(round(100 * a) for a in amounts)}
        [found] = [name for name, added in fits.items() if round(added) == total]
        return found, "totals"
    if served.stated("cents", source):
        whole = all(amount == int(amount) for amount in amounts)
        return "cents" if whole else "dollars", "cents"
    [stated] = served.stated("counterpart", source)
    [other] = [of for of in stated["of"] if of != f"{source}.{role}"]
    there, field = other.split(".")
    known, _ = unit(served, there, field)
    scale = 100 if known == "dollars" else 1
    theirs = {(row["reference"], round(scale * number(row[field]))) for row in served.lists[there]}
    shared = {
        name: sum(
            (row["reference"], round(times * number(row[role]))) in theirs
            for row in served.lists[source]
        )
        for name, times in (("cents", 1), ("dollars", 100))
    }
    [found] = [name for name, count in shared.items() if count]
    return found, "counterpart"


def value(served, source, role):
    """Return the served name -> meaning where one value goes by another name."""
    about = next(s for s in served.goal["sources"] if s["id"] == source)["fields"][role]
    listed = re.split(r", | or ", about.rpartition(": ")[2].rstrip("."))
    present = {row[role] for row in served.lists[source]}
    strange, missing = present - set(listed), set(listed) - present
    if not strange:
        return {}, "values"
    [new], [old] = strange, missing  # every other value goes by its own name
    return {new: old}, "values"


def shift(served, source):
    """Return by how many days the ends of periods are served early."""
    assert served.stated("gapless", source)
    lines = defaultdict(list)
    for row in served.lists[source]:
        known = ("first_day", "last_day", "last_day_included", "seat_price", "rate")
        group = row.get("entitlement", row.get("currency"))
        assert set(row) <= {*known, "entitlement", "currency", "name"}
        lines[group].append(row)
    offsets = set()
    for line in lines.values():
        line.sort(key=lambda row: row["first_day"])
        for row, following in pairwise(line):
            due = date.fromisoformat(following["first_day"])
            due -= timedelta(days=bool(row["last_day_included"]))
            offsets.add((due - date.fromisoformat(row["last_day"])).days)
    [found] = offsets
    return found, "gapless"


def verdicts(served, timeline, operator):
    """Yield (concluded, true, evidence) for every field the operator can change."""
    world = timeline.worlds[0]
    for vendor, source in world.needed:
        provider = world.provider(vendor)
        if source not in served.found and world.tier == UNDOCUMENTED:
            continue
        for field in provider.contract.resource(source).fields:
            if operator == "silent_units" and field.kind == "money":
                yield *unit(served, source, field.key), field.unit
            elif operator == "enum_rename" and field.choices:
                true = {c.name: c.value for c in field.choices if c.name != c.value}
                yield *value(served, source, field.key), true
            elif operator == "date_bound" and field.bound:
                yield *shift(served, source), -field.shift


@pytest.mark.part(5)
@pytest.mark.parametrize("family", SUITE.card.families)
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_silent_change_is_entailed_by_what_is_served(operator, family, tmp_path):
    evidence = set()
    for tier, seed in DRAWN:
        drift = f"single:api/{operator}"
        timeline = drawn(family, tier, seed, drift)
        served = Served(timeline, tmp_path / f"{tier}-{seed}")
        for concluded, kind, true in verdicts(served, timeline, operator):
            assert concluded == true, (tier, seed)
            evidence.add(kind)
    assert documented(operator, family) >= evidence
    assert bool(documented(operator, family)) == bool(evidence)


def documented(operator, family):
    """Return the evidence that the page names for an operator in a family."""
    words = PAGE.read_text()
    section = words.split("## Decidable")[1].split("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line[:1] == "|"]
    head = [cell.strip() for cell in rows[0]]
    row = next(r for r in rows if r[0].strip() == f"`{family}`")
    cell = row[head.index(operator)].strip()
    return set() if cell == "-" else set(cell.split(", "))


@pytest.mark.parametrize("family", SUITE.card.families)
def test_an_invariant_that_a_goal_states_holds_in_its_world(family):
    for seed in range(60):
        timeline = drawn(family, 1 + seed % 4, seed)
        world = timeline.worlds[0]
        for one in json.loads(world.goal.spec)["invariants"]:
            tables = {
                table.resource: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                for vendor in dict.fromkeys(vendor for vendor, _ in world.needed)
                for table in world.provider(vendor).tables
            }
            assert HOLDS[one["kind"]](world, tables, one["of"]), (seed, one)


def _has_cents(world, tables, _):
    return all(
        any(row[field.key] % 100 for row in tables[source])
        for vendor, source in world.needed
        for field in world.provider(vendor).contract.resource(source).fields
        if field.kind == "money"
    )


def _is_gapless(_, tables, of):
    lines = defaultdict(list)
    for row in tables[of[0]]:
        lines[row.get("entitlement", row.get("currency"))].append(row)
    for line in lines.values():
        line.sort(key=lambda row: row["first_day"])
        ends = [
            date.fromisoformat(row["last_day"]) + timedelta(row["last_day_included"])
            for row in line
        ]
        due = [date.fromisoformat(row["first_day"]) for row in line[1:]]
        if ends[:-1] != due or (of[0] != "windows" and ends[-1] != date(2032, 1, 1)):
            return False
    return True


def _has_counterparts(_, tables, of):
    first, second = (
        {(row["reference"], row[role]) for row in tables[source]}
        for source, role in (place.split(".") for place in of)
    )
    return bool(first & second)


HOLDS = {"cents": _has_cents, "gapless": _is_gapless, "counterpart": _has_counterparts}
