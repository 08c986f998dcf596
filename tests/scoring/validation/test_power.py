"""Power: the printed n really gives the power it claims."""

import functools
import math

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.plan import SampleSizes
from owa_bench.scoring.closures.maintenance import kept_share
from owa_bench.scoring.gate import GateReading, gate_status
from owa_bench.scoring.improvement.gain import paired_gain
from owa_bench.scoring.validation.power import (
    GatePower,
    LevelPower,
    bound_chance,
    chance_to_pass,
    equal_sizes,
    equivalence_tasks,
    gain_instances,
    gain_power,
    gate_powers,
    instances,
    level_powers,
    maintenance_power,
    needs,
    worst_spread,
)
from owa_bench.seeding import stream
from tests.builders.episodes import PROTOCOL

RULES = PROTOCOL.improvement


@pytest.mark.parametrize("required", [0.2, 0.5, 0.85])
def test_the_n_of_a_share_gate_gives_its_power(required: float) -> None:
    true = required + PROTOCOL.statistics.power_margin
    n = instances(true, worst_spread(true), required, PROTOCOL)
    assert n is not None
    rng = np.random.default_rng(1)
    passed = 0
    for _ in range(2000):
        won = rng.random(n) < true
        error = float(won.std(ddof=1)) / np.sqrt(n)
        lower = max(0.0, float(won.mean()) - 1.645 * error)
        read = GateReading(float(won.mean()), lower)
        passed += gate_status(read, required, PROTOCOL) == "PASS"
    assert passed / 2000 == pytest.approx(0.80, abs=0.05)


def test_every_line_of_the_protocol_has_an_answer() -> None:
    found = needs(PROTOCOL)
    assert len(found) == len(PROTOCOL.gates)
    assert all(need.note for need in found)
    shares = [n for n in found if n.gate in "APTW"]
    assert all(n.instances and n.instances > 10 for n in shares)


def test_a_margin_within_noise_has_no_n() -> None:
    assert instances(0.60, 0.5, 0.60, PROTOCOL) is None
    assert instances(0.65, 0.0, 0.60, PROTOCOL) == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        chance_to_pass(0.6, 0.0, 0.5, 0.05, 0.95)
    with pytest.raises(ScoringError):
        worst_spread(1.2)


def test_the_chance_is_that_of_both_clauses_simulated() -> None:
    rng = np.random.default_rng(3)
    z = stats.norm.ppf(0.95)
    for true, error, required, slack in (
        (0.65, 0.05, 0.60, 0.05),  # the lower bound decides
        (0.65, 0.02, 0.60, 0.05),  # the point decides
        (0.55, 0.04, 0.60, 0.02),
    ):
        x = rng.normal(true, error, 200_000)
        passed = (x >= required) & (x - z * error >= required - slack)
        found = chance_to_pass(true, error, required, slack, 0.95)
        assert found == pytest.approx(passed.mean(), abs=0.005)


@pytest.mark.parametrize("true", [0.62, 0.65, 0.7, 0.8, 0.95])
def test_the_n_is_the_least_that_is_enough(true: float) -> None:
    rules = PROTOCOL.statistics

    def chance(n: int) -> float:
        error = worst_spread(true) / np.sqrt(n)
        return chance_to_pass(true, error, 0.6, rules.gate_slack, rules.gate_level)

    n = instances(true, worst_spread(true), 0.6, PROTOCOL)
    assert n is not None
    assert chance(n) >= rules.power > chance(n - 1)


def test_beyond_ten_million_there_is_no_n() -> None:
    # Without slack to spare the error must fall to .2 / (z_.95 + z_.80) of the margin.
    rules = PROTOCOL.statistics
    margin = 0.5 * stats.norm.ppf(rules.power) / np.sqrt(2.0**22)
    found = instances(0.6 + margin, 0.5, 0.6, PROTOCOL)
    assert found == pytest.approx(2**22, rel=1e-3)
    assert instances(0.6 + margin / 4, 0.5, 0.6, PROTOCOL) is None
    assert instances(1.0, 0.01, 0.5, PROTOCOL) == 1


def test_the_spread_is_that_of_a_coin() -> None:
    assert worst_spread(0.0) == worst_spread(1.0) == 0.0
    assert worst_spread(0.8) == pytest.approx(0.4)
    with pytest.raises(ScoringError):
        worst_spread(-0.1)


def test_the_n_of_a_gain_is_the_least_that_is_enough() -> None:
    """E = sqrt(.5 / (4 n)) of four mornings; t .975 on 3 is 3.182446, twice counted."""
    for gain in (0.05, 0.2, 0.4):
        n = gain_instances(gain, RULES, 0.8)
        assert n is not None
        assert gain_power(gain, n, RULES) >= 0.8 > gain_power(gain, n - 1, RULES)
    error = math.sqrt(0.5 / (4 * 60))
    expected = stats.norm.cdf(0.2 / error - 3.182446 * math.sqrt(2))
    assert gain_power(0.2, 60, RULES) == pytest.approx(expected, abs=1e-6)
    wide = math.sqrt(0.5 / (4 * 10**5))  # then the least gain decides
    expected = stats.norm.cdf((0.021 - RULES.gain_min) / wide)
    assert gain_power(0.021, 10**5, RULES) == pytest.approx(expected, abs=1e-6)
    assert gain_instances(RULES.gain_min, RULES, 0.8) is None
    assert gain_instances(9.0, RULES, 0.8) == 2
    with pytest.raises(ScoringError, match="two instances"):
        gain_power(0.1, 1, RULES)


def test_the_power_of_a_gain_is_near_that_of_its_own_test() -> None:
    """60 tasks drawn apart in both lanes: the law leaves out that errors are estimated."""
    rng, passed = np.random.default_rng(4), 0
    for _ in range(400):
        own, frozen = rng.random((60, 4)) < 0.75, rng.random((60, 4)) < 0.5
        passed += paired_gain(own * 1.0, frozen * 1.0).p < RULES.alpha
    assert gain_power(0.25, 60, RULES) == pytest.approx(passed / 400, abs=0.1)


def test_lines_of_the_table_read_their_own_threshold() -> None:
    rules = PROTOCOL.statistics
    found = list(zip(PROTOCOL.gates, needs(PROTOCOL, units_a_day=2.0), strict=True))
    names = {rule.gate for rule, _ in found}
    assert {"axis", "kappa", "core", "project", "cognitive", "closure"} <= names
    required = {"core": PROTOCOL.norms.core, "project": PROTOCOL.projects.delivered}
    for rule, need in found:
        assert need.level == rule.level
        if rule.gate == "kappa":
            spent = 2.0 * (rule.days - 1.5)
            assert need.true == min(2 * max((rule.required or 0.0) * spent, RULES.gain_min), 0.5)
            assert need.instances == gain_instances(need.true, RULES, rules.power)
        elif rule.gate in ("closure", "assurance", "norms"):
            assert (need.required, need.true, need.instances) == (None, None, None)
        else:
            least = required.get(rule.gate, rule.required)
            if rule.gate == "cognitive":
                least = rule.numbers["vrp"]
            assert need.required == least
            assert need.true == min(least + rules.power_margin, 1.0)
            if rule.of not in ("R", "S"):
                spread = worst_spread(need.true)
                assert need.instances == instances(need.true, spread, least, PROTOCOL)


def with_power(power: float | None) -> list[GatePower]:
    """Return a power for every line, the same one; None where no count decides."""
    unknown = ("expansion", "assurance", "cognitive", "norms")
    found = []
    for need in needs(PROTOCOL):
        own = None if need.gate in unknown else power
        found.append(GatePower(need.level, need.gate, need.required, need.true, 1, own))
    return found


def test_a_levels_power_is_the_product_over_its_gates() -> None:
    """A, G, P and the tools; then M, T, R, S, W, $, kappa, maintenance; project and core."""
    one, two, three, four = level_powers(PROTOCOL, with_power(0.8))
    assert (one.gates, two.gates, three.gates, four.gates) == (4, 12, 14, 14)
    for level in (one, two, three, four):
        assert level.power == pytest.approx(0.8**level.gates)
    assert one.left_out == ()
    assert two.left_out == ("cognitive", "assurance")
    assert three.left_out == ("cognitive", "assurance", "expansion")
    assert four.left_out == ("cognitive", "assurance", "expansion", "norms")


def test_of_lines_on_one_statistic_the_hardest_counts() -> None:
    """A of AAI-1 is no gate of AAI-2's product, A of AAI-2 is."""
    powers = with_power(1.0)
    place = {(p.level, p.gate): at for at, p in enumerate(powers)}
    for gate, level, seen in (("A", 1, [0.5, 1, 1, 1]), ("A", 2, [1, 0.5, 1, 1])):
        at = place[level, gate]
        changed = [*powers[:at], powers[at]._replace(power=0.5), *powers[at + 1 :]]
        assert [one.power for one in level_powers(PROTOCOL, changed)] == seen


def test_a_harder_line_of_a_lower_level_stays() -> None:
    powers = with_power(1.0)
    changed = [
        p._replace(required=0.99, power=0.5) if (p.level, p.gate) == (1, "A") else p for p in powers
    ]
    assert [one.power for one in level_powers(PROTOCOL, changed)] == [0.5] * 4


def test_a_level_has_a_power_for_each_line_or_none() -> None:
    with pytest.raises(ScoringError, match="powers for"):
        level_powers(PROTOCOL, with_power(0.8)[1:])


def test_the_words_name_what_is_not_in_the_product() -> None:
    assert LevelPower(1, 0.5, 4, ()).words() == "AAI-1: 0.500 over 4 gates"


def test_equal_sizes_give_every_gate_as_many() -> None:
    found = equal_sizes(PROTOCOL, 50)
    assert set("AGPMTRSW$") <= set(found.tasks)
    assert set(found.tasks.values()) == {50}
    assert (found.families, found.projects, found.family_day, found.lane) == (50,) * 4
    assert (found.days, found.lane_days) == (30, 30)  # AAI-4 asks for 30


def sizes(tasks: int, **given: int) -> SampleSizes:
    read = dict.fromkeys("AGPMTRSW$", tasks)
    counts = {"families": tasks, "projects": tasks, "family_day": tasks}
    lanes = {"days": 30, "lane": tasks, "lane_days": 30}
    return SampleSizes(tasks=read, **(counts | lanes | given))


def test_the_n_of_every_gate_gives_its_power_there_and_less_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All gates but maintenance, whose own test is below."""
    name = "owa_bench.scoring.validation.power.maintenance_power"
    monkeypatch.setattr(name, lambda days, tasks, protocol: 0.0)
    powers = functools.cache(
        lambda n: {(p.level, p.gate): p for p in gate_powers(PROTOCOL, sizes(n))}
    )
    for need in needs(PROTOCOL):
        if need.instances in (None, 1) or need.gate in ("kappa", "cognitive"):
            continue
        place = (need.level, need.gate)
        enough = powers(need.instances)[place]
        half = powers(need.instances // 2)[place]
        assert enough.planned == need.instances
        assert enough.power is not None
        assert half.power is not None
        assert half.power < PROTOCOL.statistics.power <= enough.power


def test_what_a_plan_does_not_play_has_no_power() -> None:
    found = gate_powers(PROTOCOL, sizes(0, days=0, lane_days=0))
    assert {one.power for one in found} <= {0.0, 1.0, None}
    assert all(one.power == 0.0 for one in found if one.gate in ("A", "S", "kappa"))


def test_the_power_of_maintenance_is_that_of_its_own_test() -> None:
    assert maintenance_power(6, 168, PROTOCOL) == 0.0
    short, long = (maintenance_power(days, 168, PROTOCOL) for days in (7, 14))
    assert 0.1 < short < 0.5 < long < 0.7  # days alone would say .77


def test_maintenance_needs_its_days_and_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("owa_bench.scoring.validation.power._ROUNDS", 100)
    days = PROTOCOL.closures.days
    assert maintenance_power(days, 0, PROTOCOL) == 0.0
    rng = stream(0, "power", "maintenance", days, 200)
    drifted, clean = rng.binomial(200, 0.82, (2, 100, days)) / 200
    rho, level = PROTOCOL.closures.rho, PROTOCOL.statistics.gate_level
    error = (2 * 0.82 * 0.18 / (200 * days)) ** 0.5 / 0.82  # of both lanes' means
    share = kept_share(drifted, clean, 0.0, rho, level, error=error, freedom=199)
    expected = share.passes(rho).mean()
    assert maintenance_power(days, 200, PROTOCOL) == expected > 0
    early = msgspec.structs.replace(PROTOCOL.closures, days=1)
    protocol = msgspec.structs.replace(PROTOCOL, closures=early)
    assert maintenance_power(1, 200, protocol) == 0.0  # one day has no error
    assert maintenance_power(2, 200, protocol) >= 0.0
    assert maintenance_power(30, 1, protocol) == 0.0  # nor has one task


def test_every_gate_counts_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that all differ; the core is the least of its axes."""
    name = "owa_bench.scoring.validation.power.maintenance_power"
    monkeypatch.setattr(name, lambda days, tasks, protocol: days + tasks / 1000)
    read = {symbol: 20 + 2 * i for i, symbol in enumerate("GWPMARST")}  # $: none
    given = SampleSizes(
        tasks=read, families=7, projects=9, family_day=150, days=30, lane=11, lane_days=8
    )
    rules, found = PROTOCOL.statistics, gate_powers(PROTOCOL, given, units_a_day=2.0)
    for rule, one in zip(PROTOCOL.gates, found, strict=True):
        planned = {
            "project": 9,
            "tools": read["T"],
            "core": min(read[s] for s in PROTOCOL.index.core),
            "axis": 7 if rule.of == "G" else read.get(rule.of, 0),
        }.get(rule.gate)
        if rule.gate == "kappa" and one.true is not None:
            assert one.planned == 150
            assert one.power == gain_power(one.true, 150, RULES)
        elif planned:
            assert one.planned == planned
            assert one.true is not None
            assert one.required is not None
            error = worst_spread(one.true) / np.sqrt(planned)
            expected = 1.0
            if rule.of in ("R", "S"):
                expected = bound_chance(one.true, planned, one.required, rule.of, PROTOCOL)
            elif error:
                slack = (rules.gate_slack, rules.gate_level)
                expected = chance_to_pass(one.true, error, one.required, *slack)
            assert one.power == expected
        elif planned == 0:
            assert (one.planned, one.power) == (0, 0.0)
        elif rule.gate == "closure" and rule.of == "maintenance":
            assert (one.planned, one.power) == (11, 8.011)
        else:
            assert (one.planned, one.power) == (None, None)


def test_a_slope_has_no_power_with_fewer_days_than_its_gate_asks() -> None:
    for rule, need in zip(PROTOCOL.gates, needs(PROTOCOL), strict=True):
        if rule.gate != "kappa":
            continue
        for days in (rule.days, rule.days - 1):
            given = sizes(50, days=days, lane=0, lane_days=0)
            (one,) = (
                p
                for p in gate_powers(PROTOCOL, given)
                if (p.gate, p.level) == ("kappa", rule.level)
            )
            assert (one.power == 0.0) == (days < rule.days)
        spent = rule.days - 1.5
        assert need.true == min(2 * max((rule.required or 0.0) * spent, RULES.gain_min), 0.5)


def test_beyond_ten_million_is_not_twelve_million() -> None:
    margin = 0.5 * stats.norm.ppf(PROTOCOL.statistics.power)
    assert instances(0.6 + margin / np.sqrt(12e6), 0.5, 0.6, PROTOCOL) is None
    assert instances(0.6 + margin / np.sqrt(8e6), 0.5, 0.6, PROTOCOL) is not None


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_an_alpha_of_nothing_or_all_is_refused(alpha):
    with pytest.raises(ScoringError, match="must lie in"):
        equivalence_tasks(0.3, 0.1, alpha, 0.8)


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_a_margin_of_nothing_or_all_is_refused(margin):
    with pytest.raises(ScoringError, match="must lie in"):
        equivalence_tasks(0.3, margin, 0.05, 0.8)


def test_what_a_plan_names_no_tasks_for_counts_none() -> None:
    """No axis but A has tasks: the core, the tools and every other axis have 0."""
    given = sizes(0, days=0, lane_days=0)
    given = msgspec.structs.replace(given, tasks={"A": 50})
    for rule, one in zip(PROTOCOL.gates, gate_powers(PROTOCOL, given), strict=True):
        if rule.gate in ("tools", "core") or (rule.gate == "axis" and rule.of != "A"):
            assert (one.planned, one.power) == (0, 0.0)
        elif rule.gate == "axis":
            assert one.planned == 50
            assert one.power


def test_the_families_are_those_of_g_alone() -> None:
    given = sizes(0, families=50)
    for rule, one in zip(PROTOCOL.gates, gate_powers(PROTOCOL, given), strict=True):
        if rule.gate == "axis":
            assert one.planned == (50 if rule.of == "G" else 0)
