"""The paper's archetypes: what level they have, and under which assumptions."""

import numpy as np
import pytest

from owa_bench.scoring.gate import LevelPlacement, judge_gates, place
from tests.builders.episodes import PROTOCOL
from tests.builders.synthetic_rows import (
    ROWS,
    SEED_INDEX,
    SEED_KAPPA,
    SUPPLEMENT,
    findings,
    recomputed,
)


def placed(name: str, *, supplied: bool) -> LevelPlacement:
    return place(judge_gates(findings(name, supplied=supplied)), PROTOCOL)


@pytest.mark.parametrize(
    ("name", "level"),
    [("RPA Bot", 0), ("Agentic LLM", 1), ("Self-Improving", 2), ("Orchestrator", 2)],
)
def test_with_the_supplement_the_rows_are_placed(name: str, level: int) -> None:
    assert all("assumed" in line for line in SUPPLEMENT)
    assert placed(name, supplied=True).level == level


def test_kappa_on_two_of_three_families_alone_keeps_the_orchestrator_down() -> None:
    gates = placed("Orchestrator", supplied=True).gates
    short = [g for g in gates if g.level == 3 and g.status != "PASS"]
    assert [(g.gate, g.status) for g in short] == [("kappa", "UNDECIDED")]
    assert short[0].measured == "2 of 3 families: family 0, family 1"


def test_without_the_supplement_no_row_is_placed() -> None:
    """The seed gives no bounds, so nothing tests that the scripted row is below AAI-1."""
    rpa = placed("RPA Bot", supplied=True)
    assert (rpa.level, rpa.text) == (0, "AAI-0, below AAI-1 (G, P BELOW)")
    for name in ROWS:
        found = placed(name, supplied=False)
        assert found.level is None
        assert found.text == "not placed (no evidence on A, G, P, T)"
        lacking = {g.gate for g in found.gates if g.status == "NO EVIDENCE"}
        assert {"kappa", "maintenance closure", "cognitive", "assurance"} <= lacking
        assert all(g.reason for g in found.gates if g.status == "NO EVIDENCE")


def test_the_seeds_index_column_is_not_its_own_equation() -> None:
    ours = {name: round(recomputed(name), 3) for name in ROWS}
    assert ours["RPA Bot"] == ours["Agentic LLM"] == 0.0
    assert ours["Self-Improving"] == pytest.approx(0.439, abs=0.002)
    assert ours["Orchestrator"] == pytest.approx(0.551, abs=0.005)
    means = {name: float(np.mean(row)) for name, row in ROWS.items()}
    arithmetic = {n for n in ROWS if round(means[n], 2) == SEED_INDEX[n]}
    assert arithmetic == {"Agentic LLM", "Self-Improving"}
    assert all(abs(ours[name] - SEED_INDEX[name]) > 0.02 for name in ROWS)
    assert SEED_KAPPA["Orchestrator"] > SEED_KAPPA["Self-Improving"]
