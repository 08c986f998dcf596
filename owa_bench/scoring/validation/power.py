"""Power: instances that each gate needs before an able agent passes it."""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.plan import SampleSizes
from owa_bench.records.protocol import GateRule, Improvement, Protocol
from owa_bench.scoring.closures.maintenance import kept_share
from owa_bench.scoring.statistics.distributions import normal_quantile, normal_share, t_quantile
from owa_bench.seeding import stream

_SHARES = ("axis", "tools", "core", "project", "cognitive")
_MOST = 10**7  # instances beyond which a gate is called out of reach
_ROUNDS = 2_000  # simulated campaigns of maintenance
_KEPT_LEVEL = 0.82  # mean quality of their lanes, as in benchmarks/gate_passes.py


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

    def enough(n: int) -> bool:
        chance = chance_to_pass(
            true, spread / math.sqrt(n), required, rules.gate_slack, rules.gate_level
        )
        return chance >= rules.power

    if spread <= 0:
        return 1
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
    spread = worst_spread(need.true)
    if not spread:
        return 1.0
    rules = protocol.statistics
    return chance_to_pass(
        need.true, spread / math.sqrt(planned), need.required, rules.gate_slack, rules.gate_level
    )


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
    "R": "windows of self-revision",
    "$": "tasks; $ moves with the logarithm of cost, n is an upper bound",
    "core": "tasks, if the four axes moved together",
    "cognitive": "retrieval probes",
    "project": "projects",
    "expert cost": "projects",
}


def level_power(protocol: Protocol, level: int, tasks: int, margin: float | None = None) -> float:
    """Return the chance that independent share gates up to a level all pass.

    Args:
        protocol: Published numbers.
        level: Level of the scale.
        tasks: Instances per gate.
        margin: True value less the threshold; by default the protocol's.
    Returns: The product of the gates' chances.
    """
    rules = protocol.statistics
    step = rules.power_margin if margin is None else margin
    chance = 1.0
    for rule in protocol.gates:
        if rule.level > level or rule.gate not in _SHARES:
            continue
        required = _required(rule, protocol)
        true = min(required + step, 1.0)
        error = worst_spread(true) / math.sqrt(tasks)
        if error > 0:
            chance *= chance_to_pass(true, error, required, rules.gate_slack, rules.gate_level)
    return float(np.clip(chance, 0.0, 1.0))
