"""Comparison of runs: which pairs are shared, and what is refused by name."""

import json
from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.canonical import sha256
from owa_bench.errors import FieldError, RunDirectoryError, UsageError
from owa_bench.records.events import EpisodeStart
from owa_bench.records.score import Interval
from owa_bench.reports import composition
from owa_bench.reports.check.assurance import assess
from owa_bench.reports.page.render_html import render_page
from owa_bench.reports.read import bundle
from owa_bench.reports.read.comparison import (
    ArmComparison,
    arm_of,
    compare,
    comparison_table,
    report_comparison,
    verdict_words,
)
from owa_bench.scoring.estimate.comparison import COST, QUALITY, PairedFigure
from tests.builders.run_directory import ARMS, PRICES, PROTOCOL, make_plan, make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    make_run(folder / "run", make_plan(2))
    one = make_plan(1)
    arm = tuple(arm for arm in one.arms if arm.name == ARMS[0])
    entries = tuple(
        msgspec.structs.replace(entry, index=index)
        for index, entry in enumerate(e for e in one.entries if e.arm == ARMS[0])
    )
    make_run(folder / "single", make_plan(1, arms=arm, entries=entries))
    return folder


def refused(runs, **changes):
    make_run(runs / "other", make_plan(1, **changes))
    with pytest.raises(UsageError) as error:
        compare(f"{runs}/run:{ARMS[0]}", f"{runs}/other:{ARMS[0]}")
    return str(error.value)


@pytest.fixture
def fresh(runs, tmp_path):
    (tmp_path / "run").symlink_to(runs / "run")
    return tmp_path


def test_two_arms_of_a_run_share_every_pair(runs):
    found = compare(f"{runs}/run:{ARMS[0]}", f"{runs}/run:{ARMS[1]}")
    assert found.pairs == len(make_plan(2).entries) // 2
    assert found.unshared == (0, 0)
    overall = found.figures[0]
    assert overall.difference < 0  # the fixed arm fails under drift
    back = compare(f"{runs}/run:{ARMS[1]}", f"{runs}/run:{ARMS[0]}").figures[0]
    assert back.difference == -overall.difference
    assert back.interval.low == pytest.approx(-overall.interval.high, abs=1e-6)


def test_runs_are_compared_on_what_both_played(runs):
    found = compare(f"{runs}/run:{ARMS[0]}", f"{runs}/single")
    assert found.pairs == len(make_plan(1).entries) // 2
    assert found.unshared == (found.pairs, 0)
    assert f"left out: {found.pairs} and 0" in comparison_table(found).note


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"calendar": "daily:0.1"}, "calendar (nested against daily:0.1)"),
        ({"help_share": 0.25}, "share of help (0.0 against 0.25)"),
        ({"protocol_digest": "e" * 64}, f"protocol ({sha256(PROTOCOL)[:12]} against eeeeeeeeeeee)"),
        ({"price_digest": "e" * 64}, f"price card ({sha256(PRICES)[:12]} against eeeeeeeeeeee)"),
    ],
)
def test_other_terms_are_refused_by_name(fresh, changes, name):
    assert name in refused(fresh, **changes)


def test_another_suite_version_is_refused_by_name(fresh):
    (suite,) = make_plan(1).suites
    suites = (msgspec.structs.replace(suite, source_digest="f" * 64),)
    assert "suite toolquest (v1 000000000000 against v1 ffff" in refused(fresh, suites=suites)


def test_a_suite_that_one_run_has_alone_is_no_other_term(fresh, runs):
    """Named is what differs; the arms share the pairs of the suite of both."""
    (suite,) = make_plan(1).suites
    more = (suite, msgspec.structs.replace(suite, name="changesurf"))
    make_run(runs / "more", make_plan(1, suites=more))
    names = [f"{runs}/{name}:{ARMS[0]}" for name in ("run", "more")]
    assert compare(*names).pairs == compare(*reversed(names)).pairs > 0
    assert "changesurf" not in refused(fresh, suites=more, help_share=0.25)


def test_runs_without_a_common_pair_say_why(runs, tmp_path):
    def elsewhere(entry, events):
        return [
            msgspec.structs.replace(event, instance=msgspec.structs.replace(event.instance, seed=1))
            if isinstance(event, EpisodeStart)
            else event
            for event in events
        ]

    for commitment, why in (
        (make_plan(1).commitment, "got none: no instance was played by both"),
        ("c" * 64, "got none: the runs drew their worlds from different masters"),
    ):
        folder = tmp_path / commitment
        make_run(folder, make_plan(1, commitment=commitment), edit=elsewhere)
        with pytest.raises(UsageError, match=why):
            compare(f"{runs}/run:{ARMS[0]}", f"{folder}:{ARMS[0]}")


def test_a_folder_may_have_a_colon_in_its_name(runs, tmp_path):
    for name in ("at-9", "at:9"):
        (tmp_path / name).symlink_to(runs / "single")
        for text in (f"{tmp_path / name}", f"{tmp_path / name}:{ARMS[0]}"):
            assert arm_of(text).arm == ARMS[0]


def test_a_pair_whose_worlds_differ_is_no_pair_but_an_error(runs, tmp_path):
    def repainted(entry, events):
        return [
            msgspec.structs.replace(event, world="another")
            if isinstance(event, EpisodeStart)
            else event
            for event in events
        ]

    make_run(tmp_path / "other", make_plan(1), edit=repainted)
    with pytest.raises(UsageError, match="these differ: world"):
        compare(f"{runs}/run:{ARMS[0]}", f"{tmp_path}/other:{ARMS[0]}")


def test_an_arm_must_be_named_where_there_are_two(runs):
    with pytest.raises(FieldError, match="must name one of the arms of"):
        compare(f"{runs}/run", f"{runs}/single")
    with pytest.raises(FieldError, match="got 'nobody'"):
        compare(f"{runs}/run:nobody", f"{runs}/single")
    with pytest.raises(RunDirectoryError):
        compare(f"{runs}/nothing", f"{runs}/single")


def test_the_table_holds_every_figure_as_json_can(runs):
    found = compare(f"{runs}/run:{ARMS[0]}", f"{runs}/run:{ARMS[1]}")
    table = comparison_table(found)
    assert len(table.rows) == len(found.figures)
    assert json.loads(msgspec.json.encode(table))["rows"][0][0] == "Q"
    assert {row[1] for row in table.rows} >= {"all", "family restock", "class D1"}


def test_a_report_of_two_arms_holds_the_comparison_and_one_of_three_does_not(runs, tmp_path):
    read = bundle.read(runs / "run")
    report = composition.compose(read, assess(read, (), signed=False))
    found = compare(f"{runs}/run:{ARMS[0]}", f"{runs}/run:{ARMS[1]}")
    assert report.comparison.rows == comparison_table(found).rows
    page = render_page(read, report).decode()
    assert f"{ARMS[0]} against {ARMS[1]}, pair by pair" in page
    assert '<a href="view/index.html#000000.0">000000.0</a>' in page
    assert report_comparison(bundle.read(runs / "single")) is None


def test_a_report_outlives_arms_without_a_common_pair(tmp_path):
    plan = make_plan(1)
    entries = tuple(
        msgspec.structs.replace(entry, interventions=7 if entry.arm == ARMS[1] else 0)
        for entry in plan.entries
    )
    layout = make_run(tmp_path / "run", msgspec.structs.replace(plan, entries=entries))
    table = report_comparison(bundle.read(layout.root))
    assert table.rows == ()
    assert "must share at least one pair" in table.note


def row(group, name, *, measure=QUALITY, low=0.1, reason=None):
    interval = Interval(low=low, high=0.3, method="m", reason=reason)
    return PairedFigure(
        measure=measure,
        group=group,
        name=name,
        pairs=4,
        tasks=2,
        first=0.5,
        second=0.7,
        difference=0.2,
        interval=interval,
    )


def shown(*figures, unshared=(0, 0)):
    return comparison_table(
        ArmComparison(first="a", second="b", pairs=4, unshared=unshared, figures=figures)
    )


def test_a_table_names_groups_without_the_only_suite_and_what_lacks():
    one = shown(row("all", ""), row("family", "s/f"), row("tier", "T1", measure=COST))
    assert [r[1] for r in one.rows] == ["all", "family f", "tier T1"]
    assert [r[0] for r in one.rows] == ["Q", "Q", "own cost"]
    assert one.rows[0][2:] == (4, 2, 0.5, 0.7, 0.2, 0.1, 0.3)
    two = shown(row("family", "s/f"), row("family", "t/f"))
    assert [r[1] for r in two.rows] == ["family s/f", "family t/f"]
    assert "left out" not in two.note
    assert "Missing intervals" not in two.note
    assert "left out: 0 and 3." in shown(row("all", ""), unshared=(0, 3)).note
    bare = shown(row("all", ""), row("tier", "T1", low=None, reason="one task"))
    assert bare.note.endswith("Missing intervals: one task.")


def test_a_run_of_controls_is_not_compared_with_them():
    def arm(name, **kind):
        return SimpleNamespace(**({"name": name, "placebo": False, "baseline": False} | kind))

    for kind in ({"placebo": True}, {"baseline": True}):
        plan = SimpleNamespace(arms=[arm("a"), arm("b", **kind)])
        assert report_comparison(SimpleNamespace(plan=plan)) is None


def figure(measure="success", *, difference, low, high, tasks=3):
    interval = Interval(low=low, high=high, method="over tasks")
    return PairedFigure(
        measure=measure,
        group="all",
        name="",
        pairs=tasks,
        tasks=tasks,
        first=0.5,
        second=0.5 + difference,
        difference=difference,
        interval=interval,
    )


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"difference": 0.3, "low": 0.1, "high": 0.5}, "b succeeds more often: +0.300"),
        ({"difference": -0.3, "low": -0.5, "high": -0.1}, "a succeeds more often: -0.300"),
        # .6 down to the low end over 3 tasks, .1 looked for: 3 (.6 / .1)^2 = 108.
        ({"difference": 0.05, "low": -0.55, "high": 0.65}, "about 108 tasks would tell"),
        # .6 down, .3 seen: 3 (.6 / .3)^2 = 12.
        ({"difference": 0.3, "low": -0.3, "high": 0.9}, "about 12 tasks would tell a difference"),
        # 0 lies on the long side of the interval: 4 (1.05 / .75)^2 = 7.84, and not
        # 4 (.6 / .75)^2 = 2.56, fewer than were played.
        ({"difference": 0.75, "low": -0.3, "high": 0.9, "tasks": 4}, "about 8 tasks would tell"),
        ({"difference": -0.75, "low": -0.9, "high": 0.3, "tasks": 4}, "about 8 tasks would tell"),
        ({"difference": 0.3, "low": 0.0, "high": 0.6}, "about 4 tasks would tell"),
        ({"difference": 0.3, "low": None, "high": None}, "Cannot tell: no interval."),
    ],
)
def test_a_comparison_says_first_who_is_better_or_what_would_tell(row, words):
    """Of two agents on three tasks the larger share was read as the better agent."""
    other = figure("quality", difference=0.9, low=0.8, high=1.0)
    found = ArmComparison(
        first="a", second="b", pairs=3, unshared=(0, 0), figures=(other, figure(**row))
    )
    assert words in verdict_words(found)
