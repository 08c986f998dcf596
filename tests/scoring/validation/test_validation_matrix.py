"""R in the matrix of a validation: read from the campaigns inside episodes."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from owa_bench.records.score import Interval
from owa_bench.records.validation import AXES, crossed_arms, default_signs, knob_arms, load_signs
from owa_bench.records.validation_result import Bounded, KnobResponse, MatrixCell
from owa_bench.scoring.axis import all_axes
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.validation import summary as validation
from owa_bench.scoring.validation import validation_matrix
from owa_bench.scoring.validation.discriminance import Reading
from owa_bench.scoring.validation.summary import _crossed_effect, validate
from tests.builders.attempt_sets import campaign_evidence
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of, with_help

DESIGN = load_signs(default_signs("validate_full_signs.toml"))
CROSSED = load_signs(default_signs()).crossed
KNOB = next(knob for knob in DESIGN.knobs if knob.axis == "R")
ARMS = [arm.name for arm in knob_arms(KNOB)]
TASKS = ("p0", "p1", "p2")
FULL = PROTOCOL.revision.full_gain


def matrix(gains: dict[str, tuple[float, ...]], tasks: tuple[str, ...] = TASKS):
    """Return the knob's row, given the gain of each arm's campaign on each task."""
    traces = [
        episode(index=i, arm=arm, pair=pair, suite="selfrev", family="memory")
        for i, (arm, pair) in enumerate((a, p) for a in gains for p in tasks)
    ]
    campaigns = [
        campaign_evidence(arm, pair, gain)
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


NUMBERS = DESIGN.numbers
CONTEXT = SimpleNamespace(design=DESIGN, protocol=PROTOCOL)


def reading(value: float, spread: float = 0.01, tasks: int = 4) -> Reading:
    """Return a mean of tasks of one family with its values without each."""
    gaps = spread * np.where(np.arange(tasks) % 2, 1.0, -1.0)
    return Reading(value, value + gaps, np.zeros(tasks, dtype=int))


def doses(**axes: tuple[float, float]):
    """Return the readings of axes under a first and a last dose; the first varies."""

    def at(place: int, axis: str) -> Reading | None:
        if axis not in axes:
            return None
        spread = 0.0 if place else 0.01 * (1 + list(axes).index(axis))
        return reading(axes[axis][place], spread)

    return SimpleNamespace(reading=at)


def response(axis: str = "A", reason: str = "") -> KnobResponse:
    cells = tuple(
        MatrixCell(axis=name, sign="0", verdict="NO EVIDENCE", reason=reason) for name in AXES
    )
    return KnobResponse(name="k", axis=axis, agent="a", tasks=4, cells=cells, verdict="NO EVIDENCE")


def test_a_knob_leads_by_its_own_effect_less_the_second_largest() -> None:
    moved = doses(A=(0.9, 0.3), G=(0.5, 0.6), P=(0.8, 0.5), M=(0.2, 0.2))
    found = validation_matrix._with_lead(CONTEXT, response(), moved)
    assert found.second == "P"
    assert found.lead.value == pytest.approx(0.6 - 0.3)
    assert found.lead.low < 0.3 < found.lead.high
    assert found.verdict == "as declared"
    other = validation_matrix._with_lead(CONTEXT, response("M"), moved)
    assert (other.second, other.lead.value) == ("A", pytest.approx(-0.6))
    assert other.verdict == "contrary"


def test_a_knob_without_a_rival_has_no_lead() -> None:
    alone = doses(A=(0.9, 0.3))
    found = validation_matrix._with_lead(CONTEXT, response(), alone)
    assert (found.verdict, found.second) == ("NO EVIDENCE", "")
    assert found.reason == "no other axis has evidence"
    why = validation_matrix._with_lead(CONTEXT, response("G", "never played"), alone)
    assert why.reason == "never played"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.2, "as declared"),
        (0.0, 0.2, "not shown"),
        (-0.1, 0.0, "not shown"),
        (-0.2, -0.1, "contrary"),
        (None, 0.1, "NO EVIDENCE"),
        (0.1, None, "NO EVIDENCE"),
    ],
)
def test_a_number_above_0_is_one_whose_interval_is(low, high, verdict) -> None:
    assert validation_matrix.above_zero(Bounded(value=0.1, low=low, high=high)) == (verdict)


@pytest.mark.parametrize(
    ("effect", "p", "falling", "verdict", "reason"),
    [
        ((-0.2, -0.3, -0.1), 0.01, True, "as declared", ""),
        ((-0.2, -0.3, -0.1), 0.01, False, "not shown", ""),
        ((0.0, -0.1, 0.1), 0.01, True, "not shown", ""),
        ((0.2, 0.1, 0.3), 0.9, False, "contrary", ""),
        ((0.2, 0.0, 0.3), 0.9, False, "not shown", ""),
        ((-0.2, None, None), None, False, "not shown", "a trend needs three doses"),
    ],
)
def test_a_declared_fall_is_judged(effect, p, falling, verdict, reason) -> None:
    value, low, high = effect
    cell = MatrixCell(
        axis="A",
        sign="-",
        verdict="not shown",
        effect=Bounded(value=value, low=low, high=high),
        p=p,
    )
    found = validation_matrix._judged(cell, falling, CONTEXT)
    assert found.verdict == verdict
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)


@pytest.mark.parametrize(
    ("bounds", "p", "verdict", "reason"),
    [
        ((-0.05, 0.05), "alpha", "as declared", ""),
        ((-0.05, 0.05), 0.9, "not shown", ""),
        ((-0.3, -0.2), "alpha", "contrary", ""),
        ((0.2, 0.3), 0.9, "contrary", ""),
        ((-0.3, 0.3), 0.9, "not shown", ""),
        (("margin", 0.3), 0.9, "not shown", ""),
        ((-0.3, "-margin"), 0.9, "not shown", ""),
        ((None, None), None, "not shown", "no error: a family holds one task"),
    ],
)
def test_a_declared_zero_is_judged(bounds, p, verdict, reason) -> None:
    named = {"alpha": NUMBERS.alpha, "margin": NUMBERS.margin}
    named["-margin"] = -NUMBERS.margin
    assert NUMBERS.margin < 0.2
    low, high = (named.get(x, x) for x in bounds)
    cell = MatrixCell(
        axis="A",
        sign="0",
        verdict="not shown",
        effect=Bounded(value=0.0, low=low, high=high),
        p=named.get(p, p),
    )
    found = validation_matrix._judged(cell, True, CONTEXT)
    assert (found.verdict, found.reason) == (verdict, reason)
    empty = msgspec.structs.replace(cell, effect=Bounded())
    assert validation_matrix._judged(empty, True, CONTEXT) is empty


def test_trends_are_judged_together_by_holm() -> None:
    """Of p = .012, .03 and .2 only the first is below alpha / 3; .03 is above / 2."""
    alpha = NUMBERS.alpha
    fall = Bounded(value=-0.2, low=-0.3, high=-0.1)
    cells = [
        MatrixCell(axis=axis, sign=sign, verdict="not shown", effect=fall, p=p)
        for axis, sign, p in (
            ("A", "-", 0.3 * alpha),
            ("G", "-", 0.6 * alpha),
            ("P", "-", 4 * alpha),
            ("M", "0", 0.1 * alpha),
            ("T", "-", None),
        )
    ]
    row = msgspec.structs.replace(response(), cells=tuple(cells))
    (found,) = validation_matrix._with_verdicts(CONTEXT, [row])
    verdicts = {cell.axis: cell.verdict for cell in found.cells}
    assert verdicts["A"] == "as declared"
    assert {verdicts[axis] for axis in "GPT"} == {"not shown"}


def test_arms_are_compared_on_the_episodes_that_all_of_them_have() -> None:
    traces = [
        episode(index=i, arm=arm, pair=pair, repeat=repeat, delta=delta)
        for i, (arm, pair, repeat, delta) in enumerate(
            [
                ("a", "p", 0, 0.0),
                ("a", "q", 0, 0.0),
                ("a", "p", 1, 0.0),
                ("b", "q", 0, 0.0),
                ("b", "p", 0, 0.5),
                ("b", "p", 1, 0.0),
            ]
        )
    ]
    context = SimpleNamespace(table=observe(iter(traces), PRICES))
    first, second = validation_matrix.shared_rows(context, ["a", "b"])
    assert first.pair.tolist() == ["q", "p"]
    assert second.pair.tolist() == ["q", "p"]


def test_a_value_is_a_figure_or_nothing() -> None:
    one = SimpleNamespace(point={StatisticKey("A"): 0.123456789, StatisticKey("G"): math.nan})
    assert validation_matrix.axis_value(one, "A") == 0.1234568
    assert validation_matrix.axis_value(one, "G") is None
    assert validation_matrix.axis_value(one, "P") is None
    assert validation_matrix.axis_value(None, "A") is None


def test_a_crossed_effect_is_held_against_the_ratio() -> None:
    effects = {("k", "A"): reading(-0.6), ("k", "G"): reading(0.1)}
    found = _crossed_effect(CONTEXT, "k", ("A", "G"), effects)
    assert (found.axis, found.knob) == ("A", "k")
    assert (found.own.value, found.other.value) == (-0.6, 0.1)
    assert found.ratio == pytest.approx(6.0)
    assert found.excess.value == pytest.approx(0.6 - 0.1 * NUMBERS.ratio)
    effects["k", "G"] = reading(0.0)
    flat = _crossed_effect(CONTEXT, "k", ("A", "G"), effects)
    assert flat.ratio is None
    assert flat.verdict == "as declared"


def test_r_without_a_task_is_cut_at_1_too() -> None:
    """Gains of twice the full gain: no campaign moves R, whose bound is exact."""
    row = matrix({ARMS[0]: (2 * FULL,) * 3, ARMS[-1]: (0.0, 0.0, 0.0)})
    cell = next(cell for cell in row.cells if cell.axis == "R")
    half = 1 - ((1 - NUMBERS.level) / 2) ** (1 / 3)
    assert cell.effect.value == -1.0
    assert cell.effect.high == pytest.approx(-1.0 + half, abs=1e-6)


def arm(**values: float) -> SimpleNamespace:
    """Return estimates of an arm with values of some axes, without the others."""
    coverage = {axis: SimpleNamespace(reason=f"no {axis}") for axis in AXES}
    point = {StatisticKey(axis): value for axis, value in values.items()}
    left = {key: np.full(3, value) for key, value in point.items()}
    clusters = SimpleNamespace(stratum=np.zeros(3, int))
    tasks = SimpleNamespace(values=left, clusters=clusters)
    return SimpleNamespace(point=point, coverage=coverage, tasks=tasks)


def test_a_reading_needs_a_value_with_and_without_each_task() -> None:
    found = validation_matrix.axis_reading(arm(A=0.5), "A")
    assert found is not None
    assert (found.value, found.left_out.tolist()) == (0.5, [0.5] * 3)
    lacking = arm(A=math.nan)
    assert validation_matrix.axis_reading(lacking, "A") is None
    assert validation_matrix.axis_reading(lacking, "G") is None
    lacking.point[StatisticKey("G")] = 0.5
    assert validation_matrix.axis_reading(lacking, "G") is None


def test_axes_that_no_arm_has_are_named_with_a_reason() -> None:
    both = {"first": arm(A=0.5), "second": arm(G=0.5, A=math.nan)}
    found = dict(validation._missing_axes(both))
    assert found == {axis: f"no {axis}" for axis in AXES if axis not in "AG"}
    for one in both.values():
        one.coverage["P"].reason = None
    assert dict(validation._missing_axes(both))["P"] == "not computable"


def test_axes_correlate_over_the_arms_that_have_both() -> None:
    arms = {str(i): arm(A=i / 10, G=(i % 3) / 10) for i in range(5)}
    arms |= {"x": arm(A=0.9), "y": arm(G=0.1, A=math.nan)}
    found = validation._correlation(arms, list(arms), ("A", "G"), 0.95)
    assert found.agents == tuple("01234")
    x, y = np.arange(5), np.arange(5) % 3
    assert found.r.value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)
    assert found.r.low < found.r.value < found.r.high


@pytest.mark.parametrize("sign", ["0", "-"])
def test_a_cell_is_the_change_from_the_first_to_the_last_dose(sign: str) -> None:
    each = [arm(A=0.9), arm(A=0.6), arm(A=0.4)]
    for one in each:
        one.over_tasks = lambda axis: SimpleNamespace(
            interval=lambda level: Interval(low=0.1, high=0.2, method="m")
        )
    found = doses(A=(0.9, 0.4))
    played = SimpleNamespace(
        reading=found.reading, doses=("none", "half", "all"), arms=("a", "b", "c"), estimates=each
    )
    knob = SimpleNamespace(signs={"A": sign, "G": sign})
    families = np.array([[0.9, 0.6, 0.4], [0.8, 0.5, 0.4]])
    cell = validation_matrix._cell(CONTEXT, knob, "A", played, families)
    assert cell.effect.value == pytest.approx(-0.5)
    assert [dose.value for dose in cell.doses] == [0.9, 0.6, 0.4]
    assert [dose.arm for dose in cell.doses] == ["a", "b", "c"]
    if sign == "-":
        assert cell.p == pytest.approx(1 / 36, abs=1e-6)
        assert cell.tasks_needed is None
    else:
        assert cell.p > 0.99  # half of the scale is no equivalence
        assert cell.tasks_needed is not None
    none = validation_matrix._cell(CONTEXT, knob, "G", played, families)
    assert (none.verdict, none.reason) == ("NO EVIDENCE", "no G")


def test_every_pair_of_axes_correlates_once_over_all_arms_and_over_the_named() -> None:
    first, last = ARMS[0], ARMS[-1]
    traces = [
        episode(index=i, arm=arm, pair=pair, suite="selfrev", family="memory")
        for i, (arm, pair) in enumerate((a, p) for a in (first, last) for p in TASKS)
    ]
    agents = msgspec.structs.replace(DESIGN.agents, names=(last, "not played"))
    found = validate(
        plan_of(traces, battery=None),
        observe(iter(traces), PRICES),
        PROTOCOL,
        PRICES,
        msgspec.structs.replace(DESIGN, agents=agents, crossed=CROSSED),
    )
    pairs = list(itertools.combinations(AXES, 2))
    assert [one.axes for one in found.correlations] == pairs
    assert [one.axes for one in found.unhandicapped] == pairs
    over = {one.axes: one.agents for one in found.correlations}
    assert over["G", "P"] == (first, last)
    own = {one.axes: one.agents for one in found.unhandicapped}
    assert own["G", "P"] == (last,)
    assert (found.tasks, found.families) == (3, ("selfrev/memory",))
    assert [(one.arm, one.episodes) for one in found.arms] == sorted([(first, 3), (last, 3)])
    played = {a.name for row in crossed_arms(CROSSED) for a in row}
    assert found.variants == len({first, last} & played)


def test_an_axis_that_one_dose_lacks_has_no_part_in_the_lead() -> None:
    moved = doses(A=(0.9, 0.3), G=(0.5, 0.4), P=(0.9, 0.0))
    whole = moved.reading
    for gone in (0, 1):
        moved.reading = lambda place, axis, gone=gone: (
            None if (axis, abs(place)) == ("P", gone) else whole(place, axis)
        )
        found = validation_matrix._with_lead(CONTEXT, response(), moved)
        assert (found.second, found.lead.value) == ("G", pytest.approx(0.5))


def test_a_knob_that_lacks_an_end_was_not_played() -> None:
    one, *_, other = ARMS
    for played in ((one,), (other,), ("nobody",)):
        plan = SimpleNamespace(arms=[SimpleNamespace(name=name) for name in played])
        context = validation_matrix.ValidationContext(plan, None, PROTOCOL, PRICES, (), DESIGN)
        row = validation_matrix._knob(context, KNOB)
        assert (row.verdict, row.tasks) == ("NO EVIDENCE", 0)
        assert row.reason == "this knob was not played"
        assert [(c.axis, c.sign) for c in row.cells] == list(KNOB.signs.items())
        assert {(c.verdict, c.reason) for c in row.cells} == {
            ("NO EVIDENCE", "this knob was not played")
        }


def test_families_alone_stand_in_a_table_of_families_by_doses() -> None:
    """A is the share that is solved without help: by family and arm, in order."""
    won = {("x", "a"): 0.0, ("x", "b"): 1.0, ("y", "a"): 1.0, ("y", "b"): 0.0}
    traces = with_help(
        [
            episode(index=i, arm=arm, pair=f"{family}0", family=family, q_state=q)
            for i, ((arm, family), q) in enumerate(won.items())
        ]
    )
    table = observe(iter(traces), PRICES)
    axes = tuple(axis for axis in all_axes() if axis.symbol in "AG")
    context = validation_matrix.ValidationContext(
        plan_of(traces), table, PROTOCOL, PRICES, axes, DESIGN
    )
    rows = validation_matrix.shared_rows(context, ["x", "y"])
    doses = validation_matrix._Doses(("0", "1"), ("x", "y"), rows, ())
    found = validation_matrix._family_values(context, doses)
    assert found["A"].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert np.isnan(found["P"]).all()


def crossed(values: dict[str, np.ndarray], lacking: str = "") -> Any:
    """Return the effects of a grid of asks (4 rows) by depth (5 columns)."""
    names = [a.name for row in crossed_arms(CROSSED) for a in row]
    arms = [
        arm(**{axis: float(grid.ravel()[i]) for axis, grid in values.items()})
        for i, name in enumerate(names)
        if name != lacking
    ]
    context: Any = SimpleNamespace(
        design=msgspec.structs.replace(DESIGN, crossed=CROSSED),
        names=lambda: set(names) - {lacking},
        estimates=lambda place: arms[place[0]],
    )
    with pytest.MonkeyPatch.context() as patch:
        rows = [(i,) for i in range(len(arms))]
        patch.setattr(validation, "shared_rows", lambda *_: rows)
        return validation._crossed(context)


def test_crossed_knobs_have_an_effect_on_their_own_and_on_the_others_axis() -> None:
    """A falls by .3 from the first row to the last and by .1 along the columns."""
    rows, columns = np.linspace(0, 1, 4)[:, None], np.linspace(0, 1, 5)
    found = crossed({"A": 0.9 - 0.3 * rows - 0.1 * columns, "P": 0.8 - 0.05 * rows - 0.4 * columns})
    asks, depth = found
    assert (asks.knob, asks.axis, depth.knob, depth.axis) == ("asks", "A", "depth", "P")
    assert (asks.own.value, asks.other.value) == pytest.approx((-0.3, -0.05))
    assert (depth.own.value, depth.other.value) == pytest.approx((-0.4, -0.1))


def test_a_crossed_design_needs_every_pair_and_every_axis() -> None:
    flat = np.full((4, 5), 0.5)
    gone = crossed_arms(CROSSED)[1][2].name
    assert crossed({"A": flat, "P": flat}, lacking=gone) == ()
    found = crossed({"A": flat, "P": np.where(np.eye(4, 5) > 0, np.nan, flat)})
    assert [(one.knob, one.axis) for one in found] == [("asks", "A"), ("depth", "P")]
    assert {one.verdict for one in found} == {"NO EVIDENCE"}
    assert all(one.reason.startswith("axis P") for one in found)
