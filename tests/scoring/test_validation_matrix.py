"""R in the matrix of a validation: read from the campaigns inside episodes."""

import math

import pytest

from owa_bench.records.validation import default_signs, knob_arms, load_signs
from owa_bench.scoring.attempt_sets import REVISION
from owa_bench.scoring.inner_attempts import CampaignEvidence
from owa_bench.scoring.observables import observe
from owa_bench.scoring.validation import validate
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of

DESIGN = load_signs(default_signs("validate_full_signs.toml"))
KNOB = next(knob for knob in DESIGN.knobs if knob.axis == "R")
ARMS = [arm.name for arm in knob_arms(KNOB)]
TASKS = ("p0", "p1", "p2")
FULL = PROTOCOL.revision.full_gain


def campaign(arm: str, pair: str, gain: float) -> CampaignEvidence:
    quality = dict.fromkeys(REVISION, 0.4)
    return CampaignEvidence(
        arm=arm,
        pair=pair,
        family="selfrev/memory",
        quality=quality | {"after": 0.4 + gain},
        size=40,
        attempts={},
        e_values={pair: 1e6},
        adopted=(pair,) if gain else (),
        countable=True,
        proposals=1,
        lines=1,
        faults=(),
    )


def matrix(gains: dict[str, tuple[float, ...]], tasks: tuple[str, ...] = TASKS):
    """Return the knob's row, given the gain of each arm's campaign on each task."""
    traces = [
        episode(index=i, arm=arm, pair=pair, suite="selfrev", family="memory")
        for i, (arm, pair) in enumerate((a, p) for a in gains for p in tasks)
    ]
    campaigns = [
        campaign(arm, pair, gain)
        for arm in gains
        for pair, gain in zip(tasks, gains[arm], strict=True)
    ]
    found = validate(
        plan_of(traces, battery=None),
        observe(iter(traces), PRICES),
        PROTOCOL,
        PRICES,
        DESIGN,
        campaigns,
    )
    return next(row for row in found.knobs if row.name == KNOB.name)


def test_the_knob_of_revisions_takes_r_and_its_interval_rests_on_the_tasks() -> None:
    gains = (0.05, 0.10, 0.15)
    row = matrix({ARMS[0]: gains, ARMS[-1]: (0.0, 0.0, 0.0)})
    cell = next(cell for cell in row.cells if cell.axis == "R")
    assert cell.effect.value == pytest.approx(-0.10 / FULL)
    # the mean of three campaigns: its usual error, t with two degrees of freedom
    half = 4.302653 * 0.05 / FULL / math.sqrt(3)
    assert cell.effect.high - cell.effect.low == pytest.approx(2 * half, rel=1e-4)
    assert row.verdict == "not shown"


def test_small_sets_give_r_no_evidence() -> None:
    row = matrix({ARMS[0]: (0.1, 0.1), ARMS[-1]: (0.0, 0.0)}, TASKS[:2])
    cell = next(cell for cell in row.cells if cell.axis == "R")
    assert (cell.verdict, cell.effect.value) == ("NO EVIDENCE", None)
    assert "an attempt set holds 80 tasks of 110" in cell.reason
