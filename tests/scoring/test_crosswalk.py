"""Crosswalk: figures of CHC domains from the families that test them."""

import re
from pathlib import Path

from owa_bench.records.score import CellTable
from owa_bench.scoring.crosswalk import DOMAINS, TITLE
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of

DOCS = Path(__file__).parents[2] / "docs"


def crosswalk(*families: tuple[str, float], suite: str = "recall") -> CellTable:
    """Return the table of a run with two tasks a family, of one q_state each."""
    traces = [
        episode(
            index=2 * i + j,
            suite=suite,
            family=family,
            pair=f"{family}{j}",
            q_state=quality,
            stated=quality,
        )
        for i, (family, quality) in enumerate(families)
        for j in range(2)
    ]
    found = judge(
        plan_of(traces), traces, PROTOCOL, PRICES, evidence_root=ROOT, replay_root=ROOT
    )
    return next(t for t in found.verdicts[0].tables if t.title == TITLE)


def test_a_domain_is_measured_by_its_own_families() -> None:
    table = crosswalk(("learning", 1.0), ("retrieval", 0.0))
    rows = {row[0]: row for row in table.rows}
    assert set(rows) == {domain.symbol for domain in DOMAINS}
    assert rows["Gls"][2] == rows["Glr"][2] == 2
    assert rows["Gls"][3] > 0.7 > 0.3 > rows["Glr"][3]
    assert rows["Gwm"][2:4] == (0, None)
    assert {rows[s][2] for s in ("Gv", "Ga", "Gq", "Gs")} == {"not covered"}


def test_a_discrepancy_is_named_and_its_absence_too() -> None:
    good = [(f"f{i}", 1.0) for i in range(6)]
    weak = crosswalk(("retrieval", 0.0), ("learning", 1.0), *good)
    assert "high $ (1.000) beside weak Glr" in weak.note
    assert "Gls" not in weak.note.partition(": ")[2]
    strong = crosswalk(("retrieval", 1.0), ("learning", 1.0), *good)
    assert "none seen" in strong.note
    other = crosswalk(("restock", 1.0), suite="toolquest")
    assert "not computable" in other.note


def test_the_families_are_those_of_the_suites_page() -> None:
    page = (DOCS / "recall.md").read_text()
    said = {
        f"recall/{family}": set(re.split(r", ?", domains))
        for family, domains in re.findall(
            r"^\| `(\w+)` \| (G[\w, ]+) \|", page, re.MULTILINE
        )
    }
    for family, domains in said.items():
        found = {d.symbol for d in DOMAINS if family in d.families}
        assert found == domains, family
