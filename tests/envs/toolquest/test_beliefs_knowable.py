"""Every listed proposition is knowable on the task's own way.

What the oracle's own path was served, and at most three more looks (the vendors'
control totals), settle each proposition under drift.
"""

import json

import pytest

from owa_bench.envs.toolquest import wire_format
from owa_bench.envs.toolquest.goal import PROPOSITION_KINDS
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.shells.calls import call_text
from tests.builders.api_worlds import drawn
from tests.envs.toolquest.test_decidable import Served, unit

MOST_LOOKS = 3
CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]


class Seen(Served):
    """What the oracle was served on its way; control totals are looks beside it."""

    def __init__(self, timeline):
        env = SUITE.env(lambda _: timeline).unwrapped
        env.reset(options={"instance": timeline.instance})
        access, over = env.oracle_access(), False
        while not over:
            hint = access.oracle.hint(*access.observe())
            _, self.state = access.observe()
            *_, ended, cut, _ = env.step(call_text(hint["tool"], hint["arguments"]))
            over = ended or cut
        env.close()
        self.world = timeline.worlds[0]
        self.goal = json.loads(self.world.goal.spec)
        self.providers = {s["id"]: s["provider"] for s in self.goal["sources"]}
        self.homes = {source: vendor for vendor, source in self.world.needed}
        self.looks = set()
        self.lists = {source: self.rows(source) for source in self.homes}

    def rows(self, source):
        """Return the rows of a list that the oracle was served, by role."""
        provider = self.world.provider(self.homes[source])
        resource, table = provider.contract.resource(source), provider.table(source)
        bits = self.state.fetched.get((provider.key, source), 0)
        served = [row for i, row in enumerate(table.rows) if bits >> i & 1]
        wire = wire_format.render_rows(resource, table.columns, served)
        return [{f.key: row[f.name] for f in resource.fields} for row in wire]

    def total(self, source):
        """Look at the vendor's control totals; None without any."""
        provider = self.world.provider(self.homes[source])
        if not any(table.resource == "control" for table in provider.tables):
            return None
        self.looks.add(provider.key)
        rows = provider.table("control").rows
        return next((total for name, _, total in rows if name == source), None)

    def holds(self, claim):
        """Return whether a proposition holds, by what was served alone."""
        source = claim["source"]
        rows = self.lists[source]
        if claim["kind"] == "unit":
            return unit(self, source, claim["field"])[0] == claim["claim"]
        if claim["kind"] == "bound":
            where = claim["where"].items()
            [row] = [r for r in rows if all(self.means(source, r, *w) for w in where)]
            return row[claim["field"]]
        if claim["kind"] == "duplicate":
            first, second = (self.row_of(source, ident) for ident in claim["rows"])
            roles = claim.get("fields") or [role for role in first if role != "id"]
            fold = str.casefold if claim.get("fields") else str
            return all(fold(str(first[r])) == fold(str(second[r])) for r in roles)
        return self.agrees(source) == (claim["claim"] == "agree")

    def means(self, source, row, role, value):
        field = self.field(source, role)
        return row[role] == wire_format.to_wire(field, value)

    def field(self, source, role):
        provider = self.world.provider(self.homes[source])
        return provider.contract.resource(source).field(role)

    def row_of(self, source, ident):
        wire = wire_format.to_wire(self.field(source, "id"), ident)
        return next(row for row in self.lists[source] if row["id"] == wire)

    def agrees(self, source):
        """Return whether the documents that were read tell what was served."""
        provider = self.world.provider(self.homes[source])
        assert provider.key in self.state.docs
        told = provider.documented.resource(source)
        served = provider.contract.resource(source)
        same = [field.key for field in told.fields] == [f.key for f in served.fields]
        for name in ("path", "wrapper", "pager", "required"):
            same &= getattr(told, name) == getattr(served, name)
        for field in served.fields if same else ():
            stated = told.field(field.key)
            values = [row[field.key] for row in self.lists[source]]
            same &= stated.name == field.name and stated.style == field.style
            if field.choices:
                same &= {c.name for c in stated.choices} == set(values)
            if field.kind == "money":
                same &= unit(self, source, field.key)[0] == stated.unit
        return same


@pytest.mark.part(4)
@pytest.mark.parametrize("delta", [0.0, 0.5])
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_the_oracles_path_and_three_looks_show_every_proposition(family, tier, delta):
    kinds = set()
    for seed in range(4):
        timeline = drawn(family, tier, seed, "nested", delta)
        seen = Seen(timeline)
        truths = {t.name: t.truth for t in SUITE.oracle.propositions(timeline)}
        for claim in seen.goal["propositions"]:
            seen.looks.clear()
            assert seen.holds(claim) == truths[claim["id"]], (seed, claim)
            assert len(seen.looks) <= MOST_LOOKS
            kinds.add(claim["kind"])
    assert kinds == {kind.partition("_")[0] for kind in PROPOSITION_KINDS}
