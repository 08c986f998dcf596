"""Axis R: read from attempt sets, with control, placebo, ablation and harm."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from owa_bench.canonical import canonical_json
from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention
from owa_bench.records.score import AxisScore
from owa_bench.scoring.axes import self_revision as self_revision_axis
from owa_bench.scoring.axes.self_revision import GATED, self_revision
from owa_bench.scoring.observe.attempt_sets import RevisionGain
from tests.builders.attempt_sets import GAIN, LATER, change, practice, sets
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import axis

pytestmark = pytest.mark.part(2)

R0 = PROTOCOL.revision.full_gain


def read(
    quality: dict[str, float] | None = None,
    *,
    learned: dict[str, Any] | None = None,
    **options: Any,
) -> AxisScore:
    played = sets({**GAIN, **(quality or {})}, **options)
    base = [episode(index=900 + day, pair="c", day=day, phase="checkpoint") for day in range(3)]
    return axis([*practice(3, **(learned or {})), *base, *played], "R")


def revision(score: AxisScore) -> dict[str, Any]:
    [found] = score.details["revisions"]
    return dict(found)


def gate(score: AxisScore) -> float | None:
    return score.details["beside"][GATED]["value"]  # type: ignore[no-any-return]


def test_a_gain_counts_on_the_scale_of_r0() -> None:
    # quality is .9 of the state's, and what was stated is right
    assert read().value == pytest.approx(0.9 * 0.2 / R0, abs=1e-3)
    assert read({"after": 0.8}).value == 1.0
    assert gate(read()) == pytest.approx(0.9 * 0.2 / R0, abs=1e-3)


def test_the_bound_is_that_of_the_difference_of_means() -> None:
    found = read(noise=0.15)
    error = 0.9 * 0.15 * math.sqrt(2 / 119)
    assert found.value is not None
    assert found.lower == pytest.approx(found.value - 1.658 * error / R0, abs=0.03)


def test_what_the_placebo_lane_gains_too_is_no_gain_for_gates() -> None:
    unlocked = read({"placebo": 0.4})
    assert unlocked.value == pytest.approx(0.72, abs=1e-3)
    assert gate(unlocked) == pytest.approx(0.0, abs=1e-3)


def test_without_a_placebo_lane_gates_have_no_evidence() -> None:
    played = [t for t in sets() if t.start.condition != "placebo"]
    base = episode(index=900, pair="c", day=0, phase="checkpoint")
    found = axis([*practice(3), base, *played], "R")
    assert found.value == pytest.approx(0.72, abs=1e-3)
    assert gate(found) is None


def test_under_two_laws_the_controls_are_taken_off() -> None:
    worlds = {name: {"world_day": 0} for name in ("before", "control_before")}
    worlds |= {name: {"world_day": 3} for name in ("after", "control_after", "ablated", "placebo")}
    found = read({"control_after": 0.3}, **worlds)
    assert found.value == pytest.approx(0.9 * 0.1 / R0, abs=1e-3)
    same = read({"control_after": 0.3})
    assert same.value == pytest.approx(0.9 * 0.2 / R0, abs=1e-3)


def test_earlier_checkpoints_raise_what_was_there_before() -> None:
    """A window that begins on day 1 has the checkpoint of day 0 before it."""
    later = {"window": (1, 3)}
    memory = {"before": {"memory": LATER}, "ablated": {"extra": (change(3, since=1),)}}
    names = ("after", "control_before", "control_after", "placebo")
    moved = dict.fromkeys(names, later)
    moved |= {name: later | own for name, own in memory.items()}
    base = episode(index=900, pair="c", day=0, phase="checkpoint", q_state=0.3, stated=0.0)
    found = axis([*practice(3), base, *sets(**moved)], "R")
    assert found.value == pytest.approx(0.9 * 0.1 / R0, abs=1e-3)


def test_credit_is_for_what_the_agent_did_itself() -> None:
    assert revision(read())["autonomy"] == 1.0
    silent = read(learned={"said": False})
    assert revision(silent)["stages"] == {
        "proposed": False,
        "implemented": True,
        "validated": False,
    }
    assert silent.value == pytest.approx(0.72 / 3, abs=1e-3)


@pytest.mark.parametrize(
    "part", [{"extra_help": True}, {"costs": (("supervisor_min", 2.0, "human"),)}]
)
def test_a_human_between_the_start_and_adoption_takes_all_credit(part: dict[str, Any]) -> None:
    if part.pop("extra_help", False):
        part = {"hints_after": (2,)}
    found = read(learned=part)
    assert found.value == 0.0
    assert "help in 3 practice episodes" in revision(found)["human"]


def test_a_patch_takes_all_credit() -> None:
    patch = Intervention(step=1, kind="patch", minutes=0.0)
    traces = practice(3)
    events = (traces[0].events[0], patch, *traces[0].events[1:])
    traces[0] = dataclasses.replace(traces[0], events=events)
    base = episode(index=900, pair="c", day=0, phase="checkpoint")
    found = axis([*traces, base, *sets()], "R")
    assert found.value == 0.0


def test_harm_then_repair_earns_nothing() -> None:
    sly = self_revision(np.array([0.0, 1.0]), np.array([-0.2, 0.2]), np.array(0.0))
    assert sly == 0.0
    found = read({"after": 0.1})
    assert found.value == 0.0
    assert canonical_json(found)  # its report can be written


def test_an_ablation_that_keeps_the_gain_earns_nothing() -> None:
    assert read({"ablated": 0.4}).value == 0.0


def test_a_gain_without_a_change_of_memory_is_none_of_its_own() -> None:
    found = read(shown=change(3, lines=0))
    assert (found.value, revision(found)["counted"]) == (0.0, False)


def test_small_sets_are_no_evidence() -> None:
    assert read(tasks=109).reason == "an attempt set holds 109 tasks of 110"


def test_what_was_not_tested_is_missing() -> None:
    assert "the plan holds no attempt sets" in str(axis([episode()], "R").reason)
    declared = axis([*practice(3), episode(index=900, pair="c")], "R")
    assert "the plan holds no attempt sets" in str(declared.reason)


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"after": {"memory": "0" * 64}}, "after did not begin with the memory"),
        ({"before": {"memory": "0" * 64}}, "before did not begin with the memory"),
        ({"ablated": {"memory": "0" * 64}}, "did not begin with the reverted memory"),
        ({"ablated": {"extra": ()}}, "does not say what was reverted"),
        ({"after": {"interventions": 5}}, "not played on equal budgets"),
        ({"after": {"phase": "checkpoint"}}, "not played in the holdout phase"),
        ({"after": {"arm": "other"}}, "the plan holds no attempt sets"),
    ],
)
def test_sets_that_are_not_what_they_say(changes: dict[str, Any], words: str) -> None:
    found = read(**changes)
    assert (found.value, words in str(found.reason)) == (None, True)


def test_sets_played_before_the_practice_was_over_are_no_evidence() -> None:
    base = episode(index=900, pair="c", day=0, phase="checkpoint")
    found = axis([*practice(3, first=5000), base, *sets()], "R")
    assert "before the practice of its window was over" in str(found.reason)


def test_a_holdout_that_was_practised_is_no_evidence() -> None:
    seen = episode(index=800, pair="holdout/7", day=0, phase="practice", memory=None)
    base = episode(index=900, pair="c", day=0, phase="checkpoint")
    found = axis([seen, *practice(3), base, *sets()], "R")
    assert "was played elsewhere" in str(found.reason)


def test_bad_input_is_refused() -> None:
    one = np.ones(1)
    for alpha, gain, net in (
        (one, np.ones(2), np.zeros(())),
        (one * 2, one, np.zeros(())),
        (one, one * math.nan, np.zeros(())),
    ):
        with pytest.raises(ScoringError):
            self_revision(alpha, gain, net)


def one_gain(before: float, after: float, **changes: Any) -> RevisionGain:
    """Return a counted revision of half autonomy that gained .4, .3 over a placebo."""
    capability = {"before": before, "after": after}
    fields = {"gain": 0.4, "gated": 0.3, "autonomy": 0.5, "counted": True} | changes
    return RevisionGain(capability=capability, **fields)


def test_sums_are_cut_to_the_net_gain_from_the_second_revision_on() -> None:
    lone = [one_gain(0.5, 0.6)]
    assert self_revision_axis._sums(lone) == pytest.approx((0.2, 0.15))
    two = [one_gain(0.2, 0.9), one_gain(0.5, 0.45)]  # .4 and .3, of a net .25
    assert self_revision_axis._sums(two) == pytest.approx((0.25, 0.25))
    wide = [one_gain(0.0, 0.5), one_gain(0.5, 0.9, counted=False)]
    assert self_revision_axis._sums(wide) == pytest.approx((0.2, 0.15))
    blind = [one_gain(0.2, 0.5), one_gain(0.5, 0.9, gated=math.nan)]
    raw, gated = self_revision_axis._sums(blind)
    assert raw == pytest.approx(0.4)
    assert math.isnan(gated)


def test_a_capability_is_the_mean_of_family_means_by_weight() -> None:
    weights = np.array([0.2, 0.3, 0.5])
    q, family = np.array([0.4, 0.8, 0.1]), np.array([0, 0, 2])
    found = self_revision_axis._capability(q, family, weights)
    assert found == pytest.approx((0.2 * 0.6 + 0.5 * 0.1) / 0.7)
    assert math.isnan(self_revision_axis._capability(q[:0], family[:0], weights))
