"""Agents that answer without end: bounded, scored as theirs, and the run goes on."""

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

AGENTS = '''
class Flood:
    """Answers with 64 MiB, four times what a reply may have."""

    def reset(self, brief, tools, memory_dir):
        pass

    def act(self, observation, info):
        return "x" * (64 << 20)

    def close(self):
        pass


class Hoard(Flood):
    """Takes memory without end."""

    def act(self, observation, info):
        kept = []
        while True:
            kept.append(bytearray(64 << 20))
'''
DRIP = """
import sys, time
while True:
    sys.stdout.write(".")
    sys.stdout.flush()
    time.sleep(0.05)
"""


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("agent", "act_s", "outcome", "reason"),
    [
        ("floods:Flood", 60.0, "agent_raised", "a reply has at most 16777216 bytes"),
        pytest.param(*("floods:Hoard", 60.0, "agent_raised", ""), marks=pytest.mark.slow),
        pytest.param(
            *("python3 drip.py", 2.0, "agent_timeout", "no reply within 2 s"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_agent_alone_is_bounded_and_the_next_episode_is_played(
    tmp_path, agent, act_s, outcome, reason
):
    (tmp_path / "floods.py").write_text(AGENTS)
    (tmp_path / "drip.py").write_text(DRIP)
    draw = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), episodes=2)
    request = Request(agents=(agent,), draws=(draw,), budget=Budget(act_s=act_s))
    options = RunOptions(home=tmp_path / "home", folder=tmp_path)
    batch.play(request, tmp_path / "run", options)
    layout = RunLayout(tmp_path / "run")
    traces = [files.read_trace(layout, leaf) for leaf in files.rebuild_leaves(layout)]
    assert [trace.end.outcome for trace in traces] == [outcome, outcome]
    assert all(reason in trace.end.reason for trace in traces)
    assert all(leaf.leaf.status == "complete" for leaf in traces)
