"""Expansion by a family that an agent discovers, played and judged by commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.records.events import Revision
from owa_bench.reports.read import bundle

pytestmark = pytest.mark.slow  # campaigns

ROOT = Path(__file__).parents[2]
RECORDER = ROOT / "benchmarks" / "record_runs.py"  # the same worlds every time
# The vendors of the placebo lane are of other families.
TERMS = (
    *("--suite", "toolquest", "--family", "reconcile", "--tier", "2"),
    *("--delta", "0,.5", "--interventions", "0", "--days", "1", "--practice", "30"),
    *("--holdout", "20", "--placebo", "restock", "--in-process"),
)


def played(agent: str, out: Path) -> dict:
    """Play and report a campaign; return its expansion closure as the report has it."""
    ran = (RECORDER, "--under", "5a" * 32, "run", *TERMS, "--agent", agent)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OWA_BENCH_HOME": f"{out}-home"}
    for words in ((*ran, "--out", out), ("-m", "owa_bench", "report", out)):
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=ROOT / "tests" / "builders",
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    judged = json.loads((out / "report.json").read_text())["judgement"]
    verdict = next(v for v in judged["verdicts"] if "(" not in v["arm"])
    return next(c for c in verdict["closures"] if c["name"] == "expansion")


@pytest.mark.part(4)
def test_a_family_that_was_worked_out_from_refusals_expands(tmp_path: Path) -> None:
    found = played("discovering", tmp_path / "run")
    assert found["status"] == "PASS", found["reason"]
    assert found["reason"].startswith("ledger, payments expands")
    texts = [
        event.proposal
        for trace in bundle.read(tmp_path / "run").traces()
        if trace.start.phase == "practice" and "placebo" not in trace.start.pair
        for event in trace.of(Revision)
        if event.decision == "adopted"
    ]
    assert len(texts) == 2
    assert all('"grant_type":"client_credentials"' in text for text in texts)


@pytest.mark.part(4)
def test_a_family_disabled_for_another_reason_does_not_expand(tmp_path: Path) -> None:
    """It learns the same, keeps it elsewhere, and fails where an empty family lacks."""
    found = played("revising_agents:Hoards", tmp_path / "run")
    assert found["status"] == "FAIL", found["reason"]


@pytest.mark.part(4)
def test_a_made_up_connector_does_not_expand(tmp_path: Path) -> None:
    found = played("revising_agents:MadeUp", tmp_path / "run")
    assert found["status"] == "FAIL", found["reason"]


@pytest.mark.part(4)
def test_who_only_declares_has_installed_nothing(tmp_path: Path) -> None:
    found = played("revising_agents:Declares", tmp_path / "run")
    assert found["status"] == "NOT TESTED", found["reason"]
