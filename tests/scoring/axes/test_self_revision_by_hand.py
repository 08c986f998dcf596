"""Axis R on attempt sets written by hand: gains, filters, sums and errors."""

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.protocol import Anchor
from owa_bench.scoring.axes import self_revision as axis
from owa_bench.scoring.axes.self_revision import revision_evidence, revision_gain, self_revision
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence, RevisionSets, RevisionStages
from tests.builders.episodes import PROTOCOL

WEIGHTS = np.array([0.25, 0.75])
LEAST = msgspec.structs.replace(PROTOCOL.revision, set_min=3)
RULES = msgspec.structs.replace(PROTOCOL, revision=LEAST)
QUALITY = {
    "before": (0.2, 0.4, 0.6),  # .3 and .6: .525
    "after": (0.5, 0.7, 0.8),  # .6 and .8: .75
    "control_before": (0.2, 0.2, 0.4),  # .35
    "control_after": (0.3, 0.3, 0.4),  # .375
    "ablated": (0.3, 0.5, 0.7),  # .625
    "placebo": (0.5, 0.5, 0.6),  # .575
}


def sets(family=(0, 0, 1), **changes) -> RevisionSets:
    """Return the sets of a revision that counts, with changes."""
    quality = QUALITY | changes.pop("quality", {})
    fields = {
        "window": (0, 1),
        "family": np.array(family),
        "q": {n: np.array(q) for n, q in quality.items() if q is not None},
        "one_law": True,
        "earlier": np.full(2, np.nan),
        "stages": RevisionStages(True, True, True),
        "human": "",
        "lines": 1,
        "installed": (),
        "attempts": {},
    }
    return RevisionSets(**fields | changes)


def flat(before: float, after: float, ablated: float, **changes) -> RevisionSets:
    """Return sets of one family with one quality each, without controls' change."""
    values = {"before": before, "after": after, "ablated": ablated}
    values |= {"control_before": 0.5, "control_after": 0.5, "placebo": before}
    quality = {name: (value, value) for name, value in values.items()}
    changes = {"earlier": np.full(1, np.nan), "quality": quality} | changes
    return sets((0, 0), **changes)


def test_a_gain_is_over_weighted_families_and_what_was_there_before():
    found = revision_gain(sets(), WEIGHTS, PROTOCOL)
    assert found.capability == pytest.approx(
        dict(zip(QUALITY, (0.525, 0.75, 0.35, 0.375, 0.625, 0.575), strict=True))
    )
    assert found[1:4] == pytest.approx((0.225, 0.175, 1.0))
    assert found.counted
    two_laws = revision_gain(sets(one_law=False), WEIGHTS, PROTOCOL)
    assert two_laws[1:3] == pytest.approx((0.2, 0.175))
    for earlier, gain in (((0.7, np.nan), 0.05), ((np.nan, 0.5), 0.225)):
        found = revision_gain(sets(earlier=np.array(earlier)), WEIGHTS, PROTOCOL)
        assert found.gain == pytest.approx(gain)
    left_out = revision_gain(sets(), WEIGHTS, PROTOCOL, kept=np.arange(3) != 0)
    assert left_out.gain == pytest.approx(0.25 * 0.3 + 0.75 * 0.2)
    second = revision_gain(sets(), WEIGHTS, PROTOCOL, kept=np.arange(3) != 1)
    assert second.gain == pytest.approx(0.25 * 0.3 + 0.75 * 0.2)
    earlier = sets(earlier=np.array([0.7, 0.7]))
    lone = revision_gain(earlier, WEIGHTS, PROTOCOL, kept=np.arange(3) != 2)
    assert lone.gain == pytest.approx(0.6 - 0.7)  # the second family holds no task


def test_a_gain_counts_where_its_ablation_takes_half_of_it():
    one = np.ones(1)
    for ablated, counted in ((0.5, True), (0.5625, False)):
        found = revision_gain(flat(0.25, 0.75, ablated), one, PROTOCOL)
        assert found.counted == counted
        assert revision_gain(
            flat(0.25, 0.75, ablated), one, PROTOCOL, counted=not counted
        ).counted == (not counted)
    assert not revision_gain(flat(0.25, 0.75, 0.5, lines=0), one, PROTOCOL).counted
    none = flat(0.5, 0.5, 0.5, human="help")
    assert revision_gain(none, one, PROTOCOL)[1:] == (0.0, 0.0, 0.0, True)
    assert not revision_gain(flat(0.5, 0.5, 0.5, lines=0), one, PROTOCOL).counted
    harm = flat(0.5, 0.25, 0.9, lines=0, human="help")
    assert revision_gain(harm, one, PROTOCOL)[1:] == (-0.25, -0.25, 1.0, True)
    # The controls gained as much: the own gain is .5 and is not ablated.
    moved = flat(0.25, 0.75, 0.75, one_law=False)
    moved.q["control_after"][:] = 0.75
    assert not revision_gain(moved, one, PROTOCOL).counted


def test_credit_is_the_weighted_share_of_the_stages():
    weights = np.array(PROTOCOL.revision.stage_weights)
    for stages in ((True, False, False), (False, True, True)):
        found = revision_gain(sets(stages=RevisionStages(*stages)), WEIGHTS, PROTOCOL)
        assert found.autonomy == pytest.approx(weights @ stages / weights.sum())
    assert revision_gain(sets(human="help"), WEIGHTS, PROTOCOL).autonomy == 0.0


def test_without_a_placebo_only_what_a_suite_brought_has_a_gated_gain():
    bare = {"quality": {"placebo": None}}
    assert math.isnan(revision_gain(sets(**bare), WEIGHTS, PROTOCOL).gated)
    brought = revision_gain(sets(**bare, own_subject=False), WEIGHTS, PROTOCOL)
    assert brought.gated == pytest.approx(0.225)


def variance(values: np.ndarray) -> float:
    return float(values.var(ddof=1) / len(values))


def test_the_error_of_a_gain_is_that_of_weighted_means_of_differences():
    before = np.array([0.2, 0.3, 0.1, 0.4, 0.5])
    after = np.array([0.6, 0.4, 0.7, 0.8, 0.6])
    family = np.array([0, 0, 0, 1, 1])
    placebo = before + np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    quality = {"before": before, "after": after, "placebo": placebo}
    quality |= dict.fromkeys(("control_before", "control_after"), before)
    quality["ablated"] = before
    one = sets(family, quality=quality)
    found = revision_evidence((one,), WEIGHTS, RULES)
    gaps, over = after - before, after - placebo
    parts = [gaps[family == k] for k in (0, 1)]
    assert found.raw == pytest.approx(0.25 * parts[0].mean() + 0.75 * parts[1].mean())
    assert found.error == pytest.approx(
        math.sqrt(0.25**2 * variance(parts[0]) + 0.75**2 * variance(parts[1]))
    )
    over_parts = [over[family == k] for k in (0, 1)]
    assert found.gated_error == pytest.approx(
        math.sqrt(0.25**2 * variance(over_parts[0]) + 0.75**2 * variance(over_parts[1]))
    )
    assert (found.freedom, found.clusters, found.reason) == (3, 5, None)
    twice = revision_evidence((one, one), WEIGHTS, RULES)
    assert twice.freedom == 6
    assert twice.raw == pytest.approx(found.raw)  # no more than from first to last
    alone = revision_evidence((sets(),), WEIGHTS, RULES)
    assert math.isnan(alone.error)  # the second family holds one task
    assert math.isnan(alone.gated_error)


def test_copies_of_a_cluster_do_not_narrow_the_error():
    """The fault: 24 campaigns of 2 instances were taken for 24 tasks."""
    after = np.array([0.6, 0.4, 0.7, 0.8, 0.6])
    quality = dict.fromkeys(QUALITY, np.full(5, 0.2)) | {"after": after}
    family = np.array([0, 0, 0, 1, 1])
    once = revision_evidence((sets(family, quality=quality),), WEIGHTS, RULES)
    copied = {name: np.repeat(q, 6) for name, q in quality.items()}
    clustered = sets(np.repeat(family, 6), quality=copied, cluster=np.repeat(np.arange(5), 6))
    found = revision_evidence((clustered,), WEIGHTS, RULES)
    assert (found.clusters, found.freedom) == (5, 3)
    assert found.raw == pytest.approx(once.raw)
    assert (found.error, found.gated_error) == pytest.approx((once.error, once.gated_error))
    apart = revision_evidence((clustered._replace(cluster=None),), WEIGHTS, RULES)
    assert apart.error < 0.5 * found.error  # the control: copies taken for tasks
    one = revision_evidence(
        (clustered._replace(cluster=np.repeat([0, 0, 0, 1, 1], 6)),), WEIGHTS, RULES
    )
    assert math.isnan(one.error)  # a family of one cluster


def test_two_revisions_sum_up_to_the_net_gain():
    one = np.ones(1)
    first, second = flat(0.125, 0.25, 0.125), flat(0.375, 0.75, 0.375)
    found = revision_evidence((first, second), one, RULES)
    assert (found.raw, found.gated) == (0.5, 0.5)
    lost = revision_evidence((second, first), one, RULES)
    assert lost.raw == 0.25 - 0.375
    undone = flat(0.75, 0.5, 0.5)
    assert revision_evidence((second, undone), one, RULES).raw == 0.125
    bare = second._replace(q={k: v for k, v in second.q.items() if k != "placebo"})
    mixed = revision_evidence((first, bare), one, RULES)
    assert mixed.raw == 0.5
    assert math.isnan(mixed.gated)
    later = revision_evidence((first, second, flat(0.25, 0.5, 0.25)), one, RULES)
    assert later.raw == 0.5 - 0.125  # from the first before to the last after
    uncounted = second._replace(lines=0)
    assert revision_evidence((first, uncounted), one, RULES).raw == 0.125


def test_what_is_no_evidence_says_why():
    assert "holds no attempt sets" in revision_evidence((), WEIGHTS, RULES).reason
    faulty = (sets(), sets(fault="a"), sets(fault="b"))
    assert revision_evidence(faulty, WEIGHTS, RULES).reason == "a; b"
    for size, reason in (
        ((0, 0), None),
        ((0, 2), "an attempt set holds 2 tasks of 3"),
        ((2, 0), "an attempt set holds 2 tasks of 3"),
        ((3, 9), None),
    ):
        both = tuple(sets(size=n) for n in size)
        found = revision_evidence(both, WEIGHTS, RULES)
        assert found.reason == reason
        assert len(found.gains) == 2


def test_the_share_of_revisions_that_counted_is_said():
    constants: dict[str, float] = {}
    statistics = SimpleNamespace(add_constant=constants.__setitem__)

    def coverage(revision):
        return axis._collect(SimpleNamespace(revision=revision), statistics)

    none = "no revision was tested: the plan holds no attempt sets"
    assert coverage(None) == (0, 0, none)
    assert axis._windows(SimpleNamespace(revision=None, practised=None)) == {}
    small = revision_evidence((sets(size=2), sets()), WEIGHTS, RULES)
    assert coverage(small) == (0, 2, small.reason)
    assert constants == {}
    found = revision_evidence((sets(), sets(lines=0)), WEIGHTS, RULES)
    assert coverage(found) == (1, 2, None)
    assert constants == {"R:gain": pytest.approx(0.225)}
    assert coverage(RevisionEvidence(sets=(), reason="why"))[:2] == (0, 0)


def test_anchors_are_multiples_of_the_full_gain():
    anchors = {**PROTOCOL.anchors, "R": Anchor(low=0.2, high=0.8)}
    protocol = msgspec.structs.replace(PROTOCOL, anchors=anchors)
    totals = SimpleNamespace(table=np.zeros((2, 1, 1)))
    found = axis._anchors(totals, SimpleNamespace(protocol=protocol))
    assert found.low == pytest.approx([0.05, 0.05])
    assert found.high == pytest.approx([0.2, 0.2])


def test_one_event_that_is_no_number_is_refused():
    half, nan = np.array([0.5, 0.5]), np.array([0.5, np.nan])
    for autonomy, gains, net in (
        (nan, half, np.array(1.0)),
        (half, nan, np.array(1.0)),
        (half, half, np.array(np.nan)),
    ):
        with pytest.raises(ScoringError, match="cannot read NaN"):
            self_revision(autonomy, gains, net)
    for wrong in (-0.1, 1.1):
        with pytest.raises(ScoringError, match="must lie in"):
            self_revision(np.array([0.5, wrong]), half, np.array(1.0))
    for shapes in ((half, half[:1]), (half[None], half[None])):
        with pytest.raises(ScoringError, match="Events differ"):
            self_revision(*shapes, np.array(1.0))
    ends = self_revision(np.array([0.0, 1.0]), half, np.array(1.0))
    assert (float(ends), float(self_revision(half, half, np.array(0.25)))) == (0.5, 0.25)
