"""W by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Belief, Resolution
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes import world_model as world_model_axis
from owa_bench.scoring.axes.world_model import world_model
from owa_bench.scoring.statistics.statistics_table import MILLION, Totals
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import axis


def tasks(true: float | None, false: float | None, kind: str = "unit") -> list[Trace]:
    """Return ten episodes, each with a true and a false proposition."""
    said = ((kind, true, True), (kind, false, False))
    return [episode(index=i, pair=f"p{i}", beliefs=said) for i in range(10)]


def test_worked_example() -> None:
    score = axis(tasks(0.9, 0.3), "W")
    brier = (0.01 + 0.09) / 2
    assert score.details["beside"]["Brier score"]["value"] == pytest.approx(brier)
    assert score.value == pytest.approx(1 - brier / 0.25)
    assert (score.used, score.cells) == (20, 20)


def test_perfect_foresight_is_one() -> None:
    assert axis(tasks(1.0, 0.0), "W").value == 1.0


def test_worse_than_the_reference_is_zero_and_the_raw_says_how_bad() -> None:
    score = axis(tasks(0.0, 1.0), "W")
    assert (score.raw, score.value) == (-3.0, 0.0)


def test_silence_counts_at_the_reference() -> None:
    assert axis(tasks(1.0, None), "W").value == pytest.approx(0.5)


def test_an_agent_that_never_states_has_none() -> None:
    score = axis(tasks(None, None), "W")
    assert score.value is None
    assert "never stated" in str(score.reason)


def test_refusing_uncertain_tasks_earns_nothing() -> None:
    assert axis(tasks(0.0, 0.0), "W").value == 0.0


def test_own_success_never_enters() -> None:
    score = axis(tasks(1.0, 0.0, kind="own_success"), "W")
    assert score.value is None


@pytest.mark.parametrize(
    ("traces", "why"),
    [
        (tasks(1.0, 0.0, kind="weather"), "no reference"),
        (tasks(1.0, 0.0)[:9], "18 resolved of 20"),
        (
            [episode(index=i, pair=f"p{i}", beliefs=(("unit", 0.9, True),)) for i in range(20)],
            "never varies",
        ),
    ],
)
def test_a_class_that_cannot_be_read_is_left_out(traces: list[Trace], why: str) -> None:
    score = axis(traces, "W")
    assert score.value is None
    assert why in str(score.reason)


def test_episodes_weigh_alike_however_many_propositions_they_list() -> None:
    """Ten episodes with two right answers each, ten with one wrong one: (0 + 1) / 2."""
    two = (("unit", 1.0, True), ("unit", 0.0, False))
    traces = [
        episode(index=i, pair=f"p{i}", beliefs=two if i < 10 else (("unit", 1.0, False),))
        for i in range(20)
    ]
    score = axis(traces, "W")
    assert score.details["beside"]["Brier score"]["value"] == pytest.approx(0.5)
    risk = 0.25 * 0.75  # a quarter is true: 10 halves of 20 episodes
    assert score.raw == pytest.approx(1 - 0.5 / risk)


@pytest.mark.parametrize("p", [0.5, 0.7, 0.9])
def test_a_constant_by_class_has_no_skill_whatever_the_rate(p: float) -> None:
    """The protocol's reference is .5, and nine in ten are true in this run."""
    said = [(("unit", p, i % 10 > 0),) for i in range(40)]
    traces = [episode(index=i, pair=f"p{i}", beliefs=b) for i, b in enumerate(said)]
    assert axis(traces, "W").value == 0.0


def test_what_is_stated_at_the_deadline_or_later_does_not_count() -> None:
    def stated(at_ms: int, i: int) -> Trace:
        extra = (
            Belief(step=1, at_ms=5, proposition="b", kind="interim", p=0.5),
            Belief(step=1, at_ms=at_ms, proposition="b", kind="interim", p=1.0),
            Resolution(proposition="b", kind="unit", y=i % 2 == 0, deadline_ms=10),
        )
        return episode(index=i, pair=f"p{i}", extra=extra)

    for at_ms, brier in ((9, 0.5), (10, 0.25), (11, 0.25)):
        score = axis([stated(at_ms, i) for i in range(20)], "W")
        assert score.details["beside"]["Brier score"]["value"] == brier


def test_sums_outside_their_range_are_refused() -> None:
    with pytest.raises(ScoringError, match="probabilities"):
        world_model(np.array([3.0]), np.array([0.5]), np.array([2.0]), 4)


def test_no_reference_risk_is_guarded() -> None:
    assert world_model(np.zeros(1), np.zeros(1), np.full(1, 10.0), 4).tolist() == [1.0]


def test_a_planted_brier_skill_is_recovered() -> None:
    """Calibrated forecasts p have risk p (1 - p); the reference at .5 has .25."""
    rng = np.random.default_rng(0)
    for sharp, low in ((0.5, 0.3), (0.1, 0.6)):
        p = rng.beta(sharp, sharp, 40_000)
        truth = rng.random(40_000) < p
        skill = 1 - float((p * (1 - p)).mean()) / 0.25
        sums = [float(((x - truth) ** 2).sum()) for x in (p, np.full(40_000, 0.5))]
        brier, reference = (np.array([x / 40_000]) for x in sums)
        found = world_model(brier, reference, np.array([40_000.0]), 4.0)
        assert float(found[0]) == pytest.approx(skill, abs=0.01)
        assert skill > low


def test_the_reference_is_the_better_of_two_predictors() -> None:
    """Class a: 2 of 4 came true, b: 1 of 4; in parts, over two families."""
    parts = world_model_axis._PARTS * MILLION
    columns = {"W:weight:a": (3, 1), "W:true:a": (2, 0), "W:weight:b": (0, 4), "W:true:b": (0, 1)}
    names = {name: place for place, name in enumerate([*columns, "W:reference"])}
    table = np.zeros((1, 2, 5))
    table[0, :, :4] = np.array([*columns.values()]).T * parts
    hindsight = (2 - 2**2 / 4) + (1 - 1 / 4)
    for committed, found in ((9.0, hindsight), (1.5, 1.5)):
        table[0, 1, 4] = committed * MILLION
        totals = Totals(names, table, np.full(2, 0.5), {})
        assert world_model_axis._reference(totals) == pytest.approx([found])


def test_what_is_said_of_beliefs_is_of_those_that_count() -> None:
    """Class x varies and counts, 3 of its 4 were stated; y never varies."""
    rules = PROTOCOL.world_model
    kind = sorted(rules.references)[:2]
    count = rules.class_min
    kinds = np.array([kind[0]] * 2 * count + [kind[1]] * count)
    y = np.arange(3 * count) % 2 == 0
    y[2 * count :] = True
    p = np.where(np.arange(3 * count) % 4 == 3, np.nan, 0.5)
    beliefs = SimpleNamespace(row=np.arange(3 * count), kind=kinds, y=y, p=p)
    sample = SimpleNamespace(
        table=SimpleNamespace(beliefs=beliefs), base=np.ones(3 * count, bool), protocol=PROTOCOL
    )
    found = world_model_axis._diagnostics(sample)
    assert found["left out"] == {kind[1]: "its outcome never varies"}
    assert found["base rates"] == {kind[0]: 0.5}
    assert found["stated"] == pytest.approx(np.mean(np.arange(2 * count) % 4 != 3))
    sample.base[:] = False
    assert world_model_axis._diagnostics(sample)["stated"] == 0.0
    sample.base[: count - 1] = True
    few = world_model_axis._left_out(sample)
    assert few == {kind[0]: f"{count - 1} resolved of {count}"}


def test_one_sum_outside_its_range_is_refused() -> None:
    fine, count = np.array([0.5, 0.5]), np.array([2.0, 2.0])
    for brier, reference in (
        (np.array([0.5, 3.0]), fine),
        (np.array([0.5, -0.1]), fine),
        (fine, np.array([0.5, 3.0])),
    ):
        with pytest.raises(ScoringError, match="must lie in"):
            world_model(brier, reference, count, 4)
    ends = world_model(np.array([0.0, 2.0]), np.array([2.0, 2.0]), count, 4)
    assert ends.tolist() == [1.0, 0.0]
    assert np.isnan(world_model(np.zeros(1), np.zeros(1), np.zeros(1), 4)).all()


def test_without_evidence_no_proposition_is_used() -> None:
    for traces, cells in (
        ([episode()], 0),
        (tasks(None, None), 20),
        (tasks(1.0, 0.0, kind="weather"), 20),
    ):
        score = axis(traces, "W")
        assert (score.used, score.cells) == (0, cells)
