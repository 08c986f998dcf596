"""Expansion: a gain that an ablation takes away passes, one that it keeps does not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.score import ClosureResult
from owa_bench.scoring.expansion import (
    Capabilities,
    Expansion,
    expansion_test,
    holm,
    kept_gain,
)
from tests.builders.attempt_sets import GAIN, change, practice, sets
from tests.builders.episodes import PROTOCOL
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


def test_type_one_error_and_power(
    record_property: Callable[[str, object], None],
) -> None:
    null, kept, real = rate(0.0, 0.0), rate(0.3, 1.0), rate(0.3, 0.0)
    record_property(
        "PASS: no gain, ablation keeps it, real",
        repr((float(null), float(kept), float(real))),
    )
    assert null <= 0.025 + 0.02
    assert kept <= 0.05
    assert real >= 0.9


def test_a_gain_of_the_placebo_lane_too_is_no_gain() -> None:
    """An agent that unlocks a family it shipped with gains as much there."""
    unlocked = [
        expansion_test(planted(0.3, 0.0, seed, shipped=1.0), PROTOCOL)
        for seed in range(200)
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
        one._replace(
            **{name: np.clip(getattr(one, name) - 0.2, 0, 1) for name in later}
        )
        for one in (
            f._replace(**{n: f._asdict()[n] / 2 + 0.5 for n in f._fields})
            for f in found
        )
    ]
    tests = [expansion_test(one, PROTOCOL) for one in harder]
    assert float(np.mean([passes(test) for test in tests])) >= 0.9
    wide = [one._replace(ablated=np.zeros(40)) for one in harder]
    assert not any(passes(expansion_test(one, PROTOCOL)) for one in wide)


def test_a_gain_of_the_control_too_is_no_gain() -> None:
    found = planted(0.3, 0.0, 1)
    drifting = found._replace(control_after=found.control_before + 0.3)
    test = expansion_test(
        drifting._replace(control_after=np.clip(drifting.control_after, 0, 1)),
        PROTOCOL,
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
        good._replace(after=good.after * np.nan),
        good._replace(after=good.after + 2),
        Capabilities(*(part[:1] for part in good)),
    ):
        with pytest.raises(ScoringError):
            expansion_test(bad, PROTOCOL)


def sustained(days: int, kept_until: int) -> ClosureResult:
    """Return the closure of a campaign that keeps its gain until a day."""
    quality = {**GAIN, "after": 0.7}
    shown = change(3, families=(NEW,))
    traces = [*practice(3), *sets(quality, tasks=12, shown=shown)]
    for day in range(4, 4 + days):
        later = {"after": 0.7 if day < kept_until else 0.2, "ablated": 0.2}
        played = sets(
            later, tasks=4, day=day, first=10_000 + 100 * day, shown=shown, seed=day
        )
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
