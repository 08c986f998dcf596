"""A and P cannot be bought: by pages, by asking, by fetching, by pasting. Real runs."""

import json

import pytest

from owa_bench.records.events import ENCODER
from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from tests.builders import buying_policies
from tests.conftest import draw_nothing

pytestmark = pytest.mark.slow  # real runs

OWN = ("oracle", "noop", "random", "plausible_wrong")
AGENTS = (*OWN, *(f"policy:{name}" for name in buying_policies.BUYING))


@pytest.fixture(scope="module")
def bought(tmp_path_factory):
    """Return axes and traces by arm of one run over three families and two tiers."""
    folder = tmp_path_factory.mktemp("bought")
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        buying_policies.register(patch)
        draw = Draw(
            name="toolquest",
            families=("reconcile", "sla_report", "incident_timeline"),
            tiers=(1, 3),
            deltas=(0.0,),
            interventions=(0, "protocol"),
        )
        request = Request(agents=AGENTS, draws=(draw,))
        batch.play(request, folder / "run", RunOptions(home=folder, in_process=True))
        layout = RunLayout(folder / "run")
        judgement = statement.write(layout.root, None)
    axes = {v.arm: {a.symbol: a for a in v.axes} for v in judgement.verdicts}
    traces = {}
    for leaf in files.read_leaves(layout):
        trace = files.read_trace(layout, leaf)
        traces.setdefault(trace.start.arm, []).append(trace)
    return axes, traces


def lines(trace):
    """Return the events of a trace as the plain objects of its lines."""
    return [json.loads(line) for line in map(ENCODER.encode, trace.events)]


def test_the_oracle_reads_1_and_the_floors_next_to_nothing(bought):
    axes, _ = bought
    assert {axes["oracle"][symbol].value for symbol in "AP"} == {1.0}
    for floor in ("noop", "random"):
        assert axes[floor]["A"].value <= 0.05
        assert axes[floor]["P"].value <= 0.05


@pytest.mark.parametrize("arm", ["fetch_and_quit", "plausible_wrong", "always_asker"])
def test_work_without_a_result_and_help_without_end_buy_no_autonomy(bought, arm):
    axes, _ = bought
    assert axes[arm]["A"].value <= 0.2


@pytest.mark.parametrize("arm", ["hint_first", "hint_last"])
def test_one_hint_costs_half_wherever_it_is_taken(bought, arm):
    axes, traces = bought
    assert axes[arm]["G"].value == 1.0  # without help it succeeds as the oracle does
    priced = [trace for trace in traces[arm] if trace.start.priced]
    helped = [sum(e["kind"] == "hint" for e in of(t, "intervention")) for t in priced]
    assert helped == [1] * len(priced)
    assert all(trace.end.success for trace in priced)
    assert axes[arm]["A"].value <= 0.5


def test_the_protocols_budget_is_settled_by_the_instance_and_recorded(bought):
    _, traces = bought
    for trace in traces["always_asker"]:
        granted = sum(e["kind"] == "hint" for e in of(trace, "intervention"))
        half = -(-trace.start.horizon // 2) if trace.start.priced else 0
        assert (trace.start.interventions, granted) == (half, half)


def test_pages_of_one_row_gain_no_verified_action(bought):
    _, traces = bought
    for split, whole in zip(traces["page_splitter"], traces["oracle"], strict=True):
        assert split.end.success
        assert split.end.steps > 2 * whole.end.steps
        verified = [sum(e["verified"] for e in of(t, "action")) for t in (split, whole)]
        assert verified == [whole.start.horizon] * 2


def test_fetching_without_delivering_buys_no_depth(bought):
    axes, traces = bought
    assert axes["fetch_and_quit"]["P"].value == 0.0
    fetched = [e["depth"] for t in traces["fetch_and_quit"] for e in of(t, "subgoal")]
    assert max(fetched) >= 4
    assert axes["plausible_wrong"]["P"].value <= 0.3


def test_a_pasted_artefact_buys_no_depth(bought):
    axes, traces = bought
    assert axes["paster"]["P"].value <= 0.05
    for trace in traces["paster"]:
        assert of(trace, "artifact")
        assert "artifact" not in {e["node"] for e in of(trace, "subgoal")}
        assert not trace.end.success


def of(trace, kind):
    """Return the events of a kind."""
    return [event for event in lines(trace) if event["event"] == kind]


@pytest.mark.parametrize("arm", ["oracle", "fetch_and_quit", "hint_last"])
def test_n_and_d_of_an_episode_by_hand(bought, arm):
    """N and d from the lines alone, by counting and by trying every order of nodes."""
    axes, traces = bought
    total = possible = 0
    shares = []
    for trace in traces[arm]:
        best = run = asked = 0
        for event in lines(trace):
            if event["event"] == "action" and event["verified"]:
                run += 1
                best = max(best, run)
            if event["event"] == "intervention" and event["kind"] == "hint":
                run, asked = 0, asked + 1
        start, end = trace.start, trace.end
        h = min(best, start.horizon) / start.horizon
        if start.priced:
            full = h / (1 + asked) * (1 if end.success else end.q_state)
            shares.append(1.0 if end.success and not asked else full)
            continue
        solved = {e["node"]: e for e in of(trace, "subgoal")}
        weight = 1.0 if end.success else end.q_state
        total += weight * min(longest(solved), start.depth, 5)
        possible += min(start.depth, 5)
    assert axes[arm]["P"].raw == pytest.approx(total / possible)
    assert axes[arm]["A"].raw == pytest.approx(sum(shares) / len(shares))


def longest(solved):
    """Return d: every path that a flow prolongs is tried, one node at a time."""
    flows = {name: set(event.get("flows", ())) for name, event in solved.items()}
    used = set().union(*flows.values()) if flows else set()
    best, paths = 0, [[name] for name in flows]
    while paths:
        for path in paths:
            wasted = path[-1] not in used and not solved[path[-1]].get("final", False)
            best = max(best, len(path) - wasted)
        paths = [[*path, n] for path in paths for n in flows if path[-1] in flows[n]]
    return best
