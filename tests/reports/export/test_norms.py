"""Norms of people: which runs are let in, what follows from them, how it is forged."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from owa_bench.canonical import canonical_json, document_digest, seal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.events import Action, EpisodeEnd
from owa_bench.records.layout import NORMS_TYPE, RunLayout
from owa_bench.records.people import NormFigure, read_norms
from owa_bench.records.plan import Budget, SuiteEntry
from owa_bench.records.protocol import load
from owa_bench.reports import statement
from owa_bench.reports.export.norms import _person, make_norms, sealed_norms
from owa_bench.reports.read import bundle
from owa_bench.reports.verify import recompute, verify
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder
from owa_bench.scoring.gate import norms_mark
from owa_bench.scoring.verdict.norms import human_position, norm_figure, with_norms
from owa_bench.seeding import redact_key
from tests.builders.person_runs import person_plan, person_run
from tests.builders.run_directory import (
    FAMILIES,
    KEY,
    MASTER,
    PROTOCOL,
    events,
    make_plan,
    make_run,
)

FIVE = ("ada", "ben", "cy", "di", "ed")
QUALITIES = (0.6, 0.7, 0.8, 0.9, 1.0)


def runs(folder, people=FIVE, *, scripted=False):
    return [
        person_run(folder, name, quality, scripted=scripted)
        for name, quality in zip(people, QUALITIES, strict=False)
    ]


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """The norms of five programs, declared as such."""
    return make_norms(runs(tmp_path_factory.mktemp("five"), scripted=True))


def with_thresholds(norms, **persons):
    """Return the norms with thresholds of so many persons."""
    figures = {
        name: msgspec.structs.replace(norm_figure([5.0, 6.0, 7.0], 0.95), persons=count)
        for name, count in persons.items()
    }
    return msgspec.structs.replace(norms, thresholds=figures)


def _human(norms):
    return tuple(msgspec.structs.replace(run, scripted=False) for run in norms.runs)


def test_figures_are_over_persons(five):
    found = five.families["toolquest/restock"]
    assert (found.persons, found.median, found.mean) == (5, 0.8, pytest.approx(0.8))
    assert found.sd == pytest.approx(np.std(QUALITIES, ddof=1))
    assert (found.median_low, found.median_high, found.coverage) == (0.6, 1.0, 0.9375)
    assert five.axes["G"].median == 1.0  # all families at .6 and above
    assert [run.person for run in five.runs] == list(FIVE)
    assert five.synthetic
    assert set(five.terms.cells) == {f"toolquest/{name}" for name in FAMILIES}


def test_the_mark_goes_with_enough_people_and_says_synthetic_for_programs(five):
    protocol = load(PROTOCOL)
    names = {"span": 5, "delayed_recall": 5, "core": 5}
    human = msgspec.structs.replace(five, runs=_human(five))
    cases = (
        (None, "provisional"),
        (five, "provisional"),  # persons of ToolQuest set no span
        (with_thresholds(five, **names), "synthetic"),
        (with_thresholds(human, **names), ""),
        (with_thresholds(human, **{**names, "delayed_recall": 4}), "provisional"),
        (with_thresholds(human, span=5, core=5), "provisional"),
    )
    for norms, mark in cases:
        assert norms_mark(3, with_norms(protocol, norms)) == mark
    part = with_norms(protocol, with_thresholds(human, span=5, delayed_recall=5))
    assert (norms_mark(2, part), norms_mark(3, part)) == ("", "provisional")
    assert part.norms.span == 6.0
    assert norms_mark(1, protocol) == ""


def test_experts_give_a_mean_and_an_error_clustered_by_expert(five):
    protocol = load(PROTOCOL)
    assert with_norms(protocol, five).norms.experts == {}
    experts = msgspec.structs.replace(five, group="experts")
    assert with_norms(protocol, experts).norms.experts == {}  # programs
    experts = msgspec.structs.replace(experts, runs=_human(five))
    section = with_norms(protocol, experts).norms
    mean, error = section.experts["toolquest/restock"]
    assert mean == pytest.approx(0.8)
    assert error == pytest.approx(np.std(QUALITIES, ddof=1) / 5**0.5)
    assert section.expert_counts["toolquest/restock"] == 5
    assert "experts" in section.measured


def test_a_report_reads_norms_and_verify_and_recompute_hold_them(five, tmp_path):
    run = make_run(tmp_path / "run", make_plan(pairs=1))
    file = tmp_path / "norms.dsse.json"
    file.write_bytes(sealed_norms(five, KEY))
    statement.add_norms(run.root, file)
    judged = statement.write(run.root, KEY)
    (table,) = [t for t in judged.verdicts[0].tables if t.title == "Human anchors"]
    assert "synthetic norms" in table.note
    assert {row[0] for row in table.rows} >= {"G", "composite"}
    page = run.page.read_text()
    assert "synthetic norms: programs played" in page
    assert all(check.ok for check in recompute(run.root))
    assert [c.name for c in verify(run.root) if not c.ok] == []
    other = make_norms(runs(tmp_path / "others", FIVE[:4], scripted=True))
    run.norms.write_bytes(sealed_norms(other, KEY))
    assert [c.name for c in verify(run.root) if not c.ok] == ["inputs"]
    assert not all(check.ok for check in recompute(run.root))
    run.norms.unlink()
    assert [c.name for c in verify(run.root) if not c.ok] == ["inputs"]


def test_norms_of_other_terms_are_refused(five, tmp_path):
    suite = make_plan().suites[0]
    cases = (
        ({"suites": (msgspec.structs.replace(suite, version=3),)}, "version 1, and"),
        ({"budget": Budget(steps=9)}, "`steps` None, and 9"),
        ({"calendar": "nested:D3"}, "`calendar` nested, and nested:D3"),
    )
    file = tmp_path / "norms.dsse.json"
    file.write_bytes(sealed_norms(five, KEY))
    for place, (changes, words) in enumerate(cases):
        run = make_run(tmp_path / str(place), make_plan(pairs=1, **changes))
        with pytest.raises(UsageError, match=words):
            statement.add_norms(run.root, file)
        assert not run.norms.exists()
    other = SuiteEntry(name="changesurf", version=1, source_digest="", families=("a",), tiers=(1,))
    entries = tuple(msgspec.structs.replace(e, suite="changesurf") for e in make_plan().entries)
    plan = make_plan(suites=(other,), entries=entries)
    run = make_run(tmp_path / "other", plan, entries=slice(0))
    with pytest.raises(UsageError, match="no family is in both"):
        statement.add_norms(run.root, file)


def test_runs_that_are_no_persons_are_refused_by_name(tmp_path):
    ada = person_run(tmp_path, "ada")
    fast = person_run(tmp_path, "fast", wall_s=0.5)
    half = person_run(tmp_path, "half", entries=slice(3))
    twin = person_run(tmp_path / "again", "ada", 0.9)
    long = person_run(tmp_path, "long", plan=person_plan("long", budget=Budget(steps=7)))
    agent = make_run(tmp_path / "agent", make_plan(pairs=1)).root
    for others, words in (
        ((fast,), "fast cannot be used: 0.12 s an action is a program's pace"),
        ((half,), "half does not hold .count: 9 planned episodes have no attempt"),
        ((twin,), "two runs of `ada`"),
        ((long,), "long must have the same terms, got `steps`"),
        ((agent,), "agent must be played by one person"),
    ):
        with pytest.raises((UsageError, CheckFailure), match=words):
            make_norms([ada, *others])


def agent_plan(**changes):
    """Return a plan that one agent, no person, plays."""
    plan = person_plan("agentic", **changes)
    return msgspec.structs.replace(plan, arms=make_plan().arms[:1])


def test_a_baseline_of_one_agent_gives_the_lower_anchors(tmp_path):
    ada = person_run(tmp_path, "ada", 0.7)
    base = person_run(tmp_path, "agentic", 0.5, plan=agent_plan())
    bare = make_norms([ada])
    assert (bare.baseline, bare.baseline_root) == ({}, "")
    norms = make_norms([ada], baseline=base)
    assert (norms.axes["G"].median, norms.baseline["G"][0]) == (1.0, 0.0)
    assert norms.baseline_root == bundle.read(base).evidence_root
    assert [run.person for run in norms.runs] == ["ada"]
    both = make_run(tmp_path / "both", make_plan(pairs=1)).root
    with pytest.raises(UsageError, match=r"run of one agent, got .*/both"):
        make_norms([ada], baseline=both)
    with pytest.raises(UsageError, match="at least one run of a person, got none"):
        make_norms([], baseline=base)


def test_runs_of_norms_have_every_family_in_common(tmp_path):
    """One that both have is enough for norms and a report, not for two persons."""
    ada, plan = person_run(tmp_path, "ada"), person_plan("ben")
    kept = tuple(e for e in plan.entries if e.family != FAMILIES[-1])
    ben = person_run(tmp_path, "ben", plan=msgspec.structs.replace(plan, entries=kept))
    with pytest.raises(UsageError, match="must have the same terms, got families"):
        make_norms([ada, ben])


def test_a_task_that_was_begun_twice_is_no_norm(tmp_path):
    plan = person_plan("ada")
    root = person_run(tmp_path, "ada", plan=plan, entries=slice(1, None))
    digest = document_digest(plan)
    shard = ShardFiles(RunLayout(root), 7)
    with Recorder(shard, digest, redact_key(MASTER), True) as recorder:
        for attempt, status in enumerate(("unfinished", "complete")):
            writer = recorder.episode(0, attempt)
            for event in events(plan, plan.entries[0], writer.blob, attempt):
                if status == "complete" or not isinstance(event, EpisodeEnd):
                    writer.emit(event)
            writer.close(status)
    with pytest.raises(UsageError, match="its episodes 0 were begun twice"):
        make_norms([root])


def test_a_run_that_was_changed_is_refused_by_name(tmp_path):
    paths = runs(tmp_path)
    shard = next((paths[2] / "trace").glob("*.zst"))
    other = next((paths[3] / "trace").glob("*.zst"))
    shard.write_bytes(other.read_bytes())
    with pytest.raises(CheckFailure, match="cy does not hold"):
        make_norms(paths)


def test_a_file_that_was_changed_or_claims_more_persons_is_refused(five):
    envelope = sealed_norms(five, KEY)
    assert read_norms(envelope, "n").runs == five.runs
    signed = read_norms(envelope, "n")
    forged = msgspec.structs.replace(signed, group="experts")
    unsigned = seal(NORMS_TYPE, canonical_json(forged), None)
    with pytest.raises(UsageError, match="No signature"):
        read_norms(unsigned, "n")
    few = msgspec.structs.replace(
        with_thresholds(signed, span=5), runs=signed.runs[:4], families={}, axes={}
    )
    with pytest.raises(UsageError, match="`span` is of 5 persons, 4 are named"):
        read_norms(seal(NORMS_TYPE, canonical_json(few), KEY), "n")
    copied = msgspec.structs.replace(few, runs=(signed.runs[0],) * 5)
    with pytest.raises(UsageError, match="5 persons, 1 are named"):
        read_norms(seal(NORMS_TYPE, canonical_json(copied), KEY), "n")
    with pytest.raises(UsageError, match="must be a signed norms file"):
        read_norms(b"{}", "n")


def test_one_person_has_no_spread_and_positions_are_clipped():
    alone = norm_figure([0.5], 0.95)
    assert isinstance(alone, NormFigure)
    assert (alone.sd, alone.low, alone.coverage) == (None, None, 0.0)
    assert [human_position(x, 0.2, 0.7) for x in (0.1, 0.2, 0.7, 0.9)] == [0, 0, 1, 1]


def played(*episodes, agent="person:ada", fastest=0.5, attempts=(), counted=None):
    """Return a run of episodes of (seconds, steps)."""
    ends = [SimpleNamespace(wall_s=s, steps=n) for s, n in episodes]
    arm = SimpleNamespace(name="ada", agent=agent)
    leaves = [SimpleNamespace(attempt_id=f"{i}.0") for i in range(len(episodes))]
    norms = SimpleNamespace(step_s_min=fastest)
    return SimpleNamespace(
        plan=SimpleNamespace(arms=[arm], public_key="ab" * 32),
        layout=RunLayout(Path("run")),
        counting_leaves=leaves if counted is None else counted,
        attempts=lambda: iter(attempts),
        traces=lambda: iter(SimpleNamespace(end=end) for end in ends),
        protocol=SimpleNamespace(norms=norms),
        evidence_root="e",
        plan_digest="d",
    )


def test_a_persons_pace_is_the_median_over_episodes_of_seconds_an_action():
    found = _person(played((4.0, 2), (0.75, 0), (9.0, 9)))
    assert (found.step_s, found.episodes, found.person) == (1.0, 3, "ada")
    assert not found.scripted
    assert _person(played((0.5, 1))).step_s == 0.5  # the fastest that is let in
    with pytest.raises(UsageError, match="a program's pace"):
        _person(played((0.49, 1)))
    scripted = _person(played((0.01, 1), agent="scripted-person:ada"))
    assert scripted.scripted
    with pytest.raises(UsageError, match="step_s_min"):
        _person(played((1.0, 1), fastest=None))


def test_a_run_of_norms_is_one_persons_and_whole():
    two = played((1.0, 1))
    two.plan.arms *= 2
    for wrong in (two, played((1.0, 1), agent="agentic")):
        with pytest.raises(UsageError, match="must be played by one person"):
            _person(wrong)
    with pytest.raises(UsageError, match="is not complete"):
        _person(played((1.0, 1), counted=[None]))


ACTION = Action(
    step=1,
    action="{}",
    verified=True,
    reward=0.0,
    terminated=False,
    truncated=False,
    observation="o",
    at_ms=1,
)


def test_an_attempt_that_acted_and_does_not_count_was_a_second_look():
    def attempt(name, index, *, acted):
        event = ACTION if acted else object()
        leaf = SimpleNamespace(attempt_id=name, index=index)
        return SimpleNamespace(leaf=leaf, events=[object(), event])

    counted = attempt("0.0", 0, acted=True)
    idle = attempt("1.0", 1, acted=False)
    assert _person(played((1.0, 1), attempts=(counted, idle))).episodes == 1
    again = attempt("7.0", 7, acted=True)
    with pytest.raises(UsageError, match="its episodes 7 were begun twice"):
        _person(played((1.0, 1), attempts=(counted, idle, again)))
