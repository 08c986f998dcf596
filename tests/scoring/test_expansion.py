"""Expansion: a gain that an ablation takes away passes, one that it keeps does not."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Revision
from owa_bench.records.observables import CAPABILITIES
from owa_bench.records.plan import Arm
from owa_bench.records.score import ClosureResult
from owa_bench.scoring.expansion import (
    Capabilities,
    Expansion,
    expansion_test,
    holm,
    longest_run,
    passes,
)
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of
from tests.builders.verdicts import verdict

NEW = "graphql"


def planted(gain: float, kept: float, seed: int, tasks: int = 40) -> Capabilities:
    """Return capabilities with a planted gain, of which ablation keeps a share."""
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
    )


def examined(*args: float, seed: int) -> Expansion:
    return expansion_test(
        planted(*args, seed), PROTOCOL, resamples=200, root=f"{ROOT}{seed}"
    )


def rate(*args: float, rounds: int = 200) -> float:
    verdicts = [passes([examined(*args, seed=seed)], 0.95)[0] for seed in range(rounds)]
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


def test_a_gain_of_the_control_too_is_no_gain() -> None:
    found = planted(0.3, 0.0, 1)
    drifting = found._replace(control_after=found.control_before + 0.3)
    test = expansion_test(
        drifting._replace(control_after=np.clip(drifting.control_after, 0, 1)),
        PROTOCOL,
        resamples=200,
        root=ROOT,
    )
    assert test.gain_low < 0


def test_holm_over_the_families_tried() -> None:
    assert holm([0.02, 0.02, 0.5], 0.025) == (False, False, False)
    assert holm([], 0.05) == ()
    one = examined(0.05, 0.0, seed=3)
    many = [one, *(examined(0.0, 0.0, seed=s) for s in range(4, 12))]
    assert sum(passes(many, 0.95)) <= sum(passes([one], 0.95))


def closure(kept: float, *, evidence: bool = True) -> ClosureResult:
    """Return the closure over a run whose revision installs a family."""
    quality = dict(
        zip(CAPABILITIES, (0.2, 0.7, 0.2, 0.2, 0.2 + 0.5 * kept), strict=True)
    )
    traces, names = [], []
    for condition in CAPABILITIES:
        for k in range(12):
            index = len(traces)
            names.append(f"{condition}={index:06d}.0")
            state = quality[condition] + 0.02 * (k % 3)
            traces.append(
                episode(index=index, pair=f"p{k}", repeat=0, q_state=state, stated=0.0)
            )
    event = Revision(
        step=1,
        proposal="use it",
        decision="adopted",
        family=NEW,
        evidence=tuple(names) if evidence else ("before=999999.0",),
    )
    traces.append(episode(index=len(traces), pair="home", extra=(event,)))
    return next(c for c in verdict(traces).closures if c.name == "expansion")


def test_from_the_traces_of_a_run() -> None:
    found = closure(0.0)
    assert found.status == "PASS"
    assert f"{NEW} expands" in found.reason
    assert len(found.evidence) == 60
    assert closure(1.0).status == "FAIL"
    assert closure(0.0, evidence=False).status == "NOT TESTED"


def test_bad_input_is_refused() -> None:
    good = planted(0.1, 0.0, 1)
    for bad in (
        good._replace(after=good.after[:-1]),
        good._replace(after=good.after * np.nan),
        good._replace(after=good.after + 2),
        Capabilities(*(part[:1] for part in good)),
    ):
        with pytest.raises(ScoringError):
            expansion_test(bad, PROTOCOL, resamples=10, root=ROOT)


def sustained(days: int, kept_until: int) -> ClosureResult:
    """Return the closure of a campaign that keeps its gain until a day."""
    traces, names = [], []
    quality = dict(zip(CAPABILITIES, (0.2, 0.7, 0.2, 0.2, 0.2), strict=True))
    for condition in CAPABILITIES:
        for k in range(12):
            names.append(f"{condition}={len(traces):06d}.0")
            state = quality[condition] + 0.02 * (k % 3)
            traces.append(
                episode(index=len(traces), pair=f"e{k}", q_state=state, stated=0.0)
            )
    event = Revision(
        step=1, proposal="p", decision="adopted", family=NEW, evidence=tuple(names)
    )
    for day in range(days):
        extra = (event,) if day == 2 else ()
        traces.append(
            episode(
                index=len(traces),
                pair=f"practice{day}",
                day=day,
                phase="practice",
                extra=extra,
            )
        )
        for arm in ("agent", "agent (frozen)"):
            learnt = arm == "agent" and 2 <= day < kept_until
            for k in range(2):
                traces.append(
                    episode(
                        index=len(traces),
                        arm=arm,
                        pair=f"c{k}",
                        day=day,
                        phase="checkpoint",
                        q_state=(0.7 if learnt else 0.2) + 0.01 * k,
                        stated=0.0,
                    )
                )
    arms = (
        Arm(name="agent", agent="agent", fingerprint="f"),
        Arm(name="agent (frozen)", agent="agent", fingerprint="f", frozen=True),
    )
    plan = msgspec.structs.replace(plan_of(traces, resamples=100), arms=arms)
    found = judge(plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    return next(c for c in found.verdicts[0].closures if c.name == "expansion")


@pytest.mark.parametrize(("kept_until", "days"), [(32, 30), (20, 18)])
def test_a_campaign_says_how_long_the_gain_was_kept(kept_until: int, days: int) -> None:
    found = sustained(32, kept_until)
    assert found.status == "PASS"
    assert found.days == days


def test_without_a_control_no_day_keeps_it() -> None:
    assert closure(0.0).days == 0
    assert longest_run([4, 5, 7, 8, 9]) == 3
