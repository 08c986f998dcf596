"""Honeypots and held-out families drawn by name: errors of declaring have rates."""

import pytest

from owa_bench.discovery import get
from owa_bench.errors import PlanError
from owa_bench.reports import statement
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.store import files
from tests.builders.small_runs import played, run_options, small  # noqa: F401  fixtures

FAMILIES = ("reconcile", "reconcile-honeypot")
HEAD = "def act(observation, info):\n    return "
DECLARES = HEAD + """'{"tool": "declare_infeasible", "arguments": {}}'\n"""
FINISHES = HEAD + """'{"tool": "finish", "arguments": {}}'\n"""


@pytest.fixture
def reported(played, small, tmp_path):  # noqa: F811
    def play(body, **changes):
        agent = tmp_path / "agent.py"
        agent.write_text(body)
        layout = played(small(str(agent), **changes))
        judgement = statement.write(layout.root, None)
        [verdict] = judgement.verdicts
        tables = {table.title: table for table in verdict.tables}
        traces = [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]
        return traces, verdict, tables, layout

    return play


@pytest.mark.parametrize(("body", "wrong"), [(DECLARES, (1, 0)), (FINISHES, (0, 1))])
def test_always_declaring_and_never_declaring_have_their_rates(reported, body, wrong):
    traces, verdict, tables, layout = reported(body, families=FAMILIES, episodes=2)
    rows = {row[0]: row for row in tables["infeasible tasks"].rows}
    assert [row[1] for row in rows.values()] == [2, 2]
    assert (rows["feasible"][5], rows["infeasible"][5]) == wrong
    assert sum(trace.start.honeypot for trace in traces) == 2
    assert "Infeasible tasks" in layout.page.read_text()
    assert bundle.read(layout.root).plan.suites[0].families == ("reconcile",)
    axes = {axis.symbol: axis for axis in verdict.axes}
    assert axes["G"].value == 0.0  # honeypots enter no axis and empty none


def test_a_run_of_honeypots_alone_leaves_a_report(reported):
    _, verdict, tables, _ = reported(DECLARES, families=FAMILIES[1:])
    assert tables["infeasible tasks"].rows[0][:3] == ("infeasible", 1, 1)
    assert all(axis.value is None for axis in verdict.axes)


@pytest.mark.parametrize(
    ("suite", "family"), [("toolquest", "restock-honeypot"), ("changesurf", "stay/book-honeypot")]
)
def test_what_is_drawn_by_name_is_in_no_draw_of_all(suite, family):
    card = get("suites", suite).card
    assert family in card.honeypots
    assert family not in draws.families(Draw(name=suite), card)
    [entry] = draws.entries(Draw(name=suite, families=(family,), tiers=(1,), deltas=(0.0,)), card)
    assert entry.family == family


def test_a_held_out_site_is_drawn_by_name_alone():
    card = get("suites", "changesurf").card
    assert card.held_out == ("desk/lookup", "desk/file", "desk/route")
    draws.check(Draw(name="changesurf", families=card.held_out), PlanError)
    assert not set(card.held_out) & set(draws.families(Draw(name="changesurf"), card))
    with pytest.raises(PlanError, match="families"):
        draws.check(Draw(name="changesurf", families=("mall/buy",)), PlanError)
