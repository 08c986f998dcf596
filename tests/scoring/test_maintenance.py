"""Maintenance: one memory a morning, two lanes, and a baseline that drift must bite."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention
from owa_bench.records.score import ClosureResult
from owa_bench.records.trace import Trace
from owa_bench.scoring.maintenance import kept_share, longest_run
from owa_bench.scoring.slopes import mean_level
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

DAYS, TASKS = 7, 6


def lanes(
    days: int = DAYS,
    *,
    clean: float = 0.8,
    drifted: float = 0.8,
    blind: float | None = 0.4,
    shock: float = 0.0,
    seed: int = 0,
    extra: dict[int, Any] | None = None,
    **changes: Any,
) -> list[Trace]:
    """Return days of practice, both lanes, and the baseline's; a base row a task."""
    traces: list[Trace] = []
    rng = np.random.default_rng(seed)

    def add(**terms: Any) -> None:
        traces.append(episode(index=len(traces), stated=0.5, **terms))

    for day in range(days):
        memory = f"{day:064d}" if day else ""
        for arm in ("agent", "agent (baseline)"):
            own = arm == "agent"
            if not own and blind is None:
                continue
            for condition, mean in (("clean", clean), ("drifted", drifted)):
                if not own:
                    mean = 0.8 if condition == "clean" else blind or 0.0
                state = mean + shock * rng.standard_normal()
                for k in range(TASKS):
                    terms: dict[str, Any] = {
                        "arm": arm,
                        "pair": f"p{k}",
                        "day": day,
                        "condition": condition,
                        "realised": 0.3 if condition == "drifted" else 0.0,
                        "q_state": float(np.clip(state, 0.0, 1.0)),
                        "memory": (memory or EMPTY) if own else None,
                    }
                    add(**(terms | (changes if own else {})))
        add(
            pair=f"practice/{day}",
            day=day,
            delta=None,
            phase="practice",
            memory=f"{day + 1:064d}",
            extra=(extra or {}).get(day, ()),
        )
        add(pair="p0", day=day, phase="checkpoint", q_state=0.5)
    return traces


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def closure(traces: list[Trace], **rules: Any) -> ClosureResult:
    closures = msgspec.structs.replace(PROTOCOL.closures, **rules)
    protocol = msgspec.structs.replace(PROTOCOL, closures=closures)
    found = verdict(traces, protocol).closures
    return next(c for c in found if c.name == "maintenance")


def test_an_unchanged_agent_passes_and_says_how_well() -> None:
    found = closure(lanes())
    assert (found.status, found.days) == ("PASS", DAYS)
    assert "power at ratio 1: 1.00" in found.reason
    assert found.details["drifted over clean"]["P"] == 1.0


def test_a_worn_agent_fails() -> None:
    assert closure(lanes(drifted=0.7)).status == "FAIL"


def test_a_static_agent_that_drift_bites_fails() -> None:
    """Today's fault: agents that change nothing read a ratio of 1.000."""
    found = closure(lanes(drifted=0.4))
    assert found.status == "FAIL"
    assert "kept 0.500" in found.reason


def test_the_best_clean_quality_counts_wherever_it_was() -> None:
    traces = lanes(clean=0.5, drifted=0.5, blind=0.2)
    assert closure(traces).status == "PASS"
    good = episode(index=len(traces), pair="p1", day=0, phase="checkpoint")
    found = closure([*traces, good])
    assert found.details["best clean mean from elsewhere"] > 0.5
    assert found.status == "FAIL"


def test_noisy_days_are_underpowered_and_no_evidence() -> None:
    found = closure(lanes(shock=0.1, drifted=0.75))
    assert found.status == "NO EVIDENCE"
    assert found.reason.startswith("underpowered")


def test_a_mean_of_nothing_fails() -> None:
    assert closure(lanes(drifted=0.0)).reason == "a lane's mean quality is 0"


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        (lanes(6), "6 consecutive days with a clean and a drifted lane of 7"),
        (lanes(blind=0.7), "drift did not bite: the drift-blind baseline keeps 0.875"),
        (lanes(blind=None), "no drift-blind baseline was played"),
        (lanes(memory="f" * 64), "did not begin with that morning's memory"),
        (lanes(realised=0.0), "0 consecutive days"),
        ([episode()], "0 consecutive days"),
    ],
)
def test_what_is_not_tested_says_why(traces: list[Trace], words: str) -> None:
    found = closure(traces)
    assert (found.status, words in found.reason) == ("NOT TESTED", True)


def test_a_patched_window_fails() -> None:
    patch = Intervention(step=1, kind="patch", minutes=1.0)
    found = closure(lanes(extra={3: (patch,)}))
    assert (found.status, found.reason) == ("FAIL", "a human patch in the window")


def test_days_that_are_no_week_in_a_row() -> None:
    assert longest_run([0, 10, 20, 30, 40, 50, 60]) == (60,)


def test_the_share_that_is_kept_by_hand() -> None:
    x, k = np.array([0.4, 0.5, 0.6]), np.array([0.5, 0.5, 0.5])
    found = kept_share(x, k, 0.6, 0.95, 0.95)
    assert found.theta == pytest.approx(math.log(0.5 / 0.6))
    left = np.log(np.array([0.55, 0.5, 0.45]) / 0.6)
    pseudo = 3 * found.theta - 2 * left
    bound = mean_level(pseudo - pseudo.mean() + found.theta).lower(0.95)
    assert found.lower == pytest.approx(bound)
    spread = ((left - left.mean()) ** 2).sum()
    # Days alike cost more than independent ones: t .95 on 2 is 2.92.
    assert found.theta - found.lower > 2.92 * math.sqrt(2 / 3 * spread)


def test_one_day_that_drift_left_shows_nothing() -> None:
    found = kept_share(np.array([0.0, 0.9, 0.0]), np.full(3, 0.3), 0.0, 0.95, 0.95)
    assert (found.lower, found.power) == (-np.inf, 0.0)


def test_pass_rates_of_unchanged_and_of_worn_agents(
    record_property: Callable[[str, object], None],
) -> None:
    """Days of 168 tasks with day shocks of the lanes' own."""
    rng = np.random.default_rng(1)

    def rate(days: int, kept: float) -> float:
        shares = (0.9 * kept, 0.9)
        x, k = (rng.binomial(168, share, (400, days)) / 168 for share in shares)
        return float(kept_share(x, k, 0.0, 0.95, 0.95).passes(0.95).mean())

    rates = (rate(14, 1.0), rate(7, 1.0), rate(14, 0.95))
    record_property("PASS at 14 days, at 7 days, of one that keeps 95 percent", rates)
    assert rates[0] >= 0.85
    assert rates[2] <= 0.06


def test_bad_input_is_refused() -> None:
    for x, k in (
        (np.ones(1), np.ones(1)),
        (np.ones(3), np.ones(2)),
        (np.zeros(3),) * 2,
    ):
        with pytest.raises(ScoringError):
            kept_share(x, k, 0.0, 0.95, 0.95)
