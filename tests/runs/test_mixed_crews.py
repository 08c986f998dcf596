"""Different agents on different seats of one crew, in real runs."""

import shutil
from dataclasses import replace

import pytest

from owa_bench.errors import AgentSpecError
from owa_bench.hosting.spec import load_agent
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

DYING = """
import os, signal

class Agent:
    def reset(self, brief, tools, memory_dir):
        self.left = 3

    def act(self, observation, info):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return '{"tool": "pass_turn", "arguments": {}}'

    def close(self):
        pass
"""


def request(text, family="contract"):
    draw = Draw(
        name="multicrew",
        families=(family,),
        tiers=(2,),
        deltas=(0.0,),
        episodes=2,
        interventions=(0,),
    )
    return Request(agents=(text,), draws=(draw,), name="mixed")


def test_an_agent_of_each_role_and_one_for_all_others():
    crew = load_agent("seats:design=list_scheduler;*=fifo")
    assert crew.name == "fifo+design=list_scheduler"
    assert (crew.of("design").name, crew.of("lead").name) == ("list_scheduler", "fifo")
    assert crew.fingerprint != load_agent("seats:design=fifo;*=fifo").fingerprint


@pytest.mark.parametrize(
    "text", ["design=fifo", "design=fifo;design=fifo;*=fifo", "*=oracle", "*=client:x"]
)
def test_what_is_no_mixed_crew_is_refused(text):
    with pytest.raises(AgentSpecError, match="`--seat"):
        load_agent(f"seats:{text}")


FAMILIES = ("contract", "codebase")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_killed_seat_is_named_in_the_trace(tmp_path, family):
    (tmp_path / "dying.py").write_text(DYING)
    options = RunOptions(home=tmp_path / "home", folder=tmp_path)
    text = "seats:design=dying.py;*=fifo"
    batch.play(request(text, family), tmp_path / "run", options)
    layout = RunLayout(tmp_path / "run")
    for leaf in files.read_leaves(layout):
        trace = files.read_trace(layout, leaf)
        assert trace.start.agent == text
        assert trace.end.outcome == "agent_raised"
        assert trace.end.reason.startswith("design: ")
        assert "SIGKILL" in trace.end.reason


@pytest.mark.part(2)
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_mixed_crew_leaves_one_replay_root_with_one_and_two_workers(tmp_path, family):
    text, roots = "seats:design=list_scheduler;*=fifo", set()
    options = RunOptions(home=tmp_path / "home", folder=tmp_path)
    batch.play(request(text, family), tmp_path / "plan", options, plan_only=True)
    for workers in (1, 2):
        out = tmp_path / f"by-{workers}"
        shutil.copytree(tmp_path / "plan", out)
        played = batch.resume(out, replace(options, workers=workers))
        assert played.missing == 0
        roots.add(played.replay_root)
    assert len(roots) == 1


@pytest.mark.slow
def test_a_human_colleague_is_paid_in_the_human_stream_of_a_signed_report(tmp_path):
    options = RunOptions(home=tmp_path / "home", folder=tmp_path)
    costs = {}
    for family in ("contract", "human/contract"):
        out = tmp_path / family.replace("/", "-")
        batch.play(request("fifo", family), out, options)
        (verdict,) = statement.write(out, None).verdicts
        costs[family] = verdict.cost_micro_usd["human"]
    assert costs["contract"] == 0
    assert costs["human/contract"] > 0
