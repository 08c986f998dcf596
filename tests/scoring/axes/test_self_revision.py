"""Axis R: what a revision brings once control, harm and borrowed credit are off."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Revision
from owa_bench.records.score import AxisScore
from owa_bench.scoring.axes.self_revision import FILTERS, debiased, self_revision
from tests.builders.episodes import episode
from tests.builders.verdicts import axis

FULL = (1.0, 1.0, 1.0)


def revision(
    before: float = 0.4,
    after: float = 0.5,
    control: float = 0.0,
    ablated: float | None = 0.4,
    fractions: tuple[float, float, float] = FULL,
    filters: tuple[str, ...] = FILTERS,
    decision: str = "adopted",
) -> Revision:
    return Revision(
        step=1,
        proposal="p",
        fractions=fractions,
        decision=decision,
        before=before,
        after=after,
        control_before=0.4,
        control_after=0.4 + control,
        ablated=ablated,
        filters=filters,
    )


def read(*events: Revision, tasks: int = 12) -> AxisScore:
    traces = [episode(index=k, pair=f"p{k}", extra=events) for k in range(tasks)]
    return axis(traces, "R")


def test_a_confirmed_gain_counts_on_the_scale_of_r0() -> None:
    assert read(revision(after=0.5)).value == pytest.approx(0.1 / 0.25)
    assert read(revision(after=0.9)).value == 1.0


def test_what_the_control_gains_too_is_no_gain() -> None:
    assert read(revision(after=0.5, control=0.1)).value == 0.0
    assert debiased(np.array([[0.4, 0.5, 0.4, 0.5, 0.4]]))[0] == pytest.approx(0.0)


def test_credit_is_for_what_the_agent_did_itself() -> None:
    third = read(revision(fractions=(1.0, 0.0, 0.0)))
    assert third.value == pytest.approx(0.1 / 3 / 0.25, rel=1e-4)


def test_harm_then_repair_earns_nothing() -> None:
    harm = revision(before=0.4, after=0.2, ablated=0.4, fractions=(0.0, 0.0, 0.0))
    repair = revision(before=0.2, after=0.4, ablated=0.2)
    assert read(harm, repair).value == 0.0
    sly = self_revision(np.array([0.0, 1.0]), np.array([-0.2, 0.2]), np.array(0.0))
    assert sly == 0.0


def test_rising_in_small_falls_is_capped_at_the_net_gain() -> None:
    up = revision(before=0.4, after=0.6, ablated=0.4)
    down = revision(before=0.6, after=0.45, ablated=0.6, decision="reverted")
    assert read(up, down).value == pytest.approx(0.05 / 0.25, rel=1e-6)


@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_is_needed(name: str) -> None:
    left = tuple(other for other in FILTERS if other != name)
    found = read(revision(filters=left))
    assert found.value == 0.0
    assert found.details["adopted that lack a filter"][name] == 12


def test_an_ablation_that_keeps_the_gain_earns_nothing() -> None:
    assert read(revision(ablated=0.5)).value == 0.0
    assert read(revision(ablated=None)).value == 0.0


def test_proposals_alone_earn_nothing() -> None:
    assert read(revision(decision="rejected")).value == 0.0


def test_what_nobody_confirmed_is_missing() -> None:
    declared = Revision(step=1, proposal="p", decision="adopted")
    assert "none confirmed" in str(read(declared).reason)
    assert "no confirmed self-revision" in str(axis([episode()], "R").reason)


def test_what_is_revised_during_a_checkpoint_is_lost() -> None:
    traces = [
        episode(index=k, pair=f"p{k}", day=0, phase="checkpoint", extra=(revision(),))
        for k in range(12)
    ]
    assert "no confirmed self-revision" in str(axis(traces, "R").reason)


def test_bad_input_is_refused() -> None:
    one = np.ones(1)
    for alpha, gain, net in (
        (one, np.ones(2), np.zeros(())),
        (one * 2, one, np.zeros(())),
        (one, one * math.nan, np.zeros(())),
    ):
        with pytest.raises(ScoringError):
            self_revision(alpha, gain, net)
    with pytest.raises(ScoringError):
        debiased(np.ones((1, 3)))
