"""Maintenance: one memory a morning, two lanes, and a baseline that drift must bite."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention
from owa_bench.records.observables import NO_DAY
from owa_bench.records.score import ClosureResult
from owa_bench.records.trace import Trace
from owa_bench.scoring.closures.maintenance import (
    KeptShare,
    kept_share,
    lane_means,
    longest_run,
    maintenance,
)
from owa_bench.scoring.statistics.slopes import mean_level
from tests.builders.columns import Columns
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

DAYS, TASKS = 7, 6


def lanes(
    days: int = DAYS,
    *,
    clean: float = 0.8,
    drifted: float = 0.8,
    blind: float | None = 0.4,
    base: float = 0.5,
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
        add(pair=f"p{day % TASKS}", day=day, phase="checkpoint", q_state=base)
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
    assert (found.status, found.below) == ("FAIL", True)
    assert "kept 0.500" in found.reason


def test_what_keeps_too_little_by_chance_alone_is_not_below() -> None:
    """Upper bounds of two agents that keep .93, with days that differ and with days alike."""
    for shock, below in ((0.02, False), (0.001, True)):
        found = closure(lanes(drifted=0.744, shock=shock))
        assert (found.status, found.below) == ("FAIL", below), found.reason
        assert (found.details["upper bound"] < math.log(PROTOCOL.closures.rho)) == below


def test_the_best_clean_quality_counts_wherever_it_was() -> None:
    assert closure(lanes(clean=0.5, drifted=0.5, blind=0.2)).status == "PASS"
    found = closure(lanes(clean=0.5, drifted=0.5, blind=0.2, base=1.0))
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
    assert (found.lower, found.upper, found.power) == (-np.inf, np.inf, 0.0)


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
    for x, k in ((np.ones(1), np.ones(1)), (np.ones(3), np.ones(2)), (np.zeros(3),) * 2):
        with pytest.raises(ScoringError):
            kept_share(x, k, 0.0, 0.95, 0.95)


def test_the_power_is_the_chance_to_pass_at_a_ratio_of_1() -> None:
    rng = np.random.default_rng(2)
    x, k = 0.8 + 0.05 * rng.standard_normal((2, 9))
    found = kept_share(x, k, 0.0, 0.9, 0.95)
    left = np.log((x.sum() - x) / (k.sum() - k))
    error = mean_level(8 * (left.mean() - left))
    reach = error.upper(0.95)
    assert found.theta == pytest.approx(math.log(x.mean() / k.mean()))
    assert found.lower == pytest.approx(found.theta - reach)
    assert found.upper == pytest.approx(found.theta + reach)
    assert found.power == pytest.approx(error.p_above(-math.log(0.9) - reach))
    assert found.passes(math.exp(found.lower + 1e-9)) == np.False_
    assert found.passes(math.exp(found.lower - 1e-9)) == np.True_


def test_two_days_are_the_least_and_series_are_read_at_once() -> None:
    x, k = np.array([[0.4, 0.6], [0.3, 0.3]]), np.full((2, 2), 0.5)
    found = kept_share(x, k, np.array([0.0, 0.6]), 0.95, 0.95)
    assert np.exp(found.theta) == pytest.approx([1.0, 0.5])
    with pytest.raises(ScoringError, match="must be above 0"):
        kept_share(x, np.zeros((2, 2)), np.array([0.5, 0.0]), 0.95, 0.95)
    assert kept_share(x, np.zeros((2, 2)), 0.5, 0.95, 0.95).theta.shape == (2,)


def test_a_run_of_days_is_the_longest_and_the_last_of_equals() -> None:
    assert longest_run([]) == ()
    assert longest_run([1, 2, 3, 7, 8]) == (1, 2, 3)
    assert longest_run([0, 1, 4, 5, 9]) == (4, 5)


def test_the_means_of_a_lane_are_by_day() -> None:
    rows = Columns(
        condition=np.array(["clean", "clean", "drifted", "clean", "clean"]),
        day=np.array([3, 3, 3, 4, NO_DAY]),
        q_state=np.array([0.2, 0.4, 0.9, 0.5, 1.0]),
    )
    assert lane_means(rows, "clean") == {3: pytest.approx(0.3), 4: 0.5}
    assert lane_means(rows, "drifted") == {3: 0.9}


def lane_rows(**changes: Any) -> tuple[Columns, Columns, Columns]:
    """Return an agent's rows, the baseline's, and a base row of each task.

    Two tasks on days 2 to 8: .8 without and with drift; a practice episode a day.
    """
    days = np.repeat(np.arange(2, 9), 4)
    count = len(days)
    fields: dict[str, Any] = {
        "day": days,
        "condition": np.tile(["clean", "clean", "drifted", "drifted"], 7),
        "pair": np.tile(["p", "q"], 14),
        "family": np.full(count, "f"),
        "q_state": np.full(count, 0.8),
        "realised": np.tile([0.0, 0.0, 0.3, 0.3], 7),
        "memory": np.array([f"m{day - 1}" for day in days]),
        "phase": np.full(count, "holdout"),
        "patched": np.zeros(count, int),
        "fingerprint": np.full(count, "f"),
        "attempt": np.array([f"a{i}" for i in range(count)]),
    }
    drills: dict[str, Any] = {
        "day": np.arange(9),
        "condition": np.full(9, ""),
        "pair": np.full(9, "x"),
        "family": np.full(9, "f"),
        "q_state": np.full(9, 0.1),
        "realised": np.zeros(9),
        "memory": np.array([f"m{day}" for day in range(9)]),
        "phase": np.full(9, "practice"),
        "patched": np.zeros(9, int),
        "fingerprint": np.full(9, "f"),
        "attempt": np.array([f"x{i}" for i in range(9)]),
    }
    for name, values in changes.items():
        part, _, column = name.partition("__")
        {"lane": fields, "drill": drills}[part][column] = values
    table = Columns(**{name: np.concatenate((fields[name], drills[name])) for name in fields})
    blind = Columns(**fields)
    blind.q_state = np.where(blind.condition == "drifted", 0.4, 0.8)
    base = Columns(
        q_state=np.array([0.8, 0.8, 1.0]), pair=np.array(["p", "q", "z"]), day=np.zeros(3, int)
    )
    return table, blind, base


def read(*parts: Columns, **rules: Any) -> ClosureResult:
    closures = msgspec.structs.replace(PROTOCOL.closures, **({"days": 7} | rules))
    protocol = msgspec.structs.replace(PROTOCOL, closures=closures)
    return maintenance(*parts, protocol, {"P": 1.0})  # type: ignore[arg-type]


def test_figures_of_a_closure_by_hand() -> None:
    found = read(*lane_rows())
    assert (found.status, found.days) == ("PASS", 7)
    assert found.evidence == ("a0 to a27",)
    assert found.details["days"] == [2, 8]
    assert found.details["drifted"] == found.details["clean"] == [0.8] * 7
    assert found.details["best clean mean from elsewhere"] == 0.8  # of p and q alone
    assert found.details["theta"] == pytest.approx(0.0, abs=1e-9)
    assert found.details["drifted over clean"] == {"P": 1.0}


def test_clean_lanes_of_the_days_before_the_window_raise_the_floor() -> None:
    """A clean lane on day 0, whose drifted lane was not played: its mean is 1."""
    table, blind, base = lane_rows()
    early = Columns(**{name: column[:2] for name, column in vars(table).items()})
    early.day, early.q_state = np.zeros(2, int), np.ones(2)
    both = Columns(
        **{
            name: np.concatenate((getattr(early, name), column))
            for name, column in vars(table).items()
        }
    )
    found = read(both, blind, base)
    assert found.details["best clean mean from elsewhere"] == 1.0
    assert found.status == "FAIL"
    early.day = np.full(2, -6)  # more than a window before
    both.day = np.concatenate((early.day, table.day))
    assert read(both, blind, base).details["best clean mean from elsewhere"] == 0.8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lane__memory": np.full(28, "m1")}, "a lane of day 3 did not begin with"),
        ({"lane__pair": np.tile(["p", "q", "p", "p"], 7)}, "are not of one list of"),
        ({"lane__realised": np.tile([0.3, 0.3, 0.0, 0.0], 7)}, "0 consecutive days"),
    ],
)
def test_lanes_that_are_no_pair_test_nothing(changes: Any, words: str) -> None:
    found = read(*lane_rows(**changes))
    assert found.status == "NOT TESTED"
    assert words in found.reason


def test_a_baseline_that_keeps_just_what_is_let_pass_is_bitten() -> None:
    table, blind, base = lane_rows()
    assert read(table, blind, base, drift_bite=0.5).status == "PASS"
    found = read(table, blind, base, drift_bite=0.499)
    assert found.reason == "drift did not bite: the drift-blind baseline keeps 0.500"
    blind.q_state = np.where(blind.condition == "clean", 0.0, 0.4)
    assert "solves nothing without drift" in read(table, blind, base).reason
    part = blind.take(blind.day != 5)
    assert "was not played on every day" in read(table, part, base).reason
    part = blind.take((blind.day != 5) | (blind.condition == "clean"))
    assert "was not played on every day" in read(table, part, base).reason


def test_a_patch_in_the_window_or_other_files_fail() -> None:
    """Practice of day 1 lies before the window, that of days 2 and 8 inside."""
    for day, status in ((1, "PASS"), (2, "FAIL"), (8, "FAIL")):
        table = lane_rows(drill__patched=(np.arange(9) == day).astype(int))
        assert read(*table).status == status
    names = np.where(np.arange(28) == 5, "g", "f")
    assert read(*lane_rows(lane__fingerprint=names)).reason == ("a human patch in the window")


@pytest.mark.parametrize("lane", ["clean", "drifted"])
def test_a_lane_that_solves_nothing_fails(lane: str) -> None:
    table, blind, base = lane_rows()
    table.q_state = np.where(table.condition == lane, 0.0, table.q_state)
    base.q_state = np.ones(3)
    assert read(table, blind, base).reason == "a lane's mean quality is 0"


def test_without_rows_elsewhere_the_floor_is_0() -> None:
    table, blind, base = lane_rows()
    found = read(table, blind, base.take(np.array([False, False, True])))
    assert found.details["best clean mean from elsewhere"] == 0.0


def test_a_failure_at_the_least_power_stands() -> None:
    noisy = np.where(np.arange(28) % 4 < 2, 0.8, 0.74 + 0.02 * (np.arange(28) % 3))
    table, blind, base = lane_rows(lane__q_state=noisy)
    blind.q_state = np.where(blind.condition == "drifted", 0.4, 0.8)
    found = read(table, blind, base)
    assert found.status in ("FAIL", "NO EVIDENCE")
    x = table.q_state[table.condition == "drifted"].reshape(7, 2).mean(axis=1)
    level, rho = PROTOCOL.statistics.gate_level, PROTOCOL.closures.rho
    parts = np.log(table.q_state[table.condition == "drifted"].reshape(7, 2).mean(axis=0))
    error = math.sqrt(((parts - parts.mean()) ** 2).sum() / 2)
    share = kept_share(x, np.full(7, 0.8), 0.8, rho, level, error=error, freedom=1)
    power = float(share.power)
    assert found.details["power at ratio 1"] == pytest.approx(power, abs=1e-6)
    assert read(table, blind, base, power_min=power - 1e-9).status == "FAIL"
    assert read(table, blind, base, power_min=power + 1e-9).status == "NO EVIDENCE"


def test_the_error_over_tasks_by_hand() -> None:
    """Two tasks: drift takes p to .4 on every day; q, and the clean lane, stay at .8."""
    struck = np.tile([0.8, 0.8, 0.4, 0.8], 7)
    found = read(*lane_rows(lane__q_state=struck))
    left = np.array([0.0, math.log(0.5)])  # without p, without q
    error = math.sqrt(((left - left.mean()) ** 2).sum() / 2)
    assert found.details["theta"] == pytest.approx(math.log(0.75), abs=1e-6)
    assert found.details["error over tasks"] == pytest.approx(error, abs=1e-6)
    x, k = np.full(7, 0.6), np.full(7, 0.8)
    by_hand = kept_share(x, k, 0.8, 0.95, 0.95, error=error, freedom=1)
    assert found.details["lower bound"] == pytest.approx(float(by_hand.lower), abs=1e-6)
    assert by_hand.theta - by_hand.lower == pytest.approx(6.313752 * error)  # t .95 on 1
    alone = kept_share(x, k, 0.8, 0.95, 0.95)
    assert alone.lower == pytest.approx(alone.theta)  # what days alone said


def test_the_base_rows_move_with_their_task() -> None:
    """B is theirs: .9 without p, 1 without q; the lanes are .8 throughout."""
    table, blind, base = lane_rows()
    base.q_state = np.array([0.9, 0.9, 1.0])
    found = read(table, blind, base)
    assert found.details["error over tasks"] == 0.0
    base.q_state = np.array([1.0, 0.9, 1.0])
    left = np.log([0.8 / 0.9, 0.8 / 1.0])
    error = math.sqrt(((left - left.mean()) ** 2).sum() / 2)
    found = read(table, blind, base)
    assert found.details["error over tasks"] == pytest.approx(error, abs=1e-6)


def test_a_family_of_one_task_tests_nothing() -> None:
    found = read(*lane_rows(lane__family=np.tile(["f", "g"], 14)))
    assert found.status == "NOT TESTED"
    assert "a family of the lanes holds one task" in found.reason


def test_all_that_drift_left_on_one_task_shows_nothing() -> None:
    found = read(*lane_rows(lane__q_state=np.tile([0.8, 0.8, 0.8, 0.0], 7)))
    assert found.status == "NO EVIDENCE"
    assert found.details["power at ratio 1"] == 0.0


def test_a_bound_at_the_share_itself_passes() -> None:
    bound = np.array([math.log(0.9), math.nextafter(math.log(0.9), -1)])
    assert KeptShare(bound, bound, bound).passes(0.9).tolist() == [True, False]
