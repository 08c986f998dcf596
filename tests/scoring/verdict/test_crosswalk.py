"""Crosswalk: figures of CHC domains from the families that test them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from owa_bench.records.score import CellTable
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.verdict.crosswalk import DOMAINS, TITLE, crosswalk_table
from tests.builders.columns import Columns
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of

DOCS = Path(__file__).parents[3] / "docs"


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
    found = judge(plan_of(traces), traces, PROTOCOL, PRICES, evidence_root=ROOT, replay_root=ROOT)
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
        for family, domains in re.findall(r"^\| `(\w+)` \| (G[\w, ]+) \|", page, re.MULTILINE)
    }
    for family, domains in said.items():
        found = {d.symbol for d in DOMAINS if family in d.families}
        assert found == domains, family


def sample(*rows: tuple[str, str, float, bool]) -> Any:
    """Return a sample of (family, task, quality, whether axes read it)."""
    family, pair, q, base = (np.array(column) for column in zip(*rows, strict=True))
    return SimpleNamespace(table=Columns(family=family, pair=pair, q=q), base=base)


def axes(**values: float | None) -> Any:
    whole = dict.fromkeys("GWPAMT$", 0.25) | {"T": None, "$": None} | values
    return {name: SimpleNamespace(value=value) for name, value in whole.items()}


def test_a_domain_is_the_mean_of_the_episodes_that_axes_read() -> None:
    table = crosswalk_table(
        sample(
            ("recall/learning", "a", 0.2, True),
            ("recall/learning", "a", 0.4, True),
            ("recall/spaced", "b", 0.9, True),
            ("recall/spaced", "c", 1.0, False),
            ("recall/retrieval", "d", 0.25, True),
        ),
        axes(M=0.5, W=None),
    )
    rows = {row[0]: row for row in table.rows}
    assert rows["Gls"][1:4] == ("long-term storage", 2, 0.5)
    assert rows["Gls"][4] < 0.5 < rows["Gls"][5]
    assert rows["Gls"][6] == "M 0.500"
    assert rows["Glr"][2:] == (1, 0.25, None, None, "M 0.500, W no evidence")
    assert rows["Gc"][2:6] == (0, None, None, None)
    assert rows["Gs"][2:] == ("not covered", None, None, None, "none")


@pytest.mark.parametrize(
    ("tools", "money", "storage", "retrieval", "words"),
    [
        (0.5, None, 0.49, 0.5, "high T (0.500) beside weak Gls (0.490)"),
        (0.49, None, 0.49, 0.5, "weak T (0.490) beside high Glr (0.500)"),
        (None, 0.75, 0.5, 0.25, "high $ (0.750) beside weak Glr (0.250)"),
        (0.5, 0.5, 0.5, 0.5, "none seen"),
        (0.4, 0.4, 0.4, 0.4, "none seen"),
        (None, None, 0.1, 0.9, "none seen"),
        (0.9, None, None, None, "not computable: no family of storage or retrieval"),
        (0.9, None, None, 0.1, "high T (0.900) beside weak Glr (0.100)"),
    ],
)
def test_a_discrepancy_is_a_high_axis_beside_a_weak_domain_or_the_converse(
    tools, money, storage, retrieval, words
) -> None:
    given = {"recall/learning": storage, "recall/retrieval": retrieval}
    rows = [(name, name, q, True) for name, q in given.items() if q is not None]
    rows.append(("recall/literacy", "x", 0.5, True))
    note = crosswalk_table(sample(*rows), axes(T=tools, **{"$": money})).note
    assert f"at 0.5: {words}" in note
    assert note.count(" beside ") == (1 if "beside" in words else 0)
