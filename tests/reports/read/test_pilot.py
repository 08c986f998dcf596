"""Pilots: sums by hand, ranges by hand, and what a pilot does not tell."""

import msgspec
import pytest

from owa_bench.canonical import document_digest
from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import EpisodeEnd, ModelCall, Resource
from owa_bench.reports import composition
from owa_bench.reports.read.pilot import (
    DOLLARS,
    HOURS,
    MEASURES,
    READ,
    REQUESTS,
    SUPERVISOR,
    WRITTEN,
    pilot_estimate,
)
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder
from owa_bench.seeding import redact_key
from tests.builders.run_directory import (
    ARMS,
    FAMILIES,
    MASTER,
    events,
    make_plan,
    make_run,
    write_terms,
)

WRITTEN_AT = {0.5: 100.0, 1.0: 0.0}


def task_number(pair):
    """Return 1 .. 6 for the tasks of make_plan(2)."""
    _, _, family, _, place = pair.split("/")
    return 2 * FAMILIES.index(family) + int(place) + 1


def edit(entry, events):
    """Let an episode write 10 tokens times its task without drift, and take 36 s."""
    written = WRITTEN_AT.get(entry.delta, 10.0 * task_number(entry.pair))
    made = [e for e in events if not isinstance(e, EpisodeEnd)]
    end = msgspec.structs.replace(events[-1], wall_s=36.0)
    calls = [
        ModelCall(step=1, source=source, model="m", prompt="", reply="", tokens_out=int(written))
        for source in ("harness", "harness", "agent")
    ]
    used = Resource(step=1, meter="tokens_out", amount=written)
    return [*made, *calls, used, end]


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot") / "pilot"
    make_run(folder, make_plan(2), edit=edit)
    return folder


def of_one(plan, **changes):
    """Return the plan of the first agent alone, its entries changed."""
    entries = [msgspec.structs.replace(e, **changes) for e in plan.entries if e.arm == ARMS[0]]
    numbered = tuple(msgspec.structs.replace(e, index=i) for i, e in enumerate(entries))
    return msgspec.structs.replace(plan, arms=plan.arms[:1], entries=numbered)


def test_sums_are_means_of_strata_times_their_episodes(pilot):
    found = pilot_estimate(of_one(make_plan(5)), pilot)
    row, total = found.rows
    assert (row.suite, row.episodes, total.suite) == ("toolquest", 60, "all")
    assert row.amounts == total.amounts
    # Without drift 30 episodes (two budgets of help) of 35 tokens, at 0.5 15 of 100, at 1 none.
    assert row.amounts[WRITTEN].estimate == pytest.approx(30 * 35 + 15 * 100)
    assert row.amounts[REQUESTS].estimate == 60 * 2  # those that the gateway saw
    assert row.amounts[READ].estimate == 60 * 4 * 900
    assert row.amounts[HOURS].estimate == pytest.approx(60 * 36 / 3600)
    assert found.unknown == ()
    assert found.notes == ()


def test_ranges_are_over_tasks_of_the_pilot_and_those_that_are_drawn(pilot):
    amount = pilot_estimate(of_one(make_plan(5)), pilot).rows[0].amounts[WRITTEN]
    # Without task j 30 (210 - 10 j) / 5 + 1500, its gap to 2550 times sqrt(1 + 6 / 15); of the
    # logarithms the jackknife error .106478, and t .975 on 5 degrees of freedom 2.570582.
    assert amount.low == pytest.approx(1939.407, rel=1e-6)
    assert amount.high == pytest.approx(3352.830, rel=1e-6)
    many = pilot_estimate(of_one(make_plan(50)), pilot).rows[0].amounts[WRITTEN]
    assert many.high / many.estimate < amount.high / amount.estimate
    same = pilot_estimate(of_one(make_plan(5)), pilot).rows[0].amounts[REQUESTS]
    assert same.low == pytest.approx(120)  # no task differs
    assert same.high == pytest.approx(120)


def test_the_pilots_own_plan_takes_what_the_pilot_took(pilot):
    found = pilot_estimate(make_plan(2), pilot).rows[-1]
    verdicts = composition.score(pilot).values()
    for measure, stream in ((DOLLARS, "agent"), (SUPERVISOR, "human")):
        took = sum(verdict.cost_micro_usd[stream] for verdict in verdicts) / 1e6
        assert found.amounts[measure].estimate == pytest.approx(took)
    assert found.amounts[SUPERVISOR].estimate > 0


def test_more_lanes_take_less_time_and_nothing_else(pilot):
    plan = of_one(make_plan(5))
    one, four = (pilot_estimate(plan, pilot, lanes=lanes).rows[0].amounts for lanes in (1, 4))
    assert four[HOURS].estimate == pytest.approx(one[HOURS].estimate / 4)
    assert four[HOURS].high == pytest.approx(one[HOURS].high / 4)
    assert all(four[name] == one[name] for name in MEASURES if name != HOURS)
    most = pilot_estimate(plan, pilot, lanes=1000).rows[0].amounts[HOURS]
    assert most.estimate == pytest.approx(36 / 3600)  # no more lanes than episodes


@pytest.mark.parametrize(
    ("asked", "near", "written"), [(0.2, 0.0, 35), (0.25, 0.5, 100), (0.8, 1.0, 0)]
)
def test_a_magnitude_that_was_not_played_is_reckoned_as_the_nearest(pilot, asked, near, written):
    found = pilot_estimate(of_one(make_plan(5), delta=asked), pilot)
    assert found.rows[0].amounts[WRITTEN].estimate == pytest.approx(60 * written)
    assert found.notes == (
        f"toolquest tier 1: drift {asked:g} is reckoned as {near:g}, the nearest played",
    )


def test_drift_by_day_is_reckoned_as_all_magnitudes(pilot):
    found = pilot_estimate(of_one(make_plan(5), delta=None), pilot)
    mean = (12 * 35 + 6 * 100) / 24
    assert found.rows[0].amounts[WRITTEN].estimate == pytest.approx(60 * mean)
    assert "drift by day is reckoned as all" in found.notes[0]


def test_a_tier_that_was_not_played_is_unknown_or_by_the_card(pilot):
    plan = of_one(make_plan(5), tier=2)
    found = pilot_estimate(plan, pilot)
    assert found.rows == ()
    assert found.unknown == ("toolquest tier 2 (60 episodes)",)

    def card(suite, tier):
        return dict.fromkeys(MEASURES, {1: 10.0, 2: 25.0}[tier])

    by_card = pilot_estimate(plan, pilot, card=card)
    mean = (12 * 35 + 6 * 100) / 24
    assert by_card.rows[0].amounts[WRITTEN].estimate == pytest.approx(60 * 2.5 * mean)
    assert by_card.unknown == ()
    assert "not played by the pilot; reckoned from the other tiers" in by_card.notes[0]
    assert pilot_estimate(plan, pilot, card=lambda suite, tier: None).unknown == found.unknown


def test_a_suite_that_was_not_played_is_named_and_in_no_sum(pilot):
    both = make_plan(5)
    own = of_one(both)
    half = tuple(
        msgspec.structs.replace(e, suite="recall" if e.family == "restock" else e.suite)
        for e in own.entries
    )
    found = pilot_estimate(
        msgspec.structs.replace(own, entries=half),
        pilot,
        card=lambda *_: dict.fromkeys(MEASURES, 1.0),
    )
    assert found.unknown == ("recall tier 1 (20 episodes)",)
    assert [row.episodes for row in found.rows] == [40, 40]
    assert found.notes[0].startswith("families that the pilot did not play")


def test_an_agent_is_reckoned_by_its_spec_its_name_or_the_only_one(pilot, tmp_path):
    def named(name, agent):
        plan = of_one(make_plan(2))
        arm = msgspec.structs.replace(plan.arms[0], name=name, agent=agent)
        entries = tuple(msgspec.structs.replace(e, arm=name) for e in plan.entries)
        return msgspec.structs.replace(plan, arms=(arm,), entries=entries)

    assert pilot_estimate(named("other", "fixed"), pilot).notes == ()
    (note,) = pilot_estimate(named("fixed", "new"), pilot).notes
    assert note == "fixed is another agent than the pilot's of that name: new"
    nobody = pilot_estimate(named("other", "new"), pilot)
    assert (nobody.rows, nobody.unknown) == ((), ("agent other (24 episodes)",))
    make_run(tmp_path / "lone", of_one(make_plan(2)), edit=edit)
    (note,) = pilot_estimate(named("other", "new"), tmp_path / "lone").notes
    assert note == "other is reckoned as agentic, the pilot's only agent"


def test_families_and_budgets_that_were_not_played_are_said(pilot):
    found = pilot_estimate(of_one(make_plan(1), interventions=None, family="new"), pilot)
    assert set(found.notes) == {
        "families that the pilot did not play are reckoned as its own: toolquest/new",
        "budgets of help that the pilot did not play are reckoned as its own: unlimited",
    }


def test_one_task_has_no_range_and_an_unknown_cost_no_estimate(tmp_path):
    plan = of_one(make_plan(1))
    lone = msgspec.structs.replace(plan, entries=plan.entries[:4])
    assert len({entry.pair for entry in lone.entries}) == 1

    def unmetered(entry, events):
        *made, end = edit(entry, events)
        call = ModelCall(step=1, source="harness", model="m", prompt="", reply="", metered=False)
        return [*made, call, end]

    make_run(tmp_path / "lone", lone, edit=unmetered)
    amounts = pilot_estimate(of_one(make_plan(5)), tmp_path / "lone").rows[0].amounts
    assert amounts[REQUESTS].estimate == 60 * 3
    assert (amounts[REQUESTS].low, amounts[REQUESTS].reason) == (None, "the pilot played one task")
    assert (amounts[DOLLARS].estimate, amounts[DOLLARS].reason) == (None, "the pilot's is unknown")


def test_declared_and_cached_calls_are_said(tmp_path):
    def declared(entry, events):
        call = ModelCall(step=1, model="m", prompt="", reply="")
        return [*events[:-1], call, events[-1]]

    def cached(entry, events):
        call = ModelCall(step=1, source="harness", model="m", prompt="", reply="", cached=True)
        return [*events[:-1], call, events[-1]]

    make_run(tmp_path / "declared", of_one(make_plan(1)), edit=declared)
    make_run(tmp_path / "cached", of_one(make_plan(1)), edit=cached)
    (note,) = pilot_estimate(of_one(make_plan(1)), tmp_path / "declared").notes
    assert "declare calls of a model that no gateway saw" in note
    (note,) = pilot_estimate(of_one(make_plan(1)), tmp_path / "cached").notes
    assert note == "12 of the pilot's requests were answered by --model-cache, unpaid"


def test_lost_attempts_are_paid_too(tmp_path):
    plan = of_one(make_plan(1))
    layout = write_terms(tmp_path / "run", plan)
    with Recorder(
        ShardFiles(layout, 0), document_digest(plan), redact_key(MASTER), True
    ) as recorder:
        for entry in plan.entries:
            for attempt, status in enumerate(("infrastructure", "complete")):
                writer = recorder.episode(entry.index, attempt)
                for event in edit(entry, events(plan, entry, writer.blob, attempt)):
                    if status == "infrastructure" and isinstance(event, EpisodeEnd):
                        event = msgspec.structs.replace(event, outcome="infrastructure")
                    writer.emit(event)
                writer.close(status)
    amounts = pilot_estimate(plan, tmp_path / "run").rows[0].amounts
    assert amounts[REQUESTS].estimate == 2 * 2 * len(plan.entries)
    assert amounts[HOURS].estimate == pytest.approx(2 * 36 / 3600 * len(plan.entries))


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(RunDirectoryError, match="must exist"):
        pilot_estimate(make_plan(1), tmp_path / "gone")
