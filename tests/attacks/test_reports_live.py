"""Runs that killed a report: each is judged, and what is missing is named."""

import html

import pytest

from owa_bench.envs.toolquest.detectors import DETECTORS
from owa_bench.envs.toolquest.oracle import ToolQuestOracle
from owa_bench.reports import statement
from owa_bench.reports.read import bundle
from owa_bench.runs.store import files
from tests.builders.small_runs import played, run_options, small  # noqa: F401  fixtures

HEAD = "from owa_bench.interfaces import Move\nfrom owa_bench.records.events import *\n"
FINISH = '{"tool": "finish", "arguments": {}}'
REVISION = "revision=Revision(step=0, proposal='p', decision='adopted', {})"
CALL = "model_calls=(ModelCall(step=0, model='m', prompt='p', reply='', {}),)"


@pytest.fixture
def reported(played, small, tmp_path):  # noqa: F811
    """Return a function that plays and judges a request: traces, judgement, page."""

    def play(*agents, **changes):
        layout = played(small(*agents, **changes))
        judgement = statement.write(layout.root, None)
        read = bundle.read(layout.root)
        traces = [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]
        assert read.plan.arms
        return traces, judgement, layout.page.read_text()

    return play


@pytest.mark.part(4)
@pytest.mark.parametrize(
    ("declared", "field"),
    [
        ("usage=(('tokens_in', 1e18),)", "`usage.tokens_in` lies in [0, 1e+07]"),
        ("usage=(('tokens_in', float('nan')),)", "$.usage[0][1]"),
        ("usage=(('tokens_in', float('inf')),)", "$.usage[0][1]"),
        ("beliefs=(('unit', float('nan')),)", "$.beliefs[0][1]"),
        (CALL.format("tokens_cached=10**18"), "`model_calls.tokens_cached` lies in"),
        (REVISION.format("fractions=(9.0, 0.0, 0.0)"), "fractions"),
        (REVISION.format("before=0.0, after=1e6"), "before"),
        (CALL.format("latency_s=1e300"), "`model_calls.latency_s` lies in"),
    ],
)
def test_declared_numbers_are_bounded_where_they_enter(reported, tmp_path, declared, field):
    agent = tmp_path / "declarer.py"
    body = f"def act(observation, info):\n    return Move({FINISH!r}, {declared})\n"
    agent.write_text(HEAD + body)
    (trace,), judgement, page = reported(str(agent))
    assert trace.end.outcome == "agent_raised"
    assert field in trace.end.reason
    [verdict] = judgement.verdicts
    assert next(axis for axis in verdict.axes if axis.symbol == "G").value == 0.0
    assert "crashed" in page


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("inspect", f"`inspect` of detector `{DETECTORS[0].rule.name}` of toolquest failed"),
        ("quality", "`quality` of the oracle of toolquest must lie in [0, 1], got 1.5"),
    ],
)
def test_what_a_suites_judge_does_wrong_is_named(reported, monkeypatch, part, words):
    """The attempt is the harness' failure, never scored; the report stands."""
    if part == "quality":
        monkeypatch.setattr(ToolQuestOracle, "quality", lambda *_: 1.5)
    else:
        monkeypatch.delattr(type(DETECTORS[0]), "inspect")
    traces, judgement, page = reported("noop")
    assert {trace.end.outcome for trace in traces} == {"infrastructure"}
    assert words in traces[0].end.reason
    if part == "inspect":
        assert "has no attribute 'inspect'" in traces[0].end.reason
    assert all(axis.value is None for axis in judgement.verdicts[0].axes)
    assert words in html.unescape(page)


def test_one_episode_of_one_family_is_judged(reported):
    """`--suite toolquest --family restock --tier 1`, six magnitudes, `--episodes 1`."""
    deltas = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
    traces, judgement, page = reported(
        "noop", "agentic", families=("restock",), deltas=deltas, episodes=1
    )
    assert len(traces) == 2 * len(deltas)
    for verdict in judgement.verdicts:
        axes = {axis.symbol: axis for axis in verdict.axes}
        assert axes["T"].value is None
        assert "axis `tool economy` failed" in axes["T"].reason
        assert axes["G"].value is not None
    assert "axis `tool economy` failed" in page
