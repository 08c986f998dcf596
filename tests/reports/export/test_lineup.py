"""Line-ups: which agents compare, whose figures stand on the page, and that it fits a phone."""

import itertools
import re

import msgspec
import numpy as np
import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import Resource
from owa_bench.records.score import Interval
from owa_bench.reports import statement
from owa_bench.reports.export import lineup_figures
from owa_bench.reports.export.lineup import efficient, lineup, task_terms
from owa_bench.reports.export.lineup_page import render_lineup, usd, write_lineup
from owa_bench.reports.page.templates import cost_lines, own_file
from owa_bench.scoring.statistics.task_means import estimate_over_tasks
from tests.builders.run_directory import ARMS, KEY, make_plan, make_run

OTHER = "9" * 64


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs: two on the same terms with worlds of their own, one with a smaller budget."""
    folder = tmp_path_factory.mktemp("many")
    make_run(folder / "first", make_plan(2))
    make_run(folder / "again", make_plan(4, commitment=OTHER))
    budget = msgspec.structs.replace(make_plan(2).budget, steps=9)
    make_run(folder / "short", make_plan(2, budget=budget, battery="demo"))
    statement.write_report(folder / "first", KEY)
    return folder


@pytest.fixture(scope="module")
def three(runs):
    return lineup([f"{runs}/first", f"{runs}/again:fixed", f"{runs}/short"])


def words_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


# --- which agents compare -------------------------------------------------------------


def test_agents_of_the_same_terms_are_one_group_and_others_are_told_apart(three, runs):
    assert [len(three.of(i)) for i in range(2)] == [3, 2]
    assert [group.masters for group in three.groups] == [2, 1]
    assert three.groups[0].differs == ()
    assert three.groups[1].differs == (
        "battery (demo against none)",
        "budget steps (9 against None)",
    )
    page = words_of(render_lineup(three))
    assert "were not all played on the same terms" in page
    assert "Group B, against A: battery (demo against none); budget steps (9 against None)." in page
    alone = words_of(render_lineup(lineup([f"{runs}/first"])))
    assert "not all played on the same terms" not in alone
    assert "2 agents on the same terms and the same worlds." in alone


def test_only_what_was_played_on_the_same_terms_stands_in_one_figure(three):
    page = render_lineup(three)
    head, *groups = page.split("<h2>Group ")
    assert "<svg" not in head
    assert len(groups) == 2
    for place, text in enumerate(groups):
        names = {one.label for _, one in three.of(place)}
        others = {one.label for one in three.agents} - names
        drawn = text.partition("<h2>How much")[0]
        assert all(name in drawn for name in names)
        assert not any(name in drawn for name in others)


def test_more_tasks_of_each_kind_are_the_same_terms_and_another_mix_is_not():
    arm, plan = ARMS[0], make_plan(2)
    assert task_terms(plan, arm) == task_terms(make_plan(6), arm)
    fewer = [e for e in plan.entries if e.family != "restock" or not e.pair.endswith("/1")]
    other = task_terms(msgspec.structs.replace(plan, entries=tuple(fewer)), arm)
    same = task_terms(plan, arm)
    assert {name for name in same if same[name] != other[name]} == {"mix of tasks"}
    fewer = [e for e in plan.entries if e.family != "restock"]
    other = task_terms(msgspec.structs.replace(plan, entries=tuple(fewer)), arm)
    assert other["families"] == "toolquest/reconcile, toolquest/sla_report"


def test_controls_stand_there_only_where_they_are_named(tmp_path):
    plan = make_plan(1)
    arms = (plan.arms[0], msgspec.structs.replace(plan.arms[1], frozen=True))
    make_run(tmp_path / "run", msgspec.structs.replace(plan, arms=arms))
    assert [one.label for one in lineup([f"{tmp_path}/run"]).agents] == ["agentic"]
    both = lineup([f"{tmp_path}/run", f"{tmp_path}/run:fixed", f"{tmp_path}/run:agentic"])
    assert [one.label for one in both.agents] == ["agentic", "fixed"]


def test_a_name_that_two_runs_have_says_which_run(three):
    assert [one.label for one in three.agents] == [
        *("agentic (first)", "fixed (first)", "fixed (again)"),
        *("agentic (short)", "fixed (short)"),
    ]


@pytest.mark.parametrize("harm", ["plan.json", "protocol.toml"])
def test_a_run_that_does_not_read_is_one_error_that_names_it(runs, tmp_path, harm):
    make_run(tmp_path / "broken", make_plan(1))
    (tmp_path / "broken" / harm).write_text("{")
    with pytest.raises(RunDirectoryError, match=r"broken cannot be read: ") as error:
        write_lineup([f"{runs}/first", f"{tmp_path}/broken"], tmp_path / "page.html")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(RunDirectoryError, match=r"nobody cannot be read: .*one of the arms"):
        lineup([f"{runs}/first:nobody"])


# --- whose figures --------------------------------------------------------------------


def test_figures_are_those_of_the_report(runs, three):
    made = statement.write_report(runs / "first", KEY)
    own = {one.outcomes.arm: one for _, one in three.of(0) if one.run.endswith("first")}
    page = words_of(render_lineup(three))
    for verdict, outcomes in zip(made.judgement.verdicts, made.outcomes, strict=True):
        agent = own[verdict.arm]
        assert agent.answer == outcomes.answer
        assert agent.verdict.frontier == verdict.frontier
        assert agent.level == verdict.level_text
        lines = dict(cost_lines(verdict, outcomes))
        each = re.search(r"\(([\d.]+ USD) an episode", lines["Its own cost"])[1]
        told = lines["Supervisor"]
        help_each = re.search(r"\(([\d.]+ USD) an episode with a supervisor", told)[1]
        for count in (agent.answer.still, agent.answer.drifted, agent.answer.helped):
            assert f"{count.share:.2f} {count.interval.low:.2f} to" in page
        assert f" {each} " in page
        assert f"{help_each} an episode with a supervisor" in page


def test_cost_has_its_interval_over_tasks_and_alone_leaves_helped_episodes_out(runs):
    agent = lineup([f"{runs}/first:agentic"]).agents[0]
    # 4 API calls and 3,600 tokens an episode, whatever happens: one cost, and so no width.
    usd = agent.own_cost.usd
    assert agent.own_cost.episodes == 24
    assert agent.alone_cost.episodes == 18
    assert agent.alone_cost.usd == pytest.approx(usd)
    same = estimate_over_tasks(np.full(24, usd), np.arange(24) % 6, share=False)
    assert agent.own_cost.interval.low == pytest.approx(same.low)


def test_what_a_campaign_books_as_evaluation_is_no_free_success(tmp_path):
    def edit(entry, events):
        return [
            msgspec.structs.replace(event, stream="evaluation")
            if isinstance(event, Resource) and event.stream == "agent"
            else event
            for event in events
        ]

    make_run(tmp_path / "plain", make_plan(2))
    make_run(tmp_path / "booked", make_plan(2), edit=edit)
    plain, booked = lineup([f"{tmp_path}/plain:fixed", f"{tmp_path}/booked:fixed"]).agents
    assert booked.alone_cost == plain.alone_cost
    assert booked.alone_cost.usd > booked.own_cost.usd == 0


def test_small_costs_are_written_out():
    assert [usd(value) for value in (0.0, 3.04e-06, 0.000335, 0.0302, 1.5, 1234.5)] == [
        *("0", "0.000003", "0.00034", "0.03", "1.50", "1,234.50")
    ]


def test_an_unknown_cost_is_no_cheap_one(tmp_path):
    def edit(entry, events):
        kept = [e for e in events if not (isinstance(e, Resource) and e.source == "harness")]
        return kept if entry.arm == "fixed" and entry.index % 3 == 0 else events

    make_run(tmp_path / "run", make_plan(2), edit=edit)
    found = lineup([f"{tmp_path}/run"])
    assert found.agents[1].own_cost is None
    assert [one.label for _, one in lineup_figures.priced(found.of(0))] == ["agentic"]
    page = render_lineup(found)
    assert "Without evidence for it: fixed." in page
    assert "unknown" in words_of(page)


def test_a_level_is_said_only_by_a_report_of_this_evidence(runs, tmp_path):
    assert lineup([f"{runs}/again:fixed"]).agents[0].level == "no report"
    run = make_run(tmp_path / "run", make_plan(1))
    statement.write_report(run.root, KEY)
    assert "not placed" in lineup([f"{run.root}:fixed"]).agents[0].level
    other = make_run(tmp_path / "other", make_plan(2))
    run.report.rename(other.report)
    assert lineup([f"{other.root}:fixed"]).agents[0].level == "its report is of other evidence"


# --- figures --------------------------------------------------------------------------


def test_the_front_holds_whom_no_other_one_beats():
    points = [(3.0, 0.9), (1.0, 0.2), (2.0, 0.9), (2.5, 0.5), (2.0, 0.9), (0.5, 0.2)]
    assert efficient(points) == (5, 2, 4)  # dear (0), weak (1) and beaten (3) ones are not
    assert efficient([(1.0, 0.0)]) == (0,)
    assert efficient([(1.0, 0.5), (1.0, 0.7), (2.0, 0.7)]) == (1,)  # a tie in one of the two
    assert efficient([(1.0, 0.5), (1.0, 0.5)]) == (0, 1)  # equal points do not beat each other


def agent_at(three, usd, share):
    """Return an agent whose cost and success are given."""
    one = three.agents[0]
    interval = Interval(method="by hand", low=usd / 2, high=usd * 2)
    cost = msgspec.structs.replace(one.alone_cost, usd=usd, interval=interval)
    alone = msgspec.structs.replace(one.alone, successes=round(share * 10), episodes=10)
    return msgspec.structs.replace(one, label=f"at {usd:g}", alone=alone, alone_cost=cost)


def test_costs_far_apart_stand_on_a_logarithmic_axis(three):
    assert lineup_figures.is_wide([0.01, 0.03, 0.08])
    assert not lineup_figures.is_wide([0.01, 0.03, 0.079])
    assert not lineup_figures.is_wide([0.0, 0.01, 0.08])  # nothing has no logarithm
    agents = [(i, agent_at(three, usd, 0.5)) for i, usd in enumerate((0.01, 2.0))]
    svg = lineup_figures.cost_success_figure(agents)
    assert all(f">{tick}</text>" in svg for tick in ("0.01", "0.05", "0.2", "1"))
    assert all(f">{one.label}<" in svg for _, one in agents)
    assert ">0.05</text>" not in lineup_figures.cost_success_figure(agents[1:])


def test_no_two_agents_of_thirty_look_alike():
    styles = [lineup_figures.line_style(place) for place in range(30)]
    looks = {(style["color"], str(style["linestyle"])) for style in styles}
    assert len(looks) == 30
    marks = {(str(style["linestyle"]), style["marker"]) for style in styles}
    assert len(marks) == 30  # without colour too


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
_EYES = {
    "all cones": np.eye(3),
    "no red cone": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cone": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cone": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
_TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
) / np.array([[0.9505], [1.0], [1.089]])


def seen_by(eye, colour):
    """Return a colour in CIELAB, as an eye sees it."""
    coded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    xyz = _TO_XYZ @ np.clip(np.array(_EYES[eye]) @ linear, 0, 1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def least_difference(colours):
    return min(
        np.linalg.norm(seen_by(eye, a) - seen_by(eye, b))
        for eye in _EYES
        for a, b in itertools.combinations(colours, 2)
    )


def test_colours_are_told_apart_with_any_colour_vision(three):
    found = re.findall(r"--agent(\d): (#[0-9a-f]{6})", render_lineup(three))
    own = [colour for _, colour in found][12:]  # behind those of all pages
    assert len(own) == 12  # on a light and on a dark screen
    assert min(least_difference(own[:6]), least_difference(own[6:])) > 12
    general = re.findall(r"--agent\d: (#[0-9a-f]{6})", str(own_file("page.css")))
    assert least_difference(general[:6]) < 6  # those of a report are not made for it


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_fits_a_phone_and_a_desk(three, tmp_path):
    from benchmarks import report_pages

    path = tmp_path / "page.html"
    path.write_text(render_lineup(three))
    with report_pages.browser() as found:
        for width in (390, 1280):
            window = report_pages.show(found, path, width)
            wide = window.evaluate(
                "Math.max(document.documentElement.scrollWidth - innerWidth, ...[..."
                "document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth))"
            )
            assert wide <= 0, (width, wide)
            window.close()
