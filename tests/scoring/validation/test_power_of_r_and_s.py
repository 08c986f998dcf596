"""The printed power of R and S is the pass rate of their own gates on drawn data."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.discovery import get
from owa_bench.records.observables import NEAR
from owa_bench.records.protocol import GateRule
from owa_bench.records.score import AxisScore, Interval
from owa_bench.scoring.axes import sociality
from owa_bench.scoring.axes.self_revision import GATED, revision_evidence
from owa_bench.scoring.observe.attempt_sets import REVISION, RevisionSets, RevisionStages
from owa_bench.scoring.statistics.jackknife import jackknife_estimate, task_clusters, without_each
from owa_bench.scoring.statistics.statistics_table import (
    ResamplingUnits,
    StatisticsTable,
    weighted_totals,
)
from owa_bench.scoring.validation.power import (
    bound_chance,
    chance_to_pass,
    crew_spread,
    equal_sizes,
    gate_powers,
    revision_spread,
    worst_spread,
)
from owa_bench.scoring.verdict.scores import with_revision_bounds
from tests.builders.episodes import PROTOCOL

RULES = PROTOCOL.statistics
TRUE = 0.25  # AAI-2 asks for .20 of R and of S
BLANK = Interval(low=None, high=None, method="none", reason="none")
GAINS = ((0.151, 0.114), (0.454, 0.132))  # by tier: benchmarks/gate_spreads.py
ALONE = 0.395  # C_1* there
NEAR_ENOUGH = 0.07


def rule_of(symbol: str) -> GateRule:
    return next(r for r in PROTOCOL.gates if (r.level, r.of) == (2, symbol))


@pytest.fixture(autouse=True)
def _no_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "owa_bench.scoring.validation.power.maintenance_power"
    monkeypatch.setattr(name, lambda days, tasks, protocol: 0.0)


def printed(symbol: str, count: int) -> float:
    powers = gate_powers(PROTOCOL, equal_sizes(PROTOCOL, count))
    power = next(p.power for p in powers if (p.level, p.gate) == (2, symbol))
    assert power is not None
    return power


def passes(score: AxisScore) -> bool:
    findings = SimpleNamespace(axes={score.symbol: score}, protocol=PROTOCOL, evidence=())
    return bool(get("gates", "axis").judge(rule_of(score.symbol), findings).status == "PASS")


def score_of(symbol: str, value: float, gated: str, beside: dict) -> AxisScore:
    return AxisScore(
        name=symbol,
        symbol=symbol,
        raw=value,
        value=value,
        used=1,
        cells=1,
        reason=None,
        same_tasks=BLANK,
        tasks_like_these=BLANK,
        gated=gated,
        details={"beside": {gated: beside}},
    )


def revises(instances: int, rng: np.random.Generator) -> bool:
    """Return whether R passes for an agent that adopts in a share of the instances."""
    means, spreads = np.array(GAINS).T
    tier = np.arange(instances) % 2
    gain = rng.normal(means[tier], spreads[tier])
    share = TRUE * PROTOCOL.revision.full_gain / means.mean()
    gain *= rng.random(instances) < share
    before = rng.uniform(0.3, 0.5, instances)
    quality = dict.fromkeys(REVISION, before) | {"after": before + gain}
    sets = RevisionSets(
        window=(0, 0),
        family=np.arange(instances) // 2 % 3,
        q=quality,
        one_law=True,
        earlier=np.full(3, np.nan),
        stages=RevisionStages(1.0, 1.0, 1.0),
        human="",
        lines=1,
        installed=(),
        attempts={},
        size=40 * instances,
        own_subject=False,
    )
    found = revision_evidence((sets,), np.full(3, 1 / 3), PROTOCOL)
    score = score_of("R", found.raw, GATED, {})
    sample = SimpleNamespace(revision=found, practised=None, protocol=PROTOCOL)
    return passes(with_revision_bounds(score, sample))


def crew_table(quality: dict, tasks: int) -> SimpleNamespace:
    """Return rows of `tasks` tasks in two repeats for each crew (roles, muted)."""
    count = 2 * tasks
    whole = count * len(quality)
    cap = np.repeat([cap for cap, _ in quality], count)
    names = ("idle", "cycle", "same", "messages", "tokens", "declared", "handoffs", "untrue")
    names += ("asks", "reached", "answered", "gives", "news", "refused")
    crew = {name: np.zeros(whole, int) for name in names}
    crew |= {name: np.zeros(whole, bool) for name in ("conflict", "no_lift")}
    crew |= {name: np.ones(whole, int) for name in ("answers", "verified", "seats")}
    crew |= {
        "cap": cap,
        "muted": np.repeat([muted for _, muted in quality], count),
        "control": cap == 1,
        "channel": np.ones(whole, bool),
        "same_words": np.zeros((whole, NEAR), int),
        "bound": np.ones(whole),
    }
    return SimpleNamespace(
        crew=SimpleNamespace(**crew),
        channel_gaps=lambda _: "",
        q=np.concatenate([np.tile(q, 2) for q in quality.values()]),
        u=np.ones(whole),
        steps=np.full(whole, 8),
        tier=np.ones(whole, int),
        suite=np.full(whole, "s"),
        pair=np.tile(np.arange(tasks), 2 * len(quality)),
        repeat=np.tile(np.repeat([0, 1], tasks), len(quality)),
    )


def coordinates(tasks: int, rng: np.random.Generator) -> bool:
    """Return whether S passes for a crew that solves a share of what one role does not."""
    alone = (rng.random(tasks) < ALONE) * 1.0
    full = np.where(alone > 0, 1.0, rng.random(tasks) < TRUE)
    table = crew_table({(1, False): alone, (3, False): full, (3, True): alone}, tasks)
    weights, rows = np.ones(1), np.ones(len(table.q), bool)
    sample = SimpleNamespace(
        table=table,
        crews=rows,
        families=("s/f",),
        weights=weights,
        protocol=PROTOCOL,
        references=None,
    )
    units = ResamplingUnits(
        families=("s/f",),
        row=np.arange(len(rows)),
        task=table.pair,
        repeat=table.repeat,
        day=np.full(len(rows), -1),
        family=np.zeros(tasks, int),
    )
    statistics = StatisticsTable(units)
    assert sociality.AXIS.collect(sample, statistics).reason is None
    columns, clusters = statistics.columns(), task_clusters(units)

    def gated(totals: object) -> np.ndarray:
        return sociality.AXIS.secondary(totals, sample)[sociality.GATED_CREW]

    ones = np.ones((1, len(units.task)))
    whole = weighted_totals(ones, columns, units.unit_family, weights)
    parts = without_each(columns, clusters, units.unit_family, weights)
    value = float(gated(whole)[0])
    found = jackknife_estimate(value, np.concatenate([gated(p) for p in parts]), clusters)
    ends = {"lower": found.lower(RULES.gate_level), "highest": found.upper(RULES.below_level)}
    beside = {"value": value, "low": None, "high": None, **ends}
    return passes(score_of("S", value, sociality.GATED_CREW, beside))


def of_a_share(count: int) -> float:
    """Return the power that a share of `count` tasks has."""
    error = worst_spread(TRUE) / math.sqrt(count)
    return chance_to_pass(TRUE, error, 0.2, RULES.gate_slack, RULES.gate_level)


@pytest.mark.parametrize(
    ("instances", "rounds"), [(24, 150), pytest.param(120, 200, marks=pytest.mark.slow)]
)
def test_the_power_of_r_is_the_pass_rate_of_its_gate(instances: int, rounds: int) -> None:
    rng = np.random.default_rng(7)
    passed = sum(revises(instances, rng) for _ in range(rounds)) / rounds
    assert printed("R", instances) == pytest.approx(passed, abs=NEAR_ENOUGH)
    assert of_a_share(instances) > passed + NEAR_ENOUGH


@pytest.mark.parametrize("tasks", [60, pytest.param(160, marks=pytest.mark.slow)])
def test_the_power_of_s_is_the_pass_rate_of_its_gate(
    tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """References reach what the agent's own controls do."""
    monkeypatch.setattr(
        sociality, "reference_values", lambda sample, rows, column: sample.table.q.copy()
    )
    rng, rounds = np.random.default_rng(8), 400
    passed = sum(coordinates(tasks, rng) for _ in range(rounds)) / rounds
    assert printed("S", tasks) == pytest.approx(passed, abs=NEAR_ENOUGH)
    assert of_a_share(tasks) > passed + 0.04


def test_the_spread_of_r_is_that_of_all_or_nothing() -> None:
    """R0 .25: an instance adopts .426 / .25 = 1.704 or nothing; at R = .25 .25 x 1.454."""
    assert revision_spread(0.25, 0.25) == pytest.approx(math.sqrt(0.25 * 1.454))
    assert revision_spread(0.25, 0.25) > worst_spread(0.25) + 0.15
    assert revision_spread(0.25, 2.0) == worst_spread(0.25)  # R_a is at least 1
    assert revision_spread(0.0, 0.25) == 0.0


def test_the_spread_of_s_is_that_of_the_tasks_that_one_role_leaves() -> None:
    """A task of a hundred: .395 solved alone, .25 of the rest by the crew."""
    alone, rest = 0.395, 0.605
    moves = np.array([0.25, 1.0, 0.0]) / rest  # q_m - .75 q_1 of: both, the crew, nobody
    chances = np.array([alone, 0.25 * rest, 0.75 * rest])
    mean = chances @ moves
    assert crew_spread(0.25) == pytest.approx(math.sqrt(chances @ (moves - mean) ** 2))


def test_the_bar_is_where_the_gates_own_bound_is() -> None:
    """An agent whose bound is .15 at its own value passes every second time.

    R: sqrt(.35 x 1.354) x 1.6924 (t on 33) = .2 sqrt(33.9). S: logit .35 - logit .15 is 1.1156,
    the logit's sd sqrt(1 / (.35 x .65 x .605)), so n is (1.7396 (t on 17) / 1.1156)^2 / .1376 =
    17.7.
    """
    for symbol, count in (("R", 34), ("S", 18)):
        power = bound_chance(0.35, count, 0.2, symbol, PROTOCOL)
        assert power == pytest.approx(0.5, abs=0.02)


def test_the_bar_is_never_below_what_is_required() -> None:
    for symbol in "RS":
        assert bound_chance(0.2, 10**6, 0.2, symbol, PROTOCOL) == pytest.approx(0.5, abs=1e-3)
        assert bound_chance(1.0, 10**6, 0.2, symbol, PROTOCOL) == 1.0
        assert bound_chance(0.05, 10**6, 0.0, symbol, PROTOCOL) == pytest.approx(1.0)


def test_too_few_instances_of_selfrev_have_no_power() -> None:
    least = PROTOCOL.revision.clusters_min
    assert printed("R", least - 1) == 0.0 < printed("R", least)
    assert printed("S", least - 1) > 0.0
