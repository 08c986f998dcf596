"""Expansion: a gain that an ablation takes away passes, one that it keeps does not."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.score import ClosureResult
from owa_bench.scoring.closures.expansion import (
    Capabilities,
    Expansion,
    _daily_gaps,
    _DayGap,
    _error_over_tasks,
    expansion,
    expansion_test,
    holm,
    kept_gain,
)
from owa_bench.scoring.observe.attempt_sets import REVISION, RevisionSets, RevisionStages
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics import slopes
from tests.builders.attempt_sets import GAIN, change, practice, sets
from tests.builders.columns import Columns
from tests.builders.episodes import PRICES, PROTOCOL
from tests.builders.verdicts import verdict

NEW = "graphql"


def planted(
    gain: float, kept: float, seed: int, tasks: int = 40, shipped: float = 0.0
) -> Capabilities:
    """Return a planted gain, of which ablation and placebo lane have a share."""
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.2, 0.5, tasks)

    def seen(shift: float) -> np.ndarray:
        return np.clip(skill + shift + 0.1 * rng.standard_normal(tasks), 0, 1)

    return Capabilities(
        before=seen(0),
        after=seen(gain),
        control_before=seen(0),
        control_after=seen(0),
        ablated=seen(kept * gain),
        placebo=seen(shipped * gain),
    )


def examined(*args: float, seed: int) -> Expansion:
    return expansion_test(planted(*args, seed), PROTOCOL)


def passes(test: Expansion) -> bool:
    return holm([test.p], 0.025)[0] and test.ablated


def rate(*args: float, rounds: int = 200) -> float:
    verdicts = [passes(examined(*args, seed=seed)) for seed in range(rounds)]
    return float(np.mean(verdicts))


def test_type_one_error_and_power(record_property: Callable[[str, object], None]) -> None:
    null, kept, real = rate(0.0, 0.0), rate(0.3, 1.0), rate(0.3, 0.0)
    record_property(
        "PASS: no gain, ablation keeps it, real", repr((float(null), float(kept), float(real)))
    )
    assert null <= 0.025 + 0.02
    assert kept <= 0.05
    assert real >= 0.9


def test_a_gain_of_the_placebo_lane_too_is_no_gain() -> None:
    """An agent that unlocks a family it shipped with gains as much there."""
    unlocked = [
        expansion_test(planted(0.3, 0.0, seed, shipped=1.0), PROTOCOL) for seed in range(200)
    ]
    assert min(test.gain_low for test in unlocked) > 0.1
    assert float(np.mean([passes(test) for test in unlocked])) <= 0.025 + 0.02


def test_an_ablation_that_disables_more_than_the_family_shows_nothing() -> None:
    """It passed: an agent that fails at everything then had lost its gain, too."""
    real = [planted(0.3, 0.0, seed) for seed in range(50)]
    broken = [found._replace(ablated=np.zeros(40)) for found in real]
    tests = [expansion_test(found, PROTOCOL) for found in broken]
    assert min(test.lost_low for test in tests) > 0
    assert not any(passes(test) for test in tests)
    assert not any(expansion_test(found, PROTOCOL).fallen_low > 0 for found in real)


def test_a_harder_world_is_not_taken_for_a_wide_ablation() -> None:
    """`before` is of the earlier world: its fall to `ablated` is the world's, too."""
    found = [planted(0.3, 0.0, seed) for seed in range(50)]
    later = ("after", "control_after", "ablated", "placebo")
    harder = [
        one._replace(**{name: np.clip(getattr(one, name) - 0.2, 0, 1) for name in later})
        for one in (f._replace(**{n: f._asdict()[n] / 2 + 0.5 for n in f._fields}) for f in found)
    ]
    tests = [expansion_test(one, PROTOCOL) for one in harder]
    assert float(np.mean([passes(test) for test in tests])) >= 0.9
    wide = [one._replace(ablated=np.zeros(40)) for one in harder]
    assert not any(passes(expansion_test(one, PROTOCOL)) for one in wide)


def test_a_gain_of_the_control_too_is_no_gain() -> None:
    found = planted(0.3, 0.0, 1)
    drifting = found._replace(control_after=found.control_before + 0.3)
    test = expansion_test(
        drifting._replace(control_after=np.clip(drifting.control_after, 0, 1)), PROTOCOL
    )
    assert test.gain_low < 0


def test_holm_over_the_families_tried() -> None:
    assert holm([0.02, 0.02, 0.5], 0.025) == (False, False, False)
    assert holm([], 0.05) == ()


def closure(kept: float, placebo: float | None = 0.2, **options: Any) -> ClosureResult:
    """Return the closure over a campaign whose revision installs a family."""
    quality = {**GAIN, "after": 0.7, "ablated": 0.2 + 0.5 * kept}
    if placebo is None:
        del quality["placebo"]
    else:
        quality["placebo"] = placebo
    shown = change(3, families=(NEW,))
    played = sets(quality, tasks=12, shown=shown, **options)
    traces = [*practice(3), *played]
    return next(c for c in verdict(traces).closures if c.name == "expansion")


def test_from_the_attempt_sets_of_a_campaign() -> None:
    found = closure(0.0)
    assert found.status == "PASS"
    assert f"{NEW} expands" in found.reason
    assert len(found.evidence) == 6
    assert closure(1.0).status == "FAIL"
    assert closure(0.0, placebo=0.7).status == "FAIL"


def test_without_a_placebo_lane_there_is_no_evidence() -> None:
    found = closure(0.0, placebo=None)
    assert found.status == "NO EVIDENCE"
    assert "no placebo lane" in found.reason


def test_sets_that_are_not_the_agents_own_test_nothing() -> None:
    """Today's fault: the oracle's attempts gave PASS."""
    found = closure(0.0, after={"arm": "oracle"})
    assert (found.status, "PASS" in found.reason) == ("NOT TESTED", False)


def test_one_set_five_times_over_tests_nothing() -> None:
    quality = {"after": 0.7}
    traces = [*practice(3), *sets(quality, tasks=12, shown=change(3, families=(NEW,)))]
    found = next(c for c in verdict(traces).closures if c.name == "expansion")
    assert found.status == "NOT TESTED"
    assert "no attempts of the sets before" in found.reason


def test_a_change_that_installs_no_family_is_no_expansion() -> None:
    traces = [*practice(3), *sets({**GAIN, "after": 0.7}, tasks=12)]
    found = next(c for c in verdict(traces).closures if c.name == "expansion")
    assert found.reason == "no tool family was installed in a revision that was tested"


def test_bad_input_is_refused() -> None:
    good = planted(0.1, 0.0, 1)
    for bad in (
        good._replace(after=good.after[:-1]),
        good._replace(after=np.where(np.arange(40) == 3, np.nan, good.after)),
        good._replace(after=good.after + 2),
        Capabilities(*(part[:1] for part in good)),
    ):
        with pytest.raises(ScoringError, match=r"six arrays|numbers in"):
            expansion_test(bad, PROTOCOL)


def sustained(days: int, kept_until: int) -> ClosureResult:
    """Return the closure of a campaign that keeps its gain until a day."""
    quality = {**GAIN, "after": 0.7}
    shown = change(3, families=(NEW,))
    traces = [*practice(3), *sets(quality, tasks=12, shown=shown)]
    for day in range(4, 4 + days):
        later = {"after": 0.7 if day < kept_until else 0.2, "ablated": 0.2}
        played = sets(later, tasks=4, day=day, first=10_000 + 100 * day, shown=shown, seed=day)
        traces += played
    return next(c for c in verdict(traces).closures if c.name == "expansion")


@pytest.mark.parametrize(("kept_until", "days"), [(40, 30), (20, 0)])
def test_a_campaign_says_whether_the_gain_lasted(kept_until: int, days: int) -> None:
    found = sustained(30, kept_until)
    assert found.status == "PASS"
    assert found.days == days


def test_days_below_the_protocols_number_sustain_nothing() -> None:
    found = sustained(29, 40)
    assert found.days == 0
    assert "played again on 29 later days" in found.reason
    assert closure(0.0).days == 0


@pytest.mark.parametrize("lag", [0.0, 0.6])
def test_half_a_gain_that_was_measured_once_is_not_sustained(lag: float) -> None:
    """The gain has the shock of its day; days that are alike are no 30 days."""
    rng, days = np.random.default_rng(0), np.arange(30.0)
    shocks = rng.standard_normal((300, 31))
    shocks[:, 2:] *= np.sqrt(1 - lag**2)
    for day in range(2, 31):
        shocks[:, day] += lag * shocks[:, day - 1]
    gain, gaps = 0.3 + 0.1 * shocks[:, 0], 0.15 + 0.1 * shocks[:, 1:]
    found = kept_gain(gaps, days, gain, 0.06, PROTOCOL)
    assert found.lasts.mean() <= 0.06
    whole = kept_gain(gaps + 0.15, days, gain, 0.06, PROTOCOL)
    assert whole.lasts.mean() >= 0.5


@pytest.mark.parametrize(
    "left",  # of the ablated above before: above 0, below 0, and with a wide spread
    [(0.1, 0.0, 0.1, 0.0, -0.1), (0.1, -0.2, -0.1, 0.0, -0.1), (0.7, -0.3, 0.6, -0.4, -0.1)],
)
def test_every_figure_of_the_paired_test_by_hand(left) -> None:
    """Five tasks; each of the five series is compared with its own plain t test."""
    before = np.array([0.2, 0.3, 0.1, 0.4, 0.2])
    found = Capabilities(
        before=before,
        after=np.array([0.6, 0.8, 0.4, 0.7, 0.7]),
        control_before=np.array([0.2, 0.2, 0.2, 0.3, 0.1]),
        control_after=np.array([0.3, 0.2, 0.2, 0.2, 0.2]),
        ablated=before + np.array(left),
        placebo=np.array([0.3, 0.4, 0.3, 0.2, 0.3]),
    )
    test = expansion_test(found, PROTOCOL)
    share, rules = PROTOCOL.closures.gain_lost, PROTOCOL.statistics
    gains = np.array([0.3, 0.5, 0.3, 0.4, 0.4])
    learned = np.array([0.3, 0.4, 0.1, 0.5, 0.4])
    removed = np.array([0.4, 0.5, 0.3, 0.3, 0.5]) - left
    lost = removed - share * np.array([0.4, 0.5, 0.3, 0.3, 0.5])
    fallen = removed - (1 + share) * gains

    def error(values: np.ndarray) -> float:
        return float(np.std(values, ddof=1) / np.sqrt(5))

    assert (test.gain, test.over_placebo) == pytest.approx((0.38, 0.34))
    assert test.gain_error == pytest.approx(error(gains))
    two = stats.t.ppf((1 + rules.level) / 2, 4)
    assert test.gain_low == pytest.approx(0.38 - two * error(gains))
    p = [stats.ttest_1samp(x, 0, alternative="greater").pvalue for x in (gains, learned)]
    assert p[1] > p[0]
    assert test.p == pytest.approx(p[1])
    once = stats.t.ppf(rules.gate_level, 4)
    assert test.lost_low == pytest.approx(lost.mean() - once * error(lost))
    assert test.fallen_low == pytest.approx(fallen.mean() - once * error(fallen))
    both = [
        stats.ttest_1samp(left, 0.19, alternative="less").pvalue,
        stats.ttest_1samp(left, -0.19, alternative="greater").pvalue,
    ]
    assert test.equivalence_p == pytest.approx(max(both))
    power = 2 * stats.norm.cdf(0.19 / error(left) - once) - 1
    assert test.equivalence_power == pytest.approx(max(power, 0.0))
    assert (power < 0) == (max(left) > 0.5)
    assert test.tasks == 5


def test_values_of_0_and_1_are_capabilities_and_two_tasks_are_enough() -> None:
    ends = Capabilities(*(np.array([0.0, 1.0]) for _ in range(6)))
    assert expansion_test(ends, PROTOCOL).gain == 0.0
    for wrong in (-1e-9, 1 + 1e-9):
        with pytest.raises(ScoringError, match=r"in \[0, 1\]"):
            expansion_test(ends._replace(placebo=np.array([0.5, wrong])), PROTOCOL)
    with pytest.raises(ScoringError, match="six arrays of 2 tasks"):
        expansion_test(Capabilities(*(np.ones((2, 2)) for _ in range(6))), PROTOCOL)


@pytest.mark.parametrize(
    ("lost", "fallen", "ablated"),
    [(0.1, 0.0, True), (0.0, -0.1, False), (0.1, 1e-9, False), (1e-9, -1.0, True)],
)
def test_an_ablation_takes_the_gain_away_and_no_more(lost, fallen, ablated) -> None:
    test = examined(0.3, 0.0, seed=1)._replace(lost_low=lost, fallen_low=fallen)
    assert test.ablated is ablated


def test_holm_divides_by_the_hypotheses_that_are_left() -> None:
    assert holm([0.025, 0.05, 0.012], 0.05) == (True, True, True)
    assert holm([0.0251, 0.01], 0.025) == (False, True)
    assert holm([0.05 / 3, 0.026, 0.01], 0.05) == (True, True, True)


def test_what_is_left_of_a_gain_is_read_on_its_mean_and_on_the_last_day() -> None:
    rng, days = np.random.default_rng(3), np.arange(30.0)
    gaps = 0.3 + 0.05 * rng.standard_normal(30)
    rules, level = PROTOCOL.closures, PROTOCOL.statistics.gate_level
    for error in (0.2, 0.001):  # the second is below the spread of the days
        found = kept_gain(gaps, days, 0.4, error, PROTOCOL)
        used = max(error, gaps.std(ddof=1))
        half, least = rules.gain_lost, rules.gain_lost - rules.sustained_loss
        mean = slopes.mean_level(gaps - half * 0.4, days).with_error(half * used)
        end = slopes.end_level(gaps - least * 0.4, days).with_error(least * used)
        assert found.mean == pytest.approx(gaps.mean() - half * 0.4)
        assert found.lower == pytest.approx(mean.lower(level))
        assert found.last == pytest.approx(end.lower(level))
        assert bool(found.lasts) == (found.lower > 0 and found.last > 0)
    both = kept_gain(np.stack((gaps, gaps / 4)), days, np.array([0.4, 0.4]), 0.01, PROTOCOL)
    assert both.lasts.tolist() == [True, False]


def test_the_error_over_tasks_of_a_gap_by_hand() -> None:
    """Two days of three tasks whose gaps are .1, .6 and .6 on each."""
    day = _DayGap(
        Columns(q=np.array([0.7, 0.5, 0.9]), pair=np.array(["c", "a", "b"])),
        Columns(q=np.array([0.4, 0.3, 0.1]), pair=np.array(["a", "b", "c"])),
    )
    expected = np.array([0.1, 0.6, 0.6]).std(ddof=1) / np.sqrt(3)
    assert _error_over_tasks([day, day]) == pytest.approx(expected)


def test_days_alike_do_not_make_few_tasks_many() -> None:
    days, gaps = np.arange(30.0), np.full(30, 0.3)
    assert kept_gain(gaps, days, 0.3, 0.01, PROTOCOL).lasts
    wide = kept_gain(gaps, days, 0.3, 0.01, PROTOCOL, task_error=0.1)
    level = PROTOCOL.statistics.gate_level
    mean = slopes.mean_level(gaps - 0.15, days).with_error(np.hypot(0.005, 0.1))
    assert wide.lower == pytest.approx(mean.lower(level))
    assert not wide.lasts


def test_a_gain_that_ends_low_does_not_last_though_its_mean_does() -> None:
    days = np.arange(30.0)
    falling = np.linspace(0.9, 0.05, 30)
    found = kept_gain(falling, days, 0.4, 0.01, PROTOCOL)
    assert (found.lower > 0, found.last > 0, found.lasts) == (True, False, False)


def revision(**changes: Any) -> RevisionSets:
    """Return a revision that installs a family, with a gain that ablation takes."""
    values = {"after": 0.8}
    quality = {
        name: values.get(name, 0.2) + np.tile([0.05, -0.05], 10) for name in (*REVISION, "placebo")
    }
    fields: dict[str, Any] = {
        "window": (0, 3),
        "family": np.zeros(20, int),
        "q": quality,
        "one_law": True,
        "earlier": np.zeros(1),
        "stages": RevisionStages(True, True, True),
        "human": "",
        "lines": 1,
        "installed": (NEW,),
        "attempts": dict.fromkeys(quality, ("first", "last")),
    }
    return RevisionSets(**fields | changes)


def closed(*sets: RevisionSets) -> ClosureResult:
    nothing = observe([], PRICES)
    return expansion(sets, nothing, PROTOCOL)


def test_a_revision_that_installs_nothing_counts_among_the_hypotheses() -> None:
    """A p that alone is below alpha is above it over enough revisions."""
    noise = np.random.default_rng(1).normal(0, 0.1, 20)
    weak = revision()
    q = dict(weak.q)
    q["after"] = np.clip(q["before"] + 0.025 + noise, 0, 1)
    weak = weak._replace(q=q)
    test = expansion_test(Capabilities(**{n: q[n] for n in Capabilities._fields}), PROTOCOL)
    alpha = (1 - PROTOCOL.statistics.level) / 2
    assert alpha / 1.5 < test.p < alpha
    assert "expands" in closed(revision()).reason
    assert closed(revision(), *[revision(installed=())] * 9).status == "PASS"
    assert not closed(*[revision(installed=())] * 2).reason.startswith(NEW)
    assert closed(weak).status == "PASS"
    beside = closed(weak, revision(installed=()))
    assert (beside.status, beside.days) == ("FAIL", 0)


def test_one_family_that_expands_is_enough_beside_one_that_does_not() -> None:
    found = closed(revision(q={**revision().q, "after": revision().q["before"]}))
    assert found.status == "FAIL"
    assert found.reason.startswith(f"{NEW} does not expand")
    for order in (1, -1):
        q = dict.fromkeys((*REVISION, "placebo"), np.tile([0.05, 0.15], 10))
        pair = [revision(), revision(q=q, installed=("b", "c"))][::order]
        found = closed(*pair)
        assert found.status == "PASS"
        assert f"{NEW} expands" in found.reason
        assert "b, c does not expand" in found.reason


def test_sets_that_are_small_faulty_or_without_a_placebo_test_nothing() -> None:
    found = closed(revision(fault="late"), revision(installed=()))
    assert (found.status, found.reason) == ("NOT TESTED", "late")
    small = closed(revision(), revision(family=np.zeros(1, int)))
    assert small.reason == "the five sets are not of the same 2 tasks or more"
    q = {name: part for name, part in revision().q.items() if name != "placebo"}
    assert closed(revision(), revision(q=q)).status == "NO EVIDENCE"
    assert closed(revision(q=q, family=np.zeros(2, int))).status == "NO EVIDENCE"


def test_controls_enter_a_gain_only_where_the_worlds_have_two_laws() -> None:
    q = dict(revision().q)
    q["control_after"] = q["control_before"] + 0.5
    assert "gain 0.600" in closed(revision(q=q)).reason
    assert "gain 0.100" in closed(revision(q=q, one_law=False)).reason


def test_evidence_names_the_ends_of_every_set() -> None:
    found = closed(revision())
    assert found.evidence == tuple(f"{name}: first to last" for name in (*REVISION, "placebo"))
    assert found.days == 0


def later(**changes: Any) -> Any:
    """Return episodes of two days after a window, and the practice before each.

    Day 4: .8 with and .3 without the family; day 5: .7 and .4.
    """
    rows = [
        (day, name, pair, q)
        for day, values in ((4, {"after": 0.8, "ablated": 0.3}), (5, {"after": 0.7}))
        for name, q in (values | {"ablated": 0.3 if day == 4 else 0.4}).items()
        for pair in ("p", "q")
    ]
    day, name, pair, q = (np.array(column) for column in zip(*rows, strict=True))
    ablated = np.flatnonzero(name == "ablated")
    fields: dict[str, Any] = {
        "day": np.append(day, np.arange(-1, 5)),
        "condition": np.append(name, [""] * 6),
        "pair": np.append(pair, ["x"] * 6),
        "q": np.append(q, np.zeros(6)),
        "since": np.append(np.zeros(8, int), np.full(6, -1)),
        "phase": np.array(["holdout"] * 8 + ["practice"] * 6),
        "memory": np.append(
            np.where(name == "after", np.char.add("m", (day - 1).astype(str)), "old"),
            [f"m{i}" for i in range(-1, 5)],
        ),
        "before": np.full(4, "m-1"),
        "after": np.char.add("m", (day[ablated] - 1).astype(str)),
    }
    fields |= changes
    said = {key: fields.pop(key) for key in ("before", "after")}
    return _Dated(fields, ablated, said)


class _Dated(Columns):
    """Columns with the memory changes of some of their rows."""

    def __init__(self, fields: Any, at: Any, said: Any) -> None:
        super().__init__(**fields)
        self._at, self._said = at, said

    def take(self, mask: Any) -> Any:
        places = np.flatnonzero(mask)
        fields = {
            name: column[mask] for name, column in vars(self).items() if not name.startswith("_")
        }
        inside = np.isin(self._at, places)
        said = {name: column[inside] for name, column in self._said.items()}
        return _Dated(fields, np.searchsorted(places, self._at[inside]), said)

    @property
    def changes(self) -> Any:
        return SimpleNamespace(row=self._at, **self._said)


def gaps(**changes: Any) -> dict[int, float]:
    found = _daily_gaps(revision(), later(**changes))
    return {day: gap.mean for day, gap in found.items()}


def altered(column: str, place: int, value: Any) -> dict[str, Any]:
    """Return one column of `later` with another value at a place."""
    table = later()
    found = table._said[column] if column in ("before", "after") else vars(table)[column]
    found = found.astype(object if isinstance(value, str) else found.dtype)
    found[place] = value
    return {column: found}


def test_a_day_adds_what_its_set_has_over_the_ablated_one() -> None:
    assert gaps() == {4: pytest.approx(0.5), 5: pytest.approx(0.3)}


@pytest.mark.parametrize(
    ("column", "place", "value"),
    [
        ("memory", 0, "old"),  # of the first task of `after` on day 4
        ("memory", 1, "old"),
        ("before", 1, "m2"),
        ("after", 0, "m2"),
        ("pair", 2, "z"),
        ("since", 0, 1),
        ("condition", 3, "else"),
    ],
)
def test_a_day_that_is_not_played_as_the_sets_were_adds_nothing(column, place, value) -> None:
    assert gaps(**altered(column, place, value)) == {5: pytest.approx(0.3)}


def test_the_day_of_the_window_itself_is_no_later_day() -> None:
    days = later().day.copy()
    days[:4] = 3
    assert set(gaps(day=days)) == {5}
