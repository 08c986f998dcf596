"""The ceremony: submitter, verifier and reader, to the level of an agent at V4."""

import json

import pytest

from owa_bench.records.layout import RunLayout
from tests.builders.ceremony_run import hold_ceremony


@pytest.mark.part(4)
@pytest.mark.slow
def test_three_parties_reach_v4_of_a_placement(tmp_path):
    printed = hold_ceremony(tmp_path)
    assert "V4 now, V4 when signed" in printed
    assert "every seed is the master's" in printed
    assert "the key that you gave" in printed
    assert "looks, batches and stop follow from the traces" in printed
    assert "V4: a second party played every recorded action again" in printed
    assert (tmp_path / "place" / "board" / "index.html").exists()
    run = RunLayout(tmp_path / "place" / "run")
    plan, made = (json.loads(path.read_bytes()) for path in (run.plan, run.report))
    assert plan["placement"] is not None
    [verdict] = made["judgement"]["verdicts"]
    assert verdict["agent"] == "fixed"
    assert {gate["status"] for gate in verdict["gates"]} & {"BELOW"}  # it was decided, and stopped
    assert verdict["counted"] < len(plan["entries"])
