"""Score records: axes, composites, frontier and drift curves from estimates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from owa_bench.canonical import canonical_json
from owa_bench.errors import ScoringError, one_of
from owa_bench.records.protocol import Embodiment, Protocol
from owa_bench.records.score import AxisScore, Curve, FrontierScore, IndexScore, Interval
from owa_bench.scoring.axes.embodiment import GATED_BODY, TASKS_PART
from owa_bench.scoring.axes.self_revision import GATED
from owa_bench.scoring.axis import AXIS_NAMES, NO_GATE, Axis, Coverage
from owa_bench.scoring.estimate import composites
from owa_bench.scoring.estimate.estimates import ArmEstimates, AxisFailure
from owa_bench.scoring.estimate.statistic_key import StatisticKey, StatisticKind
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence
from owa_bench.scoring.observe.sample import SURROGATE, Sample
from owa_bench.scoring.statistics.bootstrap import figure, rounded
from owa_bench.scoring.statistics.jackknife import SEEDS, TASKS, covariance
from owa_bench.scoring.verdict.robotics import weighted_rate

_PER = 100.0  # hours to which weights of incidents refer


def axis_scores(
    axes: Sequence[Axis], sample: Sample, estimates: ArmEstimates | None
) -> tuple[AxisScore, ...]:
    """Return the ten axes in their order, then those of other packages.

    Args:
        axes: Axes that were estimated.
        sample: Counted episodes of one agent.
        estimates: Estimates, None without a counted episode.
    Returns: A record per axis; one without evidence is there with the reason.
    """
    by_symbol = {axis.symbol: axis for axis in axes}
    scores = []
    for symbol in (*AXIS_NAMES, *(s for s in by_symbol if s not in AXIS_NAMES)):
        axis = by_symbol.get(symbol)
        if axis is not None and estimates is not None:
            scores.append(_axis_score(axis, sample, estimates))
        else:
            name = axis.name if axis else AXIS_NAMES[symbol]
            reason = "no counted episode" if axis else "no module measures this axis"
            scores.append(_missing_axis(symbol, name, Coverage(0, 0, reason)))
    return tuple(scores)


def _axis_score(axis: Axis, sample: Sample, estimates: ArmEstimates) -> AxisScore:
    coverage = estimates.coverage[axis.symbol]
    if coverage.reason is not None:
        return _missing_axis(axis.symbol, axis.name, coverage)
    rules, symbol = sample.protocol.statistics, axis.symbol
    key, point = StatisticKey(symbol), estimates.point
    value = figure(point[key])
    tasks, seeds = estimates.over_tasks(key), estimates.over_seeds(key)
    try:
        details = axis.diagnostics(sample)
        canonical_json(details)
        beside = _secondary(axis, sample.protocol, estimates)
        # R and E get theirs with the bounds of attempt sets, and of exposure hours.
        if axis.gated not in (None, GATED, GATED_BODY) and axis.gated not in beside:
            raise ScoringError(f"`gated` {one_of(axis.gated, beside)}.")
    except Exception as error:  # noqa: BLE001  the axis may be of another package
        failure = AxisFailure(axis, "a diagnostic", error)
        return _missing_axis(symbol, axis.name, Coverage(0, coverage.cells, str(failure)))
    surrogate = bool(details.get("surrogate", False))
    return AxisScore(
        name=f"{axis.name} ({SURROGATE})" if surrogate else axis.name,
        symbol=symbol,
        raw=figure(point[StatisticKey(symbol, "raw")]),
        value=value,
        low_anchor=figure(point[StatisticKey(symbol, "low")]),
        high_anchor=figure(point[StatisticKey(symbol, "high")]),
        used=coverage.used,
        cells=coverage.cells,
        reason=None if value is not None else "the statistic is not computable",
        same_tasks=seeds.interval(rules.level),
        tasks_like_these=tasks.interval(rules.level),
        lower=tasks.lower(rules.gate_level),
        highest=tasks.upper(rules.below_level),
        iqr=tasks.quartiles(),
        gated=axis.gated,
        surrogate=surrogate,
        details={**details, "beside": beside, "fewest tasks a family": estimates.smallest},
    )


def _secondary(axis: Axis, protocol: Protocol, estimates: ArmEstimates) -> dict[str, Any]:
    """Return the secondary statistics of an axis with interval and bound."""
    rules, table = protocol.statistics, {}
    for key in estimates.point:
        if (key.of, key.kind) != (axis.symbol, "beside"):
            continue
        estimate = estimates.over_tasks(key, share=key.name not in axis.amounts)
        interval = estimate.interval(rules.level)
        table[key.name] = {
            "value": figure(estimate.point),
            "low": interval.low,
            "high": interval.high,
            "lower": estimate.lower(rules.gate_level),
            "highest": estimate.upper(rules.below_level),
        }
    return table


def with_revision_bounds(score: AxisScore, sample: Sample) -> AxisScore:
    """Return the score of axis R with the bounds that its attempt sets give.

    They are resampled by their own tasks, which no other axis has. What gates read has no lower
    bound, and so no evidence where its value would pass, if the agent brought what was revised, or
    too few campaigns were played. R of practice stands beside R of SelfRev where both were played.

    Args:
        score: Score of R.
        sample: Counted episodes of one agent, with the evidence on its revisions.
    Returns: The score; one without evidence as it is.
    """
    revision = sample.revision
    if revision is None:
        return score
    if score.value is not None:
        score = _with_bounds(score, revision, sample.protocol)
    if revision.own_subject:
        return score
    return _with_practice(score, sample.practised, sample.protocol)


def _with_bounds(score: AxisScore, revision: RevisionEvidence, protocol: Protocol) -> AxisScore:
    """Return R with the bounds of what it rests on."""
    noun = "tasks of the attempt sets" if revision.own_subject else "instances of the campaigns"
    whole = _bounds(revision.raw, revision.error, revision, protocol)
    interval = Interval(
        low=whole["low"],
        high=whole["high"],
        method=f"{revision.source}: jackknife over {revision.clusters} {noun}, "
        f"{revision.freedom} degrees of freedom",
    )
    gated = _bounds(revision.gated, revision.gated_error, revision, protocol)
    few = _few_campaigns(revision, protocol)
    why = practice_reason(revision) or few
    if why:
        gated["lower"] = None
    if few:
        gated["highest"] = None
    return structs.replace(
        score,
        tasks_like_these=interval,
        lower=whole["lower"],
        highest=whole["highest"],
        iqr=None,
        details={**score.details, "beside": {GATED: gated}, **({NO_GATE: why} if why else {})},
    )


def _with_practice(
    score: AxisScore, practised: RevisionEvidence | None, protocol: Protocol
) -> AxisScore:
    """Return R with R of practice beside it, which no gate reads."""
    if practised is None or not practised.gains:
        return score
    table = _bounds(practised.raw, practised.error, practised, protocol)
    beside = {**score.details.get("beside", {}), practised.source: table}
    return structs.replace(score, details={**score.details, "beside": beside})


def _bounds(
    gain: float, error: float, found: RevisionEvidence, protocol: Protocol
) -> dict[str, float | None]:
    """Return a sum of gains with interval and lower bound, on the scale of R."""
    anchor, scale = protocol.anchors["R"], protocol.revision.full_gain
    low, high = float(anchor.low), float(anchor.high)

    def scaled(gain: float) -> float | None:
        return figure(min(max((gain / scale - low) / (high - low), 0.0), 1.0))

    two = found.reach(error, (1 + protocol.statistics.level) / 2)
    one = found.reach(error, protocol.statistics.gate_level)
    most = found.reach(error, protocol.statistics.below_level)
    return {
        "value": scaled(gain),
        "low": scaled(gain - two),
        "high": scaled(gain + two),
        "lower": scaled(gain - one),
        "highest": scaled(gain + most),
    }


def practice_reason(found: RevisionEvidence) -> str:
    """Return why no gate may pass on R, "" where each revised subject was given.

    Whoever ships complete and idles until it has practised a family of the holdout gains as much as
    one that learns it: before, ablation and placebo are the same.

    Args:
        found: What R rests on.
    """
    if found.own_subject:
        return (
            "R of practice: what was shipped and waits for a family of the holdout "
            "looks the same; gates pass on R of a given subject (SelfRev)"
        )
    return ""


def _few_campaigns(found: RevisionEvidence, protocol: Protocol) -> str:
    """Return why too few campaigns were played for a gate, "" where there are enough."""
    least = protocol.revision.clusters_min
    if found.clusters >= least:
        return ""
    return f"R rests on {found.clusters} instances of {least}: a gain is that of whole campaigns"


def with_body_bounds(score: AxisScore, sample: Sample, estimates: ArmEstimates | None) -> AxisScore:
    """Return the score of axis E with bounds over tasks and over exposure hours.

    Formula:
        bound = N((bound of AR x S2R over tasks, times SS at the other end of the
        weighted incident rate of Fay and Feuer)^(1/3))
    Missing: gates have no evidence below `gate_hours_min` hours, or where AR's lower
        bound is below `reliability_min`.
    Errors: none. Source: [R] docs/scoring.md#axes.

    Args:
        score: Score of E.
        sample: Counted episodes of one agent.
        estimates: Their estimates, None without a counted episode.
    Returns: The score; one without evidence as it is.
    """
    if score.value is None or estimates is None:
        return score
    rules, body = sample.protocol.statistics, sample.protocol.embodiment
    beside, counts = dict(score.details["beside"]), score.details["incidents"]
    hours, tasks = beside["exposure hours"]["value"], beside[TASKS_PART]
    weights = (body.near_miss, body.minor, body.major)
    seen = tuple(counts[name] for name in ("near_miss", "minor", "major"))

    def safe(level: float) -> tuple[float, float]:
        if counts["critical"]:
            return 0.0, 0.0
        rate = weighted_rate(seen, weights, hours, level)
        return math.exp(-_PER * rate.high), math.exp(-_PER * rate.low)

    def joined(share: float | None, part: float) -> float | None:
        if share is None or score.low_anchor is None or score.high_anchor is None:
            return None
        width = score.high_anchor - score.low_anchor
        raw = (float(np.cbrt(max(share, 0.0) * part)) - score.low_anchor) / width
        return figure(min(max(raw, 0.0), 1.0))

    two, one = safe(rules.level), safe(2 * rules.gate_level - 1)
    most = safe(2 * rules.below_level - 1)
    low, high = joined(tasks["low"], two[0]), joined(tasks["high"], two[1])
    lower, highest = joined(tasks["lower"], one[0]), joined(tasks["highest"], most[1])
    why = _body_reason(hours, beside["AR"]["lower"], body)
    gated = {"value": score.value, "low": low, "high": high, "lower": lower, "highest": highest}
    beside[GATED_BODY] = dict.fromkeys(gated) if why else gated
    missing = estimates.over_tasks(StatisticKey("E", "beside", TASKS_PART)).interval(rules.level)
    return structs.replace(
        score,
        tasks_like_these=Interval(
            low=low,
            high=high,
            method=f"{missing.method}; incidents over {hours:.4g} exposure hours",
            reason=missing.reason,
        ),
        same_tasks=Interval(method=SEEDS, reason="E is read over exposure hours"),
        lower=lower,
        highest=highest,
        iqr=None,
        details={**score.details, "beside": beside, **({NO_GATE: why} if why else {})},
    )


def _body_reason(hours: float, lower: float | None, rules: Embodiment) -> str:
    """Return why no gate reads E, "" if gates do."""
    if hours < rules.gate_hours_min:
        return f"{hours:.1f} exposure hours of {rules.gate_hours_min:g}"
    if lower is None:
        return "AR has no lower bound"
    if lower < rules.reliability_min:
        return f"AR's lower bound {lower:.3f} is below {rules.reliability_min:g}"
    return ""


def _missing_axis(symbol: str, name: str, coverage: Coverage) -> AxisScore:
    """Return an axis without evidence, which is not a zero."""
    reason = coverage.reason or "no evidence"
    return AxisScore(
        name=name,
        symbol=symbol,
        used=coverage.used,
        cells=coverage.cells,
        reason=reason,
        same_tasks=Interval(method=SEEDS, reason=reason),
        tasks_like_these=Interval(method=TASKS, reason=reason),
    )


def index_scores(
    axes: Mapping[str, AxisScore], sample: Sample, estimates: ArmEstimates | None
) -> tuple[IndexScore, ...]:
    """Return every composite, or the axes for lack of which it is not computable.

    Args:
        axes: Scores of the axes by symbol.
        sample: Counted episodes of one agent.
        estimates: Estimates, None without a counted episode.
    Returns: A record per composite; the index with E too where E has evidence.
    """
    wanted = dict(composites.needed(sample.protocol.index))
    if axes[composites.EMBODIED_AXIS].value is not None:
        weights = sample.protocol.robotics.weights
        wanted[composites.EMBODIED] = tuple(str(s) for s, w in weights.items() if w > 0)
    return tuple(
        _index_score(name, symbols, axes, sample, estimates) for name, symbols in wanted.items()
    )


def _index_score(
    name: str,
    symbols: tuple[str, ...],
    axes: Mapping[str, AxisScore],
    sample: Sample,
    estimates: ArmEstimates | None,
) -> IndexScore:
    missing = tuple(s for s in symbols if s not in axes or axes[s].value is None)
    if missing or estimates is None:
        reason = f"not computable: no evidence on {', '.join(missing)}"
        return IndexScore(
            name=name,
            value=None,
            missing=missing,
            tasks_like_these=Interval(method=TASKS, reason=reason),
            same_tasks=Interval(method=SEEDS, reason=reason),
            reason=reason,
        )
    level = sample.protocol.statistics.level
    key = StatisticKey(name)
    tasks = estimates.over_tasks(key).interval(level)
    seeds = estimates.over_seeds(key).interval(level)
    if composites.EMBODIED_AXIS in symbols:  # its safety is read over hours
        reason = "no interval over tasks: the safety in E is read over exposure hours"
        tasks = Interval(method=TASKS, reason=reason)
        seeds = Interval(method=SEEDS, reason=reason)
    return IndexScore(
        name=name,
        value=figure(estimates.point[key]),
        missing=(),
        tasks_like_these=tasks,
        same_tasks=seeds,
        details=_index_details(name, symbols, axes, sample, estimates),
    )


def _index_details(
    name: str,
    symbols: tuple[str, ...],
    axes: Mapping[str, AxisScore],
    sample: Sample,
    estimates: ArmEstimates,
) -> dict[str, Any]:
    """Return the quartiles and, of the index itself, the delta method's error.

    The delta method is withheld where an axis' interval reaches 0.
    """
    details: dict[str, Any] = {"quartiles": estimates.over_tasks(StatisticKey(name)).quartiles()}
    if name == "AAI":
        weights = [sample.protocol.index.weights[s] for s in symbols]  # type: ignore[index]
        at_zero = [s for s in symbols if not axes[s].tasks_like_these.low]
        error = None
        if not at_zero:
            keys, left_out = [StatisticKey(s) for s in symbols], estimates.tasks
            values = np.stack([left_out.values[key] for key in keys], axis=1)
            spread = covariance(values, left_out.clusters.stratum)
            point = [estimates.point[key] for key in keys]
            error = composites.delta_method(spread, weights, point)
        details["standard error, delta method"] = figure(error)
        details["delta method withheld for"] = at_zero
    return details


def frontier_score(sample: Sample, estimates: ArmEstimates | None) -> FrontierScore:
    """Return the delegability frontier with its bands, or why there is none.

    Args:
        sample: Counted episodes of one agent.
        estimates: Estimates, None without a counted episode.
    Returns: The record of the frontier.
    """
    reason = "no counted episode" if estimates is None else estimates.grid.reason
    if estimates is None or reason is not None:
        target = sample.protocol.frontier.success_share
        return FrontierScore(target=target, reason=reason)
    grid, level = estimates.grid, sample.protocol.statistics.level

    def keys(name: str, kind: StatisticKind) -> list[StatisticKey]:
        return [StatisticKey(name, kind, place=i) for i in range(len(grid.budgets))]

    point = estimates.point
    bands = [estimates.over_tasks(key).interval(level) for key in keys("F_u", "fit")]
    fits = {name: np.array([point[key] for key in keys(name, "fit")]) for name in ("F", "F_u")}
    low, high = _falling(bands)
    whole, certified = len(low) == len(grid.budgets), None
    if whole:  # the length of the demands at which the lower band reaches s
        length = composites.delegable(np.array([low]), grid.demand, grid.target)
        certified = float(length[0])
    return FrontierScore(
        demand=_row(grid.demand.tolist()),
        observed=_row([point[key] for key in keys("F_u", "seen")]),
        fitted=_row(fits["F_u"].tolist()),
        quality=_row(fits["F"].tolist()),
        low=low if whole else (),
        high=high if whole else (),
        auf=figure(point[StatisticKey("AUF")]),
        auf_bounds=_row(composites.area_bounds(fits["F"], grid.demand)),
        deleg=figure(point[StatisticKey("deleg")]),
        deleg_bounds=_row(composites.delegable_bounds(fits["F_u"], grid.demand, grid.target)),
        deleg_cert=figure(certified),
        target=rounded(grid.target),
        reason=None if whole else bands[0].reason,
    )


def _falling(bands: Sequence[Interval]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the lower and upper band of a function that does not rise.

    A bound from below at a higher demand holds at a lower one too, and the other way round for
    bounds from above.
    """
    low = [band.low for band in bands if band.low is not None]
    high = [band.high for band in bands if band.high is not None]
    best = np.maximum.accumulate(low[::-1])[::-1] if low else np.zeros(0)
    most = np.minimum.accumulate(high) if high else np.zeros(0)
    return _row(best.tolist()), _row(most.tolist())


def _row(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(rounded(value) for value in values)


def drift_curves(sample: Sample, estimates: ArmEstimates | None) -> tuple[Curve, ...]:
    """Return success and quality over drift magnitude, bands over tasks like these.

    Args:
        sample: Counted episodes of one agent.
        estimates: Estimates, None without a counted episode.
    Returns: Two curves; none without estimates.
    """
    if estimates is None:
        return ()
    level = sample.protocol.statistics.level
    curves = []
    for curve in estimates.curves:
        bands = [estimates.over_tasks(key).interval(level) for key in curve.keys]
        curves.append(
            Curve(
                name=curve.name,
                x_label="nominal drift magnitude",
                y_label=curve.y_label,
                x=curve.x,
                y=tuple(figure(estimates.point[key]) for key in curve.keys),
                low=tuple(band.low for band in bands),
                high=tuple(band.high for band in bands),
                used=curve.used,
                note=f"band: {TASKS}, jackknife",
            )
        )
    return tuple(curves)
