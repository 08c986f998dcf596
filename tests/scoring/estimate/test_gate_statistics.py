"""Statistics of gates on numbers written by hand: cognition, projects, leads."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.estimate.gate_statistics import (
    DELAYED,
    DELIVERED,
    FIDELITY,
    TRUTHFUL,
    VERIFIED,
    FamilyQuality,
    _cost,
    add_cognition,
    add_projects,
    coverage,
    family_qualities,
    hallucination,
    margin,
    span,
    verified_precision,
)
from tests.builders.episodes import PROTOCOL

RULES = SimpleNamespace(span_start=2, span_accuracy=0.75, span_trials=4)


class Entries:
    """What is added to a table of statistics, by name."""

    def __init__(self):
        self.added = {}

    def add_entries(self, name, row, values):
        self.added[name] = (row.tolist(), np.asarray(values, float).tolist())

    def add_mean(self, name, values, rows):
        self.added[name] = np.asarray(values)[rows].tolist()


def test_an_empty_slot_is_unverified():
    found = verified_precision(np.array([[True, True, True], [False, True, False]]), 2)
    assert found.tolist() == [1.0, 0.5]
    for verified, slots in ((np.ones(3, bool), 1), (np.ones((1, 3), bool), 0)):
        with pytest.raises(ScoringError, match="VRP needs"):
            verified_precision(verified, slots)


def test_false_entries_are_among_the_returned():
    nan = np.nan
    found = hallucination(np.array([0.0, 1.0, 0.0, nan]), np.array([1, 1, 0, 3]))
    assert found[:2].tolist() == [0.0, 1.0]
    assert np.isnan(found[2:]).all()
    for contrary, returned in (([1.0, -1.0], [2, 2]), ([0.0, 3.0], [2, 2])):
        with pytest.raises(ScoringError, match="among the returned"):
            hallucination(np.array(contrary), np.array(returned))
    with pytest.raises(ScoringError, match="Probes differ"):
        hallucination(np.zeros(2), np.zeros(3, int))


def test_a_span_is_the_median_over_seeds_of_the_longest_answered():
    """Of 2, 3, 4 items seed 0 answers 1, 1, 1/2 of its trials and seed 1 3/4, 1, 0."""
    lengths = np.array([2, 2, 3, 3, 4, 4, 2, 2, 2, 2, 3, 3, 4, 4])
    seeds = np.repeat([0, 1], [6, 8])
    right = np.array([1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
    assert span(lengths, right, seeds, RULES) == 3.0
    worse = right & ~((seeds == 1) & (lengths == 2))
    assert span(lengths, worse, seeds, RULES) == 1.5  # 3 and 0
    unasked = np.where((seeds == 1) & (lengths == 3), 9, lengths)
    more = np.concatenate((unasked, [3, 3])), np.append(right, [1, 1]) > 0
    assert span(*more, np.append(seeds, [0, 0]), RULES) == 2.5  # 3 and 2
    assert np.isnan(span(lengths + 1, right, seeds, RULES))
    for k in range(3):
        arrays = [lengths, right, seeds]
        arrays[k] = arrays[k][1:]
        with pytest.raises(ScoringError, match="Trials differ"):
            span(*arrays, RULES)


def probes(**columns):
    """Return a sample of eight probes of two episodes, the second not counted."""
    modes = ["retrieve", "retrieve", "recall", "recall", "fidelity", "span", "span"]
    count = len(modes) + 1
    fields = {
        "row": np.array([0] * len(modes) + [1]),
        "mode": np.array([*modes, "recall"]),
        "helped": np.zeros(count, bool),
        "zero_tool": np.ones(count, bool),
        "lag": np.full(count, 7.0),
        "correct": np.array([1, 0, 1, 0, 1, 1, 1, 1], dtype=bool),
        "contrary": np.array([0.0, np.nan] + [np.nan] * 6),
        "returned": np.array([2, 4] + [0] * 6),
        "verified": np.tile(np.array([1, 0, 1, 0, 0, 1], dtype=bool), (count, 1)),
        "span": np.array([0] * 5 + [2, 2, 0]),
    }
    rules = SimpleNamespace(recall_at=5, delayed_days=7.0, **vars(RULES))
    rules.span_trials = 2
    return SimpleNamespace(
        table=SimpleNamespace(probes=SimpleNamespace(**fields | columns), repeat=np.zeros(2, int)),
        base=np.array([True, False]),
        protocol=SimpleNamespace(memory=rules),
    )


def test_cognition_is_added_as_means_over_its_own_probes():
    statistics = Entries()
    found = add_cognition(probes(), statistics)
    assert found == (2.0, (VERIFIED, TRUTHFUL, DELAYED, FIDELITY))
    assert statistics.added == {
        VERIFIED.column: ([0, 0], [0.4, 0.4]),
        TRUTHFUL.column: ([0], [1.0]),
        DELAYED.column: ([0, 0], [1.0, 0.0]),
        FIDELITY.column: ([0], [1.0]),
    }


@pytest.mark.parametrize(
    ("columns", "left"),
    [
        ({"helped": np.ones(8, bool)}, []),
        ({"zero_tool": np.zeros(8, bool)}, ["vrp", "truthful"]),
        ({"lag": np.full(8, 6.9)}, ["vrp", "truthful", "fidelity", "span"]),
        ({"contrary": np.full(8, np.nan)}, ["vrp", "delayed", "fidelity", "span"]),
    ],
)
def test_probes_of_no_evidence_add_nothing(columns, left):
    found = add_cognition(probes(**columns), Entries())
    names = [*(key.name for key in found.keys), *(["span"] if found.span is not None else [])]
    assert names == left


def projects(**columns):
    """Return a sample of four projects, two of them delivered, and one other task."""
    fields = {
        "suite": np.array([PROTOCOL.projects.suite] * 4 + ["toolquest"]),
        "u": np.array([1.0, 0.0, 1.0, 0.0, 1.0]),
        "simulated_s": 86_400.0 * np.array([3.0, 2.0, 4.0, 0.5, 0.1]),
        "attempt": np.array(["a0", "a1", "a2", "a3", "a4"]),
        "phase": np.array(["holdout", "checkpoint", "holdout", "holdout", "holdout"]),
        "cost_agent": np.array([1e6, 2e6, 3e6, 9e6, 9e6]),
        "cost_human": np.array([1e6, 0.0, 1e6, 9e6, 9e6]),
        "cost_evaluation": np.array([7e6, 4e6, 7e6, 9e6, 9e6]),
        "read": np.array([5000, 0, 0, 0, 0]),
        "decisions": np.array([3, 5, 4, 9, 9]),
        "written": np.array([250, 0, 0, 0, 0]),
    }
    rates = SimpleNamespace(reading=1000.0, typing=50.0, decision={"other": 2.0})
    economics = SimpleNamespace(expert=rates)
    rules = SimpleNamespace(projects=PROTOCOL.projects, economics=economics)
    price = {"supervisor_min": 500_000 * 10**6}
    return SimpleNamespace(
        table=SimpleNamespace(**fields | columns),
        base=np.array([True, True, True, False, True]),
        protocol=rules,
        prices=SimpleNamespace(price=price.get),
    )


def test_projects_cost_what_was_spent_over_what_an_expert_costs_for_the_delivered():
    """12 USD were spent; what was delivered is 5 + 6 + 5 and 8 minutes of .5 USD."""
    statistics, sample = Entries(), projects()
    found = add_projects(sample, statistics)
    assert found == (3, 2.0, pytest.approx(1.0), ("a0", "a2"))
    assert statistics.added == {DELIVERED.column: [1.0, 0.0, 1.0]}
    none = add_projects(projects(suite=np.array(["toolquest"] * 5)), Entries())
    assert none == (0, 0.0, None, ())


def test_a_cost_of_projects_is_known_or_nothing():
    zero, unknown = np.zeros(5), np.array([1e6, np.nan, 3e6, 0.0, 0.0])
    rows = np.array([True, True, True, False, False])
    free = projects(cost_agent=zero, cost_human=zero, cost_evaluation=zero)
    idle = {"read": zero, "written": zero}
    silent = projects(decisions=zero, **idle)
    for sample in (projects(cost_agent=unknown), projects(u=zero), silent, free):
        assert _cost(sample, rows) is None
    cheap = projects(decisions=np.array([0.5, 0.0, 0.25, 0.0, 0.0]), **idle)
    assert _cost(cheap, rows) == pytest.approx(16.0)  # .75 USD of an expert
    unpriced = projects()
    unpriced.prices = SimpleNamespace(price={}.get)
    assert _cost(unpriced, rows) is None
    little = projects(cost_agent=np.full(5, 0.1), cost_human=zero, cost_evaluation=zero)
    assert _cost(little, rows) == pytest.approx(0.3e-6 / 12)


def test_a_lead_is_counted_in_errors_of_both():
    assert margin(1.0, 0.0, 0.0, 0.5) == 2.0
    assert margin(0.0, 0.3, 1.0, 0.4) == -2.0
    for wrong in (
        (0.5, -0.1, 0.5, 0.3),
        (0.5, 0.3, 0.5, -0.1),
        (0.5, 0.0, 0.5, 0.0),
        (1.1, 0.1, 0.5, 0.1),
        (-0.1, 0.1, 0.5, 0.1),
        (0.5, 0.1, 1.1, 0.1),
        (0.5, 0.1, -0.1, 0.1),
    ):
        with pytest.raises(ScoringError):
            margin(*wrong)


def test_the_quality_of_a_family_is_over_its_tasks():
    """Tasks of .2 and .6 of family f, once played twice; g holds one task."""
    table = SimpleNamespace(
        family=np.array(["f", "f", "f", "g", "f"]),
        pair=np.array(["a", "a", "b", "c", "d"]),
        q=np.array([0.1, 0.3, 0.6, 0.9, 1.0]),
    )
    sample = SimpleNamespace(
        table=table, families=("f", "g", "h"), base=np.array([1, 1, 1, 1, 0], bool)
    )
    (found,) = family_qualities(sample).items()
    assert found[0] == "f"
    assert found[1] == pytest.approx((0.4, 0.2))


def test_coverage_asks_for_both_a_margin_and_a_lead():
    agent = {
        "wide": FamilyQuality(0.9, 0.1),  # z = 1
        "near": FamilyQuality(0.82, 0.001),  # leads by .02
        "far": FamilyQuality(0.9, 0.01),
    }
    experts = dict.fromkeys(("wide", "near", "far", "unplayed"), (0.8, 0.0))
    assert coverage(agent, experts, 1.0, 0.05) == 0.5
    assert coverage(agent, experts, 1.96, 0.05) == 0.25
    assert coverage(agent, experts, 1.96, 0.01) == 0.5
