"""The protocol: every published number that judging reads, in one TOML file.

`load` validates and names the bad field, its value and the rule. The digest is the SHA-256 of the
file's bytes; reports under different digests are not comparable.

Source: `docs/scoring.md#protocol`.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

import msgspec

from owa_bench.errors import ProtocolError
from owa_bench.records.toml import TomlRecord, decode

Symbol = Literal["A", "G", "P", "M", "T", "R", "S", "E", "W", "$"]
SYMBOLS: tuple[Symbol, ...] = get_args(Symbol)
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
_SUM_ERROR = 1e-9  # how far weights that sum to 1 may be off
Hex = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]


class Quality(TomlRecord, frozen=True, kw_only=True):
    """The forecast's share l of Q and the price of a hint in minutes."""

    forecast_share: Share
    minutes_per_hint: Amount


class DriftLaw(TomlRecord, frozen=True, kw_only=True):
    """Magnitudes that T integrates over, and the one called mild."""

    magnitudes: tuple[Share, ...]
    mild: Share


class Admissibility(TomlRecord, frozen=True, kw_only=True):
    """Requirements on a battery that may give a level."""

    family_min: Count
    depth_share: Share
    oracle_min: Share
    floor_max: Share


class Generality(TomlRecord, frozen=True, kw_only=True):
    """Thresholds on a family's mean quality; `families` is keyed "suite/family"."""

    threshold: Share
    families: Mapping[str, Share] = {}

    def of(self, family: str) -> float:
        """Return the threshold of `family`."""
        return self.families.get(family, self.threshold)


class Memory(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis M."""

    recall_at: Count
    half_life_days: Positive
    full_encoding: Share
    lags_min: Count
    longest_lag_days: Positive
    items_min: Count
    retrieval_days: Positive
    span_start: Count
    span_accuracy: Share
    span_trials: Count
    delayed_days: Positive


class Tools(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis T: C0, and on how many instances a kind must succeed."""

    size_prior: Count
    distinct_instances: Count


class SelfRevision(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis R: R0, tasks a set, weights of propose, implement, validate.

    Gates read R from `clusters_min` campaigns of different instances on; protocols before
    `default-5` do not name it.
    """

    full_gain: Positive
    set_min: Count
    stage_weights: tuple[Amount, Amount, Amount]
    clusters_min: Count = 8


class Sociality(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis S."""

    penalty: Amount
    loop_turns: Count
    collapse_turns: Count
    near_bits: Annotated[int, msgspec.Meta(ge=0, le=16)]
    chatter_floor: Amount
    room_min: Positive
    control_share: Share


class Embodiment(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis E; the last two are not in protocols before `default-4`."""

    near_miss: Amount
    minor: Amount
    major: Amount
    exposure_hours_min: Positive
    gate_hours_min: Positive = 145.0
    reliability_min: Share = 0.2


class WorldModel(TomlRecord, frozen=True, kw_only=True):
    """Constants of axis W and the reference p of each class, keyed "suite/class"."""

    base_rate: tuple[Share, Share]
    class_min: Count
    guard: Positive
    references: Mapping[str, Share]


class ExpertRates(TomlRecord, frozen=True, kw_only=True):
    """An expert's rates: characters read and typed a minute, minutes a decision by suite.

    A suite that is not named takes `other`.
    """

    reading: Positive
    typing: Positive
    decision: Mapping[str, Positive]


class Economics(TomlRecord, frozen=True, kw_only=True):
    """Anchors of axis $ as multiples of the expert's tasks per USD.

    Below `success_share` of successful episodes the axis falls in proportion. Older protocols price
    an action of H_t at `expert_minutes` and have no rates.
    """

    high: Positive
    low: Positive
    success_share: Positive
    expert: ExpertRates | None = None
    expert_minutes: Positive | None = None


class Anchor(TomlRecord, frozen=True, kw_only=True):
    """Bounds of a calibration map; "oracle" is the oracle's own raw statistic."""

    low: float
    high: float | Literal["oracle", "expert"]


class Index(TomlRecord, frozen=True, kw_only=True):
    """Weights of the index and the jaggedness exponent."""

    weights: Mapping[Symbol, Amount]
    dynamic_without: tuple[Symbol, ...]
    core: tuple[Symbol, ...]
    gamma: Amount
    anchor_change: Share


class Improvement(TomlRecord, frozen=True, kw_only=True):
    """Constants of kappa, its links and its windows.

    The gate of kappa asks for a gain of `gain_min` in all, over the last `gain_days` mornings;
    protocols before `default-5` name neither.
    """

    kappa_min: Positive
    checkpoints_min: Count
    curvature_days_min: Count
    family_min: Count
    unit_share: Positive
    practice_min: Count
    alpha: Share
    link_clip: Positive
    curvature_max: Amount
    saturated: Share
    link: Literal["logit", "surprisal"]
    step: Positive
    gain_min: Share = 0.02
    gain_days: Annotated[int, msgspec.Meta(ge=2)] = 4


class Telemetry(TomlRecord, frozen=True, kw_only=True):
    """Constants of the continuous score, rate escape and the innovation index."""

    weights: tuple[Amount, Amount, Amount]
    rate_sharpness: Positive
    rate_reference: Positive
    bend_sharpness: Positive
    bend_reference: Positive
    rate_normaliser: Positive
    escape_power: Annotated[float, msgspec.Meta(ge=0, lt=1)]
    tools_a_month: Positive
    revisions_a_month: Positive


class Projects(TomlRecord, frozen=True, kw_only=True):
    """Which suite holds projects of days, and how many must be delivered."""

    suite: str
    delivered: Share


class Closures(TomlRecord, frozen=True, kw_only=True):
    """Constants of the maintenance and expansion closures."""

    rho: Share
    days: Count
    drift_bite: Share
    power_min: Share
    gain_lost: Share
    sustained_days: Count
    sustained_loss: Share


class Frontier(TomlRecord, frozen=True, kw_only=True):
    """k_max as a share of the horizon H_t, and s of deleg(s)."""

    interventions_share: Positive
    success_share: Share


class Norms(TomlRecord, frozen=True, kw_only=True):
    """Provisional absolutes until human norms replace them.

    A norms file replaces a threshold with figures of `persons_min` persons; nobody acts faster than
    `step_s_min` seconds an action. `measured` names what was replaced and `synthetic` says that
    programs played; no file holds these two. `experts` maps "suite/family" to the mean quality of
    experts and its standard error, clustered by expert; `expert_counts` says how many experts there
    were.
    """

    span: Positive
    delayed_recall: Share
    core: Share
    provisional: bool
    experts_min: Count
    experts: Mapping[str, tuple[Share, Positive]] = {}
    expert_counts: Mapping[str, Count] = {}
    persons_min: Count | None = None
    step_s_min: Positive | None = None
    rater_alpha_min: Share | None = None
    measured: tuple[str, ...] = ()
    synthetic: bool = False


class Levels(TomlRecord, frozen=True, kw_only=True):
    """Words of AAI-0: G and P at most `automation_max`, success under mild drift BELOW."""

    automation_max: Share


class Statistics(TomlRecord, frozen=True, kw_only=True):
    """How intervals are drawn and when they warn.

    `below_level` is the level of the upper bound by which a gate says BELOW; protocols before
    `default-5` do not hold it.
    """

    level: Share
    uncovered: tuple[str, ...]
    warn_family: Count
    gate_level: Share
    gate_slack: Share
    gate_decimals: Count
    below_level: Share = 0.9967
    power: Share
    power_margin: Share


class Stopping(TomlRecord, frozen=True, kw_only=True):
    """When a run stops: this share of an agent's attempts failed through the harness.

    At least `failures_min` attempts must have failed.
    """

    failure_share: Share
    failures_min: Count


class GateRule(TomlRecord, frozen=True, kw_only=True):
    """One line of the gate table; what the fields mean is the gate's business.

    `gate` names the plug-in that reads it, `of` the axis, closure or closures meant, `count` how
    many (tools, families), `days` for how long.
    """

    level: Annotated[int, msgspec.Meta(ge=1, le=4)]
    gate: str
    of: str = ""
    required: float | None = None
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    days: Annotated[int, msgspec.Meta(ge=0)] = 0
    numbers: Mapping[str, float] = {}


class Superhuman(TomlRecord, frozen=True, kw_only=True):
    """AAI-5."""

    z: Positive
    lead: Amount
    coverage: Share
    sociality: Share
    embodiment: Share
    sociality_alone: Share
    economics: Share
    innovation: Share
    link_steps: Count


class Robotics(TomlRecord, frozen=True, kw_only=True):
    """The robotics annex: weights and the numbers of its gates."""

    weights: Mapping[Symbol, Amount]
    gates: Mapping[str, Mapping[str, float]]


class Protocol(TomlRecord, frozen=True, kw_only=True):
    """Every number of the score that a publisher may set, by section.

    `references` names the shipped agents of each suite that bound S and E; protocols before
    `default-4` name none.
    """

    schema: Literal["owa-protocol-1"]
    name: str
    price_card: Hex
    quality: Quality
    drift: DriftLaw
    admissibility: Admissibility
    generality: Generality
    memory: Memory
    tools: Tools
    revision: SelfRevision
    sociality: Sociality
    embodiment: Embodiment
    world_model: WorldModel
    economics: Economics
    anchors: Mapping[Symbol, Anchor]
    index: Index
    improvement: Improvement
    telemetry: Telemetry
    projects: Projects
    closures: Closures
    frontier: Frontier
    norms: Norms
    levels: Levels
    statistics: Statistics
    gates: tuple[GateRule, ...]
    superhuman: Superhuman
    robotics: Robotics
    references: Mapping[str, tuple[str, ...]] = {}
    stopping: Stopping | None = None


def load(data: bytes) -> Protocol:
    """Return the protocol that TOML bytes hold; ProtocolError names a bad field."""
    protocol = decode(data, Protocol)
    _check_drift(protocol)
    _check_anchors(protocol)
    _check_weights(protocol)
    _check_gates(protocol)
    _check_references(protocol.world_model)
    made = protocol.norms.measured or protocol.norms.synthetic
    _check(not made, "norms.measured", made, "must be left to `report --norms`")
    return protocol


def _check(holds: bool, field: str, value: Any, rule: str) -> None:
    if not holds:
        raise ProtocolError(field, value, rule)


def _check_drift(protocol: Protocol) -> None:
    grid, mild = protocol.drift.magnitudes, protocol.drift.mild
    ends = len(grid) >= 2 and grid[0] == 0.0 and grid[-1] == 1.0
    _check(ends, "drift.magnitudes", grid, "must run from 0 to 1")
    rises = all(a < b for a, b in pairwise(grid))
    _check(rises, "drift.magnitudes", grid, "must rise")
    _check(mild in grid, "drift.mild", mild, f"must be one of {grid}")


def _check_anchors(protocol: Protocol) -> None:
    for symbol in SYMBOLS:
        anchor = protocol.anchors.get(symbol)
        if anchor is None:
            rule = "must be given; a run is judged by its own copy of the protocol"
            raise ProtocolError(f"anchors.{symbol}", None, rule)
        low, high = anchor.low, anchor.high
        above = isinstance(high, str) or high > low
        _check(above, f"anchors.{symbol}.high", high, f"must be above {low}")
    low, high = protocol.economics.low, protocol.economics.high
    _check(high > low, "economics.high", high, "must be above economics.low")


def _check_references(rules: WorldModel) -> None:
    low, high = rules.base_rate
    _check(low < high, "world_model.base_rate", [low, high], "must rise")
    for kind, p in rules.references.items():
        rule = f"must lie in world_model.base_rate, [{low}, {high}]"
        _check(low <= p <= high, f"world_model.references.{kind}", p, rule)


def _check_weights(protocol: Protocol) -> None:
    index, robotics = protocol.index.weights, protocol.robotics.weights
    stages, blend = protocol.revision.stage_weights, protocol.telemetry.weights
    rule = "must hold a weight above 0"
    _check(sum(index.values()) > 0, "index.weights", dict(index), rule)
    _check(sum(robotics.values()) > 0, "robotics.weights", dict(robotics), rule)
    _check(abs(sum(blend) - 1) <= _SUM_ERROR, "telemetry.weights", blend, "must sum to 1")
    _check(sum(stages) > 0, "revision.stage_weights", stages, rule)


def _check_gates(protocol: Protocol) -> None:
    levels = {rule.level for rule in protocol.gates}
    for level in (1, 2, 3, 4):
        _check(level in levels, "gates", level, "must hold a gate for levels 1 to 4")
    for i, rule in enumerate(protocol.gates):
        if rule.gate == "axis":
            names = f"must be one of {', '.join(SYMBOLS)}"
            _check(rule.of in SYMBOLS, f"gates.{i}.of", rule.of, names)
            given = rule.required is not None
            _check(given, f"gates.{i}.required", None, "must be given")
    _check_below(protocol)


def _check_below(protocol: Protocol) -> None:
    """Refuse a `below_level` at which a level's gates say BELOW too often for nothing.

    Each line is a test, and so is each of the numbers that it holds beside.
    """
    tests = Counter[int]()
    for rule in protocol.gates:
        tests[rule.level] += 1 + len(rule.numbers)
    rules, most = protocol.statistics, max(tests.values())
    least = 1 - (1 - rules.gate_level) / most
    _check(
        rules.below_level >= least - _SUM_ERROR,
        "statistics.below_level",
        rules.below_level,
        f"must be at least {least:.6g}, 1 - (1 - gate_level) / {most} tests of one level",
    )
