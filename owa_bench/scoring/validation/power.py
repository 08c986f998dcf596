"""Power: instances that each gate needs before an able agent passes it."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from owa_bench.errors import ScoringError
from owa_bench.records.plan import SampleSizes
from owa_bench.records.protocol import GateRule, Improvement, Protocol
from owa_bench.scoring.axis import AXIS_NAMES
from owa_bench.scoring.closures.maintenance import kept_share
from owa_bench.scoring.statistics.distributions import normal_quantile, normal_share, t_quantile
from owa_bench.seeding import stream

_SHARES = ("axis", "tools", "core", "project", "cognitive")
_OWN_BOUND = ("R", "S")  # axes whose gates do not count tasks of a share
_BAR_STEP = 1e-9
_MOST = 10**7  # instances beyond which a gate is called out of reach
_ROUNDS = 2_000  # simulated campaigns of maintenance
_KEPT_LEVEL = 0.82  # mean quality of their lanes, as in benchmarks/gate_passes.py
# Printed by benchmarks/gate_spreads.py.
_CAMPAIGN_GAIN = 0.426  # E[g^2] / E[g], g the gain of a SelfRev campaign that adopts what helps
_ALONE = 0.395  # C_1* of MultiCrew: the best reference alone


class Need(NamedTuple):
    """Instances that a gate needs for the protocol's power; None: not decided by n."""

    level: int
    gate: str
    required: float | None
    true: float | None
    instances: int | None
    note: str


class GatePower(NamedTuple):
    """A gate's chance to pass an able agent with what a plan gives it; None: unknown.

    An able agent is `true` where the gate asks for `required`; `planned` counts what
    `Need.instances` counts.
    """

    level: int
    gate: str
    required: float | None
    true: float | None
    planned: int | None
    power: float | None


class LevelPower(NamedTuple):
    """An able agent's chance to reach a level: the product over its gates, as if independent.

    `gates` counts those in the product, `left_out` names those whose power is not known.
    """

    level: int
    power: float
    gates: int
    left_out: tuple[str, ...]

    def words(self) -> str:
        """Return the line that is printed.

        >>> LevelPower(2, 0.0952, 9, ("cognitive", "assurance")).words()
        'AAI-2: 0.095 over 9 gates; not in it: cognitive, assurance'
        """
        beside = f"; not in it: {', '.join(self.left_out)}" if self.left_out else ""
        return f"AAI-{self.level}: {self.power:.3f} over {self.gates} gates{beside}"


def chance_to_pass(
    true: float, error: float, required: float, slack: float, gate_level: float
) -> float:
    """Return the probability that a gate passes, normal approximation.

    Formula:
        PASS iff x >= required and x - z se >= required - slack, x ~ N(true, se)
        P = Phi((true - max(required, required - slack + z se)) / se)
    Shapes: scalars. Units: shares. Missing: none.
    Errors: ScoringError unless the error is above 0.
    Source: [D] docs/scoring.md#gates.

    >>> chance_to_pass(0.65, 0.0402, 0.60, 0.05, 0.95) > 0.79
    True
    """
    if not error > 0:
        raise ScoringError(f"A standard error must be above 0, got {error}.")
    z = normal_quantile(gate_level)
    bar = max(required, required - slack + z * error)
    return normal_share((true - bar) / error)


def instances(true: float, spread: float, required: float, protocol: Protocol) -> int | None:
    """Return the least n at which a gate has the protocol's power.

    Args:
        true: True value of the statistic.
        spread: Standard deviation of one instance; the error is spread / sqrt(n).
        required: Threshold of the gate.
        protocol: Published numbers.
    Returns: A count, None beyond 10^7.
    """
    rules = protocol.statistics

    def chance(n: int) -> float:
        return chance_to_pass(
            true, spread / math.sqrt(n), required, rules.gate_slack, rules.gate_level
        )

    return _least_count(chance, rules.power) if spread > 0 else 1


def _least_count(chance: Callable[[int], float], power: float) -> int | None:
    """Return the least n whose chance is at least the power, None beyond 10^7."""

    def enough(n: int) -> bool:
        return chance(n) >= power

    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def worst_spread(true: float) -> float:
    """Return the largest standard deviation of a value in [0, 1] with this mean.

    >>> worst_spread(0.5)
    0.5
    """
    if not 0 <= true <= 1:
        raise ScoringError(f"A share must lie in [0, 1], got {true}.")
    return math.sqrt(true * (1 - true))


def revision_spread(true: float, full_gain: float) -> float:
    """Return the standard deviation of R among instances of SelfRev.

    Formula:
        sqrt(R (R_a - R)), R_a = E[g^2] / E[g] / R0: in a share of the instances the agent
        adopts all that helps there, with a gain of g, in the others nothing; R is the
        mean of g over all, on R0; R_a at least 1
    Shapes: scalars; `full_gain` is R0. Units: R.
    Missing: harm, which widens it, and stages left out, which narrow it.
    Errors: none. Source: [D] docs/scoring.md#gates.
    """
    adopted = max(_CAMPAIGN_GAIN / full_gain, 1.0)
    return math.sqrt(true * (adopted - true))


def crew_spread(true: float) -> float:
    """Return the standard deviation of a task's part in S_net.

    Formula:
        sqrt(S (1 - S) / (1 - C_1*)): tasks of value 0 or 1, the crew solves what one role
        solves and a share S of the rest; a task moves (C_m - C_1*) / (1 - C_1*) by
        (q_m - (1 - S) q_1) / (1 - C_1*)
    Shapes: scalars. Units: S.
    Missing: faults, and controls that differ from each other by task.
    Errors: ScoringError unless S lies in [0, 1]. Source: [D] docs/scoring.md#gates.
    """
    return worst_spread(true) / math.sqrt(1 - _ALONE)


def bound_chance(
    true: float, count: int, required: float, statistic: str, protocol: Protocol
) -> float:
    """Return the probability that the gate on R or S passes.

    Formula:
        Phi((true - bar) / se(true)), se(x) = sd(x) / sqrt(n), bar the least x from
        `required` on whose own lower bound is required - slack or more:
        R: x - t se(x); S: logit^-1(logit x - t se(x) / (x (1 - x))), t on n - 1
        sd by `revision_spread` and `crew_spread`
    Shapes: scalars; `statistic` is "R" or "S". Units: shares.
    Missing: 0 for a count below two, of R below `clusters_min`. Errors: none.
    Source: [D] docs/scoring.md#gates; the bounds docs/scoring.md#intervals.
    """
    rules, logit = protocol.statistics, statistic == "S"
    if count < _fewest(statistic, protocol):
        return 0.0
    t, floor = t_quantile(rules.gate_level, count - 1), required - rules.gate_slack

    def error(x: float) -> float:
        spread = crew_spread(x) if logit else revision_spread(x, protocol.revision.full_gain)
        return spread / math.sqrt(count)

    def reaches(x: float) -> bool:
        if floor <= 0:
            return True
        if not logit or x >= 1:
            return x - t * error(x) >= floor
        gap = math.log(x / (1 - x)) - math.log(floor / (1 - floor))
        return gap >= t * error(x) / (x * (1 - x))

    low, bar = required, 1.0
    if reaches(low):
        bar = low
    while bar - low > _BAR_STEP:
        middle = (low + bar) / 2
        low, bar = (low, middle) if reaches(middle) else (middle, bar)
    spread = error(true)
    return normal_share((true - bar) / spread) if spread else float(true >= bar)


def gain_instances(gain: float, rules: Improvement, power: float) -> int | None:
    """Return the instances of a checkpoint at which the gate of kappa sees a gain.

    Formula:
        the least n with `gain_power` >= power: e = sqrt(.5 / (n days)) at most
        gain / (z_power + t sqrt(2)) and (gain - least) / z_power
    Shapes: scalars. Units: capability.
    Missing: None where the gain is not above the least. Errors: none.
    Source: docs/scoring.md#kappa [R].
    """
    if gain <= rules.gain_min:
        return None
    z, reach = normal_quantile(power), _gain_reach(rules)
    error = min(gain / (z + reach), (gain - rules.gain_min) / z)
    return max(math.ceil(0.5 / (rules.gain_days * error**2)), 2)


def gain_power(gain: float, instances: int, rules: Improvement) -> float:
    """Return the chance that the gate of kappa sees a gain over the frozen control.

    Formula:
        Phi((gain - max(t sqrt(2) e, least)) / e), e = sqrt(.5 / (instances days)), the error
        of the difference of two lanes of 0 or 1 drawn apart on the last mornings; the
        test adds the errors over days and over tasks, which counts e twice; t on
        days - 1 at the protocol's alpha
    Shapes: scalars; instances of a checkpoint. Units: capability.
    Missing: days without shocks of their own are assumed. Errors: ScoringError below
        two instances.
    Source: docs/scoring.md#kappa [R].
    """
    if instances < 2:
        raise ScoringError(f"A gain needs two instances, got {instances}.")
    error = math.sqrt(0.5 / (instances * rules.gain_days))
    bar = max(_gain_reach(rules) * error, rules.gain_min)
    return normal_share((gain - bar) / error)


def _gain_reach(rules: Improvement) -> float:
    return t_quantile(1 - rules.alpha, rules.gain_days - 1) * math.sqrt(2)


def maintenance_power(days: int, tasks: int, protocol: Protocol) -> float:
    """Return how often maintenance passes for an agent that keeps everything.

    Simulated: tasks of value 0 or 1, the same ones every day and drawn apart, days without shocks
    of their own.

    Args:
        days: Days with both lanes.
        tasks: Tasks of a lane.
        protocol: Published numbers.
    Returns: The share of 2,000 simulated campaigns.
    """
    rules = protocol.closures
    if days < max(rules.days, 2) or tasks < 2:
        return 0.0
    rng = stream(0, "power", "maintenance", days, tasks)
    drifted, clean = rng.binomial(tasks, _KEPT_LEVEL, (2, _ROUNDS, days)) / tasks
    level = protocol.statistics.gate_level
    variance = _KEPT_LEVEL * (1 - _KEPT_LEVEL) / (tasks * days)  # of a lane's mean
    share = kept_share(
        drifted,
        clean,
        0.0,
        rules.rho,
        level,
        error=math.sqrt(2 * variance) / _KEPT_LEVEL,
        freedom=tasks - 1,
    )
    return float(share.passes(rules.rho).mean())


def gate_powers(
    protocol: Protocol, sizes: SampleSizes, *, units_a_day: float = 1.0
) -> tuple[GatePower, ...]:
    """Return what chance a plan gives an able agent at every line of the gate table.

    Args:
        protocol: Published numbers.
        sizes: What the plan gives the gates to read.
        units_a_day: Kappa units that the agent spends a day.
    Returns: A record per line, in the protocol's order.
    """
    upkeep = maintenance_power(sizes.lane_days, sizes.lane, protocol)
    return tuple(_gate_power(rule, protocol, sizes, units_a_day, upkeep) for rule in protocol.gates)


def equal_sizes(protocol: Protocol, tasks: int) -> SampleSizes:
    """Return sizes that give every gate as many tasks, on as many days as any gate asks.

    Args:
        protocol: Published numbers.
        tasks: Tasks of an axis, families, projects, episodes of a family-day, tasks of a lane.
    """
    days = max((rule.days for rule in protocol.gates), default=0)
    return SampleSizes(
        tasks=dict.fromkeys(AXIS_NAMES, tasks),
        families=tasks,
        projects=tasks,
        family_day=tasks,
        days=days,
        lane=tasks,
        lane_days=days,
    )


def level_powers(protocol: Protocol, powers: Sequence[GatePower]) -> tuple[LevelPower, ...]:
    """Return an able agent's chance to reach each level.

    Formula:
        product of the gates' powers up to the level, of the lines on one statistic that
        with the greatest requirement: who passes it passes the others
    Shapes: one power a line of the gate table, in the protocol's order. Units: shares.
    Missing: gates without a power are left out and named; gates are taken as
        independent, though they read the same episodes in part.
    Errors: ScoringError unless there is one power a line.
    Source: [D] docs/scoring.md#gates.
    """
    if len(powers) != len(protocol.gates):
        raise ScoringError(f"{len(powers)} powers for {len(protocol.gates)} lines.")
    lines = list(zip(protocol.gates, powers, strict=True))
    found = []
    for level in sorted({rule.level for rule in protocol.gates}):
        hardest: dict[str, GatePower] = {}
        for rule, one in lines:
            name = rule.of if rule.gate in ("axis", "closure") else rule.gate
            other = hardest.get(name)
            if rule.level <= level and (other is None or _harder(one, other)):
                hardest[name] = one
        known = [one.power for one in hardest.values() if one.power is not None]
        unknown = tuple(name for name, one in hardest.items() if one.power is None)
        found.append(LevelPower(level, math.prod(known), len(known), unknown))
    return tuple(found)


def _harder(one: GatePower, other: GatePower) -> bool:
    return (one.required or 0.0, one.level) >= (other.required or 0.0, other.level)


def _gate_power(
    rule: GateRule, protocol: Protocol, sizes: SampleSizes, units_a_day: float, upkeep: float
) -> GatePower:
    need = _need(rule, protocol, units_a_day)
    planned: int | None = None
    power: float | None = None
    if rule.gate == "kappa" and need.true is not None:
        planned, power, kappa = sizes.family_day, 0.0, protocol.improvement
        if planned > 1 and sizes.days >= rule.days:
            gain = _able_gain(rule, kappa, sizes.days, units_a_day)
            need, power = need._replace(true=gain), gain_power(gain, planned, kappa)
    elif rule.gate == "closure" and need.gate == "maintenance":
        planned = sizes.lane
        power = upkeep
    elif rule.gate in _SHARES and rule.gate != "cognitive":
        planned = _planned_count(rule, protocol, sizes)
        power = _share_power(need, planned, protocol)
    return GatePower(need.level, need.gate, need.required, need.true, planned, power)


def _planned_count(rule: GateRule, protocol: Protocol, sizes: SampleSizes) -> int:
    """Return what a share gate counts."""
    if rule.gate == "project":
        return sizes.projects
    if rule.gate == "tools":
        return sizes.tasks.get("T", 0)
    if rule.gate == "core":
        return min(sizes.tasks.get(symbol, 0) for symbol in protocol.index.core)
    return sizes.families if rule.of == "G" else sizes.tasks.get(rule.of, 0)


def _share_power(need: Need, planned: int, protocol: Protocol) -> float:
    if need.true is None or need.required is None or not planned:
        return 0.0
    if need.gate in _OWN_BOUND:
        return bound_chance(need.true, planned, need.required, need.gate, protocol)
    spread = worst_spread(need.true)
    if not spread:
        return 1.0
    rules = protocol.statistics
    return chance_to_pass(
        need.true, spread / math.sqrt(planned), need.required, rules.gate_slack, rules.gate_level
    )


def _fewest(statistic: str, protocol: Protocol) -> int:
    """Return the count below which the gate on R or S has no evidence."""
    return max(protocol.revision.clusters_min, 2) if statistic == "R" else 2


def equivalence_tasks(spread: float, margin: float, alpha: float, power: float) -> int:
    """Return the tasks at which two one-sided tests show that a change is no change.

    Formula:
        n = ((z_(1 - alpha) + z_((1 + power) / 2)) sd / margin)^2, true change 0
        at least ln(alpha) / ln(1 - margin): what flat tasks need
    Shapes: scalars. Units: `spread` is the standard deviation of one task's part.
    Missing: none. Errors: ScoringError unless margin and alpha lie in (0, 1).
    Source: [R] Schuirmann (1987), normal approximation.

    >>> equivalence_tasks(0.0, 0.1, 0.05, 0.8), equivalence_tasks(0.3, 0.1, 0.05, 0.8)
    (29, 78)
    """
    if not (0 < margin < 1 and 0 < alpha < 1):
        raise ScoringError(f"Margin and alpha must lie in (0, 1): {margin}, {alpha}.")
    reach = normal_quantile(1 - alpha) + normal_quantile((1 + power) / 2)
    flat = math.log(alpha) / math.log(1 - margin)
    return math.ceil(max((reach * spread / margin) ** 2, flat))


def needs(protocol: Protocol, *, units_a_day: float = 1.0) -> tuple[Need, ...]:
    """Return every line of the gate table with the n that it needs.

    Args:
        protocol: Published numbers.
        units_a_day: Kappa units that the agent spends a day.
    Returns: A record per line.
    """
    return tuple(_need(rule, protocol, units_a_day) for rule in protocol.gates)


def _need(rule: GateRule, protocol: Protocol, units_a_day: float) -> Need:
    rules = protocol.statistics
    label = rule.of or rule.gate
    if rule.gate == "kappa":
        kappa = protocol.improvement
        gain = _able_gain(rule, kappa, rule.days, units_a_day)
        note = (
            f"instances a checkpoint and family, at twice the gain that {units_a_day:g} kappa "
            f"units a day over {rule.days} days must bring, or twice the least"
        )
        count = gain_instances(gain, kappa, rules.power)
        return Need(rule.level, "kappa", rule.required, gain, count, note)
    if rule.gate not in _SHARES:
        return Need(rule.level, label, rule.required, None, None, _WHY[rule.gate])
    required = _required(rule, protocol)
    true = min(required + rules.power_margin, 1.0)
    if label in _OWN_BOUND:
        least = _least_count(
            lambda n: bound_chance(true, n, required, label, protocol), rules.power
        )
    else:
        least = instances(true, worst_spread(true), required, protocol)
    note = _NOTES.get(label, "tasks of value 0 or 1 (widest spread)")
    return Need(rule.level, label, required, true, least, note)


def _able_gain(rule: GateRule, rules: Improvement, days: int, units_a_day: float) -> float:
    """Return twice the gain that must be there on the last of so many days, at most .5."""
    spent = units_a_day * (days - (rules.gain_days - 1) / 2)
    return min(2 * max((rule.required or 0.0) * spent, rules.gain_min), 0.5)


def _required(rule: GateRule, protocol: Protocol) -> float:
    if rule.gate == "core":
        return protocol.norms.core
    if rule.gate == "project":
        return protocol.projects.delivered
    if rule.gate == "cognitive":
        return rule.numbers.get("vrp", 0.0)
    return rule.required or 0.0


_WHY = {
    "closure": "decided by its own test: see the simulated rates in docs/measures.md",
    "assurance": "no sampling: a rung is reached or not",
    "norms": "instances a family are the requirement itself",
}
_NOTES = {
    "G": "families: a share of few families is coarse, its n counts families",
    "M": "families, medians: n is a guide only",
    "R": "instances of SelfRev; in a share of them the agent adopts all that helps",
    "S": "tasks of value 0 or 1; the crew solves what one role solves",
    "$": "tasks; $ moves with the logarithm of cost, n is an upper bound",
    "core": "tasks, if the four axes moved together",
    "cognitive": "retrieval probes",
    "project": "projects",
    "expert cost": "projects",
}
