"""Campaigns inside episodes, of inner attempts written by hand."""

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from owa_bench.records.events import (
    AnyEvent,
    CampaignRevision,
    HoldoutAnswer,
    HoldoutRegistration,
    InnerAttempt,
    Intervention,
    Violation,
)
from owa_bench.records.holdout import FEWEST_PAIRS, e_value
from owa_bench.records.laboratory_events import AdoptedComponent
from owa_bench.scoring.observe.attempt_sets import REVISION
from owa_bench.scoring.observe.inner_attempts import (
    CampaignEvidence,
    campaign_sets,
    inner_faults,
    read_campaign,
)
from tests.builders.episodes import episode

PAIRS, GAIN = FEWEST_PAIRS, 0.125


def attempts(batch: str, condition: str, **fields: Any) -> list[InnerAttempt]:
    """Return one attempt a pair; .5 is its quality, .25 what it logged."""
    whole: dict[str, Any] = {
        "step": 9,
        "version": "old",
        "draw": "confirmation/new",
        "quality": 0.5,
        "logged": 0.25,
        "steps": 1,
        "replay": "r",
    }
    return [
        InnerAttempt(batch=batch, number=i, pair=i, condition=condition, **(whole | fields))
        for i in range(PAIRS)
    ]


def holdout(metric: str = "quality", **answer: Any) -> list[AnyEvent]:
    """Return a registered test of a version that is better by GAIN, and its answer."""
    better = 0.5 + GAIN if metric == "quality" else 0.5
    logged = 0.25 if metric == "quality" else 0.25 + GAIN
    base = attempts("h", "base", draw="holdout/plan", step=3)
    new = attempts(
        *("h", "candidate"),
        draw="holdout/plan",
        step=3,
        version="new",
        quality=better,
        logged=logged,
    )
    new = [structs.replace(one, number=PAIRS + one.number) for one in new]
    said = {"pairs": PAIRS, "statistic": GAIN, "e_value": e_value([GAIN] * PAIRS)}
    return [
        HoldoutRegistration(
            step=2,
            plan="plan",
            base="old",
            candidate="new",
            components=("c",),
            metric=metric,  # type: ignore[arg-type]
            pairs=PAIRS,
            rule="mean",
            level=0.05,
        ),
        *base,
        *new,
        HoldoutAnswer(step=4, plan="plan", batch="h", **(said | answer)),
    ]


def sets(**changes: dict[str, Any]) -> list[AnyEvent]:
    """Return the five sets at the end; `after` plays the last version, at .75."""
    played: list[AnyEvent] = []
    for condition in REVISION:
        own: dict[str, Any] = {}
        if condition == "after":
            own = {"version": "new", "quality": 0.75}
        played += attempts(f"set-{condition}", condition, **(own | changes.get(condition, {})))
    return played


def revision(**fields: Any) -> CampaignRevision:
    whole: dict[str, Any] = {
        "step": 5,
        "start": "old",
        "final": "new",
        "components": (AdoptedComponent(name="c", plan="plan"),),
        "lines": 4,
        "proposals": 2,
    }
    return CampaignRevision(**(whole | fields))


def campaign(*extra: AnyEvent, change: Any = None, **fields: Any) -> list[AnyEvent]:
    """Return the events of a sound campaign, in order."""
    return [*extra, *holdout(), *(change or sets()), revision(**fields)]


def found(events: list[AnyEvent]) -> CampaignEvidence | None:
    return read_campaign(episode(index=7, suite="selfrev", family="memory", extra=tuple(events)))


def test_a_sound_campaign_by_hand() -> None:
    one = found(campaign())
    assert one is not None
    assert (one.arm, one.pair, one.family) == ("agent", "p0", "selfrev/memory")
    assert one.quality == dict.fromkeys(REVISION, 0.5) | {"after": 0.75}
    assert (one.size, one.proposals, one.lines) == (PAIRS, 2, 4)
    assert one.e_values == {"plan": pytest.approx(e_value([GAIN] * PAIRS))}
    assert (one.adopted, one.countable, one.faults) == (("plan",), True, ())
    assert set(one.attempts) == set(REVISION)
    assert one.attempts["after"][1] == "000007.0/set-after/0001"


def test_an_episode_without_a_revision_or_an_attempt_is_no_campaign() -> None:
    assert found([revision()]) is None
    assert found(sets()) is None
    assert list(inner_faults([revision()])) == []
    assert list(inner_faults(sets())) == ["inner attempts without a campaign"]
    assert list(inner_faults([])) == []


def test_an_unchanged_version_reads_one_set_for_all_five() -> None:
    same = attempts("set-before", "before", draw="confirmation/old")
    events = [*holdout(), *same, revision(final="old", components=())]
    one = found(events)
    assert one is not None
    assert one.quality == dict.fromkeys(REVISION, 0.5)
    assert (one.size, one.faults, one.countable) == (PAIRS, (), True)
    lost = found([*holdout(), revision(final="old", components=())])
    assert lost is not None
    assert (lost.quality, lost.size) == ({}, 0)


def test_the_smallest_set_is_its_size() -> None:
    short = [e for e in sets() if e.batch != "set-ablated" or e.number < 3]  # type: ignore[union-attr]
    one = found(campaign(change=short))
    assert one is not None
    assert one.size == 3
    assert one.faults == ("000007.0: the sets have other instances",)


@pytest.mark.parametrize(
    ("events", "countable"),
    [
        (campaign(Intervention(step=1, kind="hint", minutes=1.0)), False),
        (campaign(Intervention(step=1, kind="refused", minutes=0.0)), True),
        (campaign(Violation(step=1, rule="r", severity="disqualify", evidence="e")), False),
        (campaign(Violation(step=1, rule="r", severity="flag", evidence="e")), True),
        (campaign(components=(AdoptedComponent(name="c"),)), False),
        (campaign(components=(AdoptedComponent(name="d", plan="plan"),)), False),
        ([*holdout("logged"), *sets(), revision()], False),
        ([*holdout()[:1], *sets(), revision()], False),
    ],
)
def test_a_gain_counts_on_tests_of_quality_without_help(events, countable) -> None:
    one = found(events)
    assert one is not None
    assert one.countable is countable


def test_a_registered_test_that_was_not_played_has_the_e_value_1() -> None:
    one = found([*holdout()[:1], *sets(), revision()])
    assert one is not None
    assert one.e_values == {"plan": 1.0}


def changed(events: list[AnyEvent], batch: str, place: int, fields: Any) -> Any:
    return [
        structs.replace(e, **fields)
        if isinstance(e, InnerAttempt) and (e.batch, e.number) == (batch, place)
        else e
        for e in events
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("h", 0, {"version": "x"}), "h: it plays other versions than its plan names"),
        (("h", PAIRS, {"version": "x"}), "h: it plays other versions"),
        (("h", 2, {"pair": 99}), "h: base and candidate met other instances"),
        (("h", 2, {"condition": "candidate"}), "h: it is not the holdout of its plan"),
        (("h", 2, {"quality": 0.25}), f"h: it answers ({GAIN}, "),
        (("h", 2, {"number": 99}), "h: its attempts are not numbered from 0"),
        (("set-before", 0, {"version": "x"}), "the set before plays another version"),
        (("set-after", 0, {"version": "old"}), "the set after plays another version"),
        (("set-before", 0, {"draw": "x"}), "the set before was not drawn after"),
        (("set-before", 0, {"step": 4}), "the set before was not drawn after"),
        (("set-before", 0, {"step": 5}), None),  # the step of the last adoption
        (("set-before", 0, {"pair": 99}), "the sets have other instances"),
    ],
)
def test_what_does_not_fit_is_named(change, words) -> None:
    batch, number, fields = change
    faults = list(inner_faults(changed(campaign(), batch, number, fields)))
    if words is None:
        assert faults == []
    else:
        assert len(faults) == 1
        assert faults[0].startswith(words)


def test_a_holdout_needs_an_open_registration() -> None:
    registered, *played, answer = holdout()
    end = [*sets(), revision()]
    late = list(inner_faults([*played, registered, answer, *end]))
    assert late == ["h: a holdout without an open registration"] * 2 * PAIRS
    after = list(inner_faults([registered, *played, answer, played[0], *end]))
    assert after[0] == "h: a holdout without an open registration"
    other = [structs.replace(e, draw="holdout/other") for e in played]
    assert "h: it is not the holdout of its plan" in list(
        inner_faults([registered, *other, answer, *end])
    )
    assert list(inner_faults([*played[:0], answer, *end])) == []


@pytest.mark.parametrize(
    ("answer", "faulty"),
    [
        ({}, False),
        ({"statistic": GAIN + 1e-6}, False),
        ({"statistic": GAIN + 1e-4}, True),
        ({"e_value": 1.0}, True),
        ({"pairs": PAIRS - 1}, True),
    ],
)
def test_an_answer_follows_from_the_attempts(answer, faulty) -> None:
    for metric in ("quality", "logged"):
        events = [*holdout(metric, **answer), *sets(), revision()]
        assert bool(list(inner_faults(events))) is faulty


def test_the_sets_are_all_five_or_one_of_an_unchanged_version() -> None:
    part = [e for e in sets() if e.condition != "ablated"]  # type: ignore[union-attr]
    names = sorted(set(REVISION) - {"ablated"})
    faults = list(inner_faults([*holdout(), *part, revision()]))
    assert faults == [f"the sets are {names}, not {sorted(REVISION)}"]
    still = list(inner_faults([*holdout(), *sets(), revision(final="old")]))
    assert f"the sets are {sorted(REVISION)}, not ['before']" in still


FAMILIES = ("selfrev/memory", "selfrev/skills")


def evidence(**changes: Any) -> CampaignEvidence:
    fields: dict[str, Any] = {
        "arm": "a",
        "pair": "p",
        "family": "selfrev/skills",
        "quality": dict.fromkeys(REVISION, 0.5) | {"after": 0.75},
        "size": 40,
        "attempts": {"after": ("x",)},
        "e_values": {"plan": 40.0, "other": 1.0},
        "adopted": ("plan",),
        "countable": True,
        "proposals": 1,
        "lines": 2,
        "faults": (),
    }
    return CampaignEvidence(**(fields | changes))


def after(*campaigns: CampaignEvidence) -> list[float]:
    (one,) = campaign_sets(campaigns, FAMILIES)
    values: list[float] = one.q["after"].tolist()
    return values


def test_a_gain_that_does_not_count_is_taken_out_and_harm_is_not() -> None:
    harm = dict.fromkeys(REVISION, 0.5) | {"after": 0.25}
    part = {"before": 0.375, "after": 0.75}
    assert after(
        evidence(),
        evidence(countable=False),
        evidence(countable=False, quality=harm),
        evidence(quality=part),
        evidence(quality={"after": 0.75}),
    ) == [0.75, 0.5, 0.25, 0.375, 0.0]
    equal = dict.fromkeys(REVISION, 0.5) | {"ablated": 0.25}
    (one,) = campaign_sets([evidence(countable=False, quality=equal)], FAMILIES)
    assert one.q["ablated"].tolist() == [0.5]


def test_the_stages_are_shares_of_campaigns_that_adopted_something() -> None:
    idle = evidence(adopted=(), proposals=0, lines=0)
    none = evidence(proposals=0, lines=0, e_values={"plan": 39.0, "other": 1.0})
    (one,) = campaign_sets([evidence(), idle, none, evidence(quality={})], FAMILIES)
    assert one.stages == (0.5, 0.5, 0.5)
    assert one.tasks == 3
    assert one.family.tolist() == [1, 1, 1]
    assert (one.size, one.lines, one.own_subject, one.one_law) == (120, 2, False, True)
    assert one.attempts == {"after": ("x", "x", "x")}
    assert one.window == (0, 0)
    assert np.isnan(one.earlier).all()
    assert len(one.earlier) == 2
    assert one.tests == (
        "3 campaigns of 1 instances, 6 tests registered, 1 of 2 adopted components confirmed "
        "by e-BH at 0.05"
    )
    (still,) = campaign_sets([idle], FAMILIES)
    assert still.stages == (0.0, 0.0, 0.0)
    assert campaign_sets([evidence(quality={})], FAMILIES) == ()
    faulty = campaign_sets([evidence(faults=("f", "g")), evidence()], FAMILIES)
    assert faulty[0].fault == "f; g"


def test_campaigns_of_one_instance_are_one_cluster() -> None:
    """Under any drift, help or repeat."""
    (one,) = campaign_sets([evidence(pair=pair) for pair in ("q", "p", "q", "q")], FAMILIES)
    assert one.clusters.tolist() == [1, 0, 1, 1]
    assert one.tasks == 4
