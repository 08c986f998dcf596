"""What a run says while it is played, when money runs out, and when it stops."""

import json

import pytest

from owa_bench.cli import run_output
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan

SMALL = "--suite toolquest --family restock --tier 1 --delta 0 --interventions 0"
NOWHERE = "--model-url http://127.0.0.1:9/v1"


def test_a_log_gets_a_line_a_minute(owa, place, monkeypatch):
    monkeypatch.setattr(run_output, "_MINUTE_S", 0.02)
    (place / "slow.py").write_text(
        "import json, time\n"
        "def act(observation, info):\n"
        "    time.sleep(0.1)\n"
        "    return json.dumps({'tool': 'finish', 'arguments': {}})\n"
    )
    said = owa(f"run --out x {SMALL} --episodes 4 --agent slow.py --in-process --json")
    assert said.code == 0
    assert json.loads(said.out)["complete"] == 4
    lines = [line for line in said.err.splitlines() if " min: " in line]
    assert "no episode has ended yet" in lines[0]
    assert any("of 4 episodes, 0 attempts failed, 0.00 USD, about" in x for x in lines)


def test_a_short_run_says_nothing_more(owa, monkeypatch):
    monkeypatch.setattr(run_output, "_MINUTE_S", 3600)  # short, however busy
    said = owa(f"run --out x {SMALL} --agent noop --in-process")
    assert " min: " not in said.err


@pytest.mark.slow
def test_a_run_whose_money_is_spent_says_so_and_on_the_page(owa, place):
    run = f"run --out x {SMALL} --episodes 6 --agent fixed --in-process"
    said = owa(f"{run} --budget usd=0.0015 --budget api_calls=500")
    assert said.code == 0
    budget = read_plan(RunLayout(place / "x")).budget
    assert budget.run_meters == (("usd", 0.0015),)
    assert budget.episode_meters == (("api_calls", 500.0),)
    assert "episodes were not played: the run's budget of usd is spent" in said.err
    assert "(spent: 0.00" in said.err
    assert owa("report x").code == 0
    page = (place / "x" / "report.html").read_text()
    assert "not played: budget" in page
    assert "the run&#39;s budget of usd was spent before its first step" in page


def test_money_bounds_what_a_run_can_cost(owa):
    run = f"run --out x {SMALL} --agent noop --dry-run --json"
    assert json.loads(owa(run).out)["cost_usd"] > 0.01
    bounded = json.loads(owa(f"{run} --budget usd=0.01").out)
    assert (bounded["cost_usd"], bounded["unknown"]) == (0.01, [])


@pytest.mark.slow
def test_a_run_whose_model_is_gone_stops_with_the_line_that_goes_on(owa, place):
    agent = "language-model:model=m,retries=0"
    run = f"run --out 'a run' {SMALL} --agent {agent} --episodes 12 {NOWHERE}"
    refused = owa(run)
    assert refused.code == 1
    assert "ConnectError" in refused.err
    assert not (place / "a run").exists()
    stopped = owa(f"{run} --no-preflight --failure-share 0.5")
    assert stopped.code == 5
    assert "language-model was stopped after three such episodes" in stopped.err
    assert "nothing listens at 127.0.0.1:9 (ConnectError)" in stopped.err
    line = "owa-bench run --out 'a run' --resume "
    again = f"{line}{NOWHERE} --no-preflight --failure-share 0.5"
    assert stopped.err.rstrip().endswith(again)
    assert owa(again.removeprefix("owa-bench ")).code == 5


def test_the_time_left_is_that_of_this_call():
    outcomes = run_output.Outcomes()
    assert outcomes.line(61.0) == "1 min: no episode has ended yet"
