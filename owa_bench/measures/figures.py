"""Figures of the companion measures as matplotlib figures; the caller saves them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from scipy import spatial

from owa_bench.errors import ScoringError
from owa_bench.measures.aiq.complexity import Complexity
from owa_bench.measures.aiq.measure import Dissimilarities, Space, coordinates
from owa_bench.measures.entropy_decay.measure import CurvePoint
from owa_bench.measures.generality.measure import GeneralityResult, isometrics
from owa_bench.measures.intelligence_test.failures import Failures, tail
from owa_bench.measures.intelligence_test.measure import LikelihoodFit
from owa_bench.records.observables import Floats
from owa_bench.scoring.novelty.trials import QualityCurve

_SMALL = 7  # points, of letters in crowded figures
_REGIONS = (  # exponents, colour, name: figure 1 of the Intelligence Test paper
    (0.0, 2.0, "#d9d9d9", "Limited"),
    (2.0, 3.0, "#c7e9c0", "Capable"),
    (3.0, 12.0, "#fff3b0", "Autonomous"),
)
_COMPLEXITY = "MCCP complexity (parameters)"
_FEW, _ACROSS = 3, 5  # agents of one panel; panels side by side
_SINCE, _QUALITY = "episodes since the novelty came in", "mean quality"


def generality_figure(agents: Mapping[str, GeneralityResult]) -> Figure:
    """Return the plane of capability and spread with its three isometrics."""
    if not agents:
        raise ScoringError("`agents` is empty: there is nothing to draw.")
    figure, axes = _new_figure("capability", "spread (lower is more general)")
    lines = isometrics(next(iter(agents.values())).largest)
    axes.plot(lines.capability, lines.general, ":", color="green", label="gamma = 1")
    axes.plot(lines.capability, lines.constant, ":", color="blue", label="gamma = 0")
    axes.plot(lines.capability, lines.abstruse, ":", color="red", label="gamma = -1")
    for name, one in agents.items():
        at = (one.capability, one.spread)
        axes.plot(*at, "o", color="black", markersize=4)
        if len(agents) <= 30:
            axes.annotate(name, at, xytext=(4, 3), textcoords="offset points", fontsize=8)
    axes.legend(fontsize=8)
    return figure


def intelligence_test_figure(failures: Failures, fit: LikelihoodFit, *, title: str = "") -> Figure:
    """Return frequencies of failure counts over the regions of the three levels.

    Args:
        failures: the failure counts.
        fit: the exponent fitted to them.
        title: title of the figure.
    Returns: A log-log figure.
    Raises: ScoringError: there is no count of 1 or more.
    """
    figure, axes = _new_figure("failures before success", "probability")
    seen = tail(failures, 1.0)
    if not seen.values.size:
        raise ScoringError("`failures` holds no count of 1 or more: nothing can be drawn on logs.")
    shares = seen.weights / failures.counts.size
    x = np.geomspace(1.0, max(10.0, float(seen.values[-1])), 100)
    top = float(shares[0])
    low = min(float(shares.min()) / 3.0, top * 1e-3)
    for least, most, colour, name in _REGIONS:
        ends = [np.maximum(top * x**-alpha, low) for alpha in (most, least)]
        axes.fill_between(x, ends[0], ends[1], color=colour, label=name, linewidth=0)
    axes.plot(seen.values, shares, "o", color="tab:blue", markersize=3)
    if np.isfinite(fit.alpha):
        above = x[x >= fit.start]
        at = shares[np.searchsorted(seen.values, fit.start)]
        line = np.maximum(at * (above / fit.start) ** -fit.alpha, low)
        axes.plot(above, line, color="tab:red", label=f"alpha = {fit.alpha:.2f}")
    axes.set(xscale="log", yscale="log", ylim=(low, top * 2.0), title=title)
    axes.legend(fontsize=8)
    return figure


def entropy_decay_figure(curves: Mapping[str, Sequence[CurvePoint]]) -> Figure:
    """Return U over context length, a line a model, with intervals where known."""
    figure, axes = _new_figure("context length k (tokens)", "U, share of the marginal entropy")
    for name, points in curves.items():
        ks = [point.length for point in points]
        values = [point.uncertainty for point in points]
        ends = np.array([(point.span.low, point.span.high) for point in points])
        (line,) = axes.plot(ks, values, "o-", markersize=4, label=name)
        axes.fill_between(ks, *ends.T, alpha=0.2, color=line.get_color())
    axes.set(xscale="log", ylim=(0.0, 1.02))
    axes.legend(fontsize=8)
    return figure


def novelty_figure(curves: Sequence[QualityCurve]) -> Figure:
    """Return mean quality around the introduction of a novelty.

    Few agents share one panel. Of many, each has its own, with its band and the first agent's line
    in grey, since lines on top of each other could not be told apart.
    """
    if not curves:
        raise ScoringError("`curves` is empty: there is no whole trial to draw.")
    if len(curves) > _FEW:
        return _novelty_panels(curves)
    figure, axes = _new_figure(_SINCE, _QUALITY)
    for one in curves:
        _draw_quality(axes, one)
    axes.legend(fontsize=8)
    return figure


def _novelty_panels(curves: Sequence[QualityCurve]) -> Figure:
    """Return a panel an agent, all of one scale."""
    rows = -(-len(curves) // _ACROSS)
    figure = Figure(figsize=(1.9 * _ACROSS, 1.7 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, _ACROSS, sharex=True, sharey=True, squeeze=False)
    first = curves[0]
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    for axes, one in zip(panels.flat, curves, strict=False):
        axes.plot(first.offsets, first.mean, color="grey", linewidth=1, linestyle="--")
        _draw_quality(axes, one)
        axes.set_title(one.arm, fontsize=8)
        axes.tick_params(labelsize=7)
    figure.supxlabel(f"{_SINCE} (dashed: {first.arm})", fontsize=8)
    figure.supylabel(_QUALITY, fontsize=8)
    return figure


def _draw_quality(axes: Axes, one: QualityCurve) -> None:
    """Draw an agent's mean and its interval, and where the novelty came in."""
    (line,) = axes.plot(one.offsets, one.mean, ".-", label=one.arm, linewidth=1)
    colour = line.get_color()
    axes.fill_between(one.offsets, one.low, one.high, color=colour, alpha=0.15, lw=0)
    axes.axvline(-0.5, color="black", linestyle=":", linewidth=1)
    axes.set_ylim(0.0, 1.05)


def aiq_figure(
    complexities: Mapping[str, Complexity], dissimilarities: Floats | None, suite: Space | None
) -> Figure:
    """Return complexities and, where known, dissimilarities, dimensions and points.

    Args:
        complexities: complexity by domain.
        dissimilarities: (domains, domains), None where not measured.
        suite: the intelligence space, None where not measured.
    Returns: A figure of up to four panels.
    """
    figure = Figure(figsize=(10, 8), layout="constrained")
    domains, places = list(complexities), range(len(complexities))
    ticks: dict[str, Any] = {"rotation": 45, "ha": "right", "fontsize": 8}
    axes = figure.add_subplot(2, 2, 1)
    values, errors = _heights(complexities.values())
    axes.bar(places, values, yerr=errors, capsize=3, color="tab:blue")
    axes.set_xticks(places, domains, **ticks)
    axes.set(ylabel="complexity (parameters)", title="MCCP complexity")
    if dissimilarities is not None:
        axes = figure.add_subplot(2, 2, 2)
        axes.imshow(dissimilarities, cmap="viridis")
        half = float(dissimilarities.max()) / 2.0
        for (i, j), value in np.ndenumerate(dissimilarities):
            text = axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7)
            text.set_color("black" if value > half else "white")
        axes.set_xticks(places, domains, **ticks)
        axes.set_yticks(places, domains, fontsize=8)
        axes.set(title="dissimilarity")
    if suite is not None:
        _draw_dimensions(figure.add_subplot(2, 2, 3), suite)
        space: Axes3D = figure.add_subplot(2, 2, 4, projection="3d")
        for name, place in zip(domains, coordinates(suite), strict=True):
            space.plot(*([0.0, x] for x in place), "o-", markersize=3)
            space.text(*place, name, fontsize=8)
        space.set(title="intelligence space, first three dimensions")
    return figure


def _draw_dimensions(axes: Axes, suite: Space) -> None:
    numbers = range(1, suite.held.size + 1)
    colours = ["tab:blue" if i <= suite.dimension else "lightgrey" for i in numbers]
    axes.bar(numbers, suite.held, color=colours)
    title = f"effective dimension {suite.dimension}"
    axes.set(xlabel="dimension", ylabel="share of squared singular values", title=title)


def complexity_bars(complexities: Mapping[str, Complexity]) -> Figure:
    """Return the MCCP complexity of each domain (AIQ paper, figure 23)."""
    figure, axes = _new_figure("level", _COMPLEXITY, size=(7.2, 3.2))
    values, errors = _heights(complexities.values())
    axes.bar(range(len(values)), values, yerr=errors, capsize=2, color="tab:blue")
    axes.set_xticks(range(len(values)), list(complexities))
    return figure


def _heights(complexities: Collection[Complexity]) -> tuple[Floats, Floats]:
    """Return complexities (n,) and the lengths of their error bars (2, n)."""
    values = np.array([one.value for one in complexities])
    ends = np.array([(one.span.low, one.span.high) for one in complexities]).T
    return values, np.maximum(np.nan_to_num((ends - values) * [[-1.0], [1.0]]), 0.0)


def dissimilarity_map(
    domains: Sequence[str], found: Dissimilarities, *, label: str = "level"
) -> Figure:
    """Return the dissimilarities (AIQ paper, figures 14 and 24).

    Args:
        domains: names of the domains.
        found: their dissimilarities; pairs that were not measured are marked *.
        label: label of both axes.
    """
    figure, axes = _new_figure(label, label, size=(6.4, 5.6))
    image = axes.imshow(found.matrix, cmap="viridis")
    axes.set_xticks(range(len(domains)), domains)
    axes.set_yticks(range(len(domains)), domains)
    for i, j in np.argwhere(found.filled).tolist():
        axes.text(j, i, "*", ha="center", va="center", color="white", fontsize=_SMALL)
    filled = "; * from the triangle inequality" if found.filled.any() else ""
    axes.set(title=f"noise floor {found.floor:.3f}{filled}")
    figure.colorbar(image, ax=axes, label="dissimilarity")
    return figure


def dimension_bars(domains: Sequence[str], suite: Space) -> Figure:
    """Return the extent of each domain along each dimension (AIQ paper, figure 25).

    Args:
        domains: names of the domains.
        suite: their intelligence space.
    Returns: A stacked bar chart.
    """
    figure, axes = _new_figure(
        "dimension of intelligence", "sum of |coordinates| (parameters)", (7.2, 3.6)
    )
    extents = np.abs(suite.points @ suite.basis)
    floor = np.zeros(extents.shape[1])
    numbers = np.arange(1, extents.shape[1] + 1)
    for name, row, colour in zip(domains, extents, _colours(domains), strict=True):
        axes.bar(numbers, row, bottom=floor, color=colour, label=name)
        floor = floor + row
    axes.set_xticks(numbers)
    axes.set(title=f"effective dimension {suite.dimension}")
    axes.legend(fontsize=_SMALL, ncols=2, title="level", title_fontsize=_SMALL)
    return figure


def domain_points(domains: Sequence[str], suite: Space) -> Figure:
    """Return the domains in the first three dimensions (AIQ paper, figure 26).

    Args:
        domains: names of the domains.
        suite: their intelligence space.
    Returns: A 3-D figure.
    """
    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axes: Axes3D = figure.add_subplot(projection="3d")
    points = coordinates(suite)
    for name, place, colour in zip(domains, points, _colours(domains), strict=True):
        axes.plot(*([0.0, x] for x in place), color=colour, linewidth=0.6)
        axes.scatter(*place, color=colour, s=16)
        axes.text(*place, name, fontsize=_SMALL)
    axes.scatter(0.0, 0.0, 0.0, color="black", s=16)
    _label_dimensions(axes)
    return figure


def agent_hulls(suite: Space, agents: Mapping[str, Floats]) -> Figure:
    """Return the hulls of a suite and of its agents (AIQ paper, figure 27).

    Args:
        suite: the intelligence space.
        agents: performances (domains,) by name of the agent.
    Returns: One 3-D panel each.
    """
    figure = Figure(figsize=(3.4 * (len(agents) + 1), 3.6), layout="constrained")
    whole = coordinates(suite)
    panels = {"the suite": whole}
    panels |= {name: whole * good[:, None] for name, good in agents.items()}
    for i, (name, points) in enumerate(panels.items()):
        axes: Axes3D = figure.add_subplot(1, len(panels), i + 1, projection="3d")
        corners = np.vstack((points, np.zeros(3)))
        try:
            faces = spatial.ConvexHull(corners).simplices
        except spatial.QhullError:
            faces = np.empty((0, 3), dtype=np.int64)
        body = Poly3DCollection(corners[faces], alpha=0.35, edgecolor="grey")
        axes.add_collection3d(body)
        axes.scatter(*corners.T, s=6, color="black")
        limits = (axes.set_xlim, axes.set_ylim, axes.set_zlim)
        for set_limits, axis in zip(limits, whole.T, strict=True):
            low, high = min(axis.min(), 0.0), max(axis.max(), 0.0)
            set_limits(low, high if high > low else low + 1.0)
        axes.set_title(name, fontsize=9)
        _label_dimensions(axes)
    return figure


def mean_and_aiq(
    groups: Mapping[str, tuple[Sequence[str], Floats, Floats]], *, mean: str = "mean performance"
) -> Figure:
    """Return a mean beside AIQ, agent by agent (AIQ paper, figures 28 and 29).

    Args:
        groups: name to (agents, means, AIQ lengths); a group is a line.
        mean: label of the mean.
    Returns: A figure of two panels.
    """
    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, (members, means, lengths) in groups.items():
        left.plot(members, means, "o-", markersize=4, label=name)
        right.plot(members, lengths, "o-", markersize=4, label=name)
    left.set(ylabel=mean, ylim=(0.0, 1.02))
    right.set(ylabel="AIQ^(1/r) (parameters)", ylim=(0.0, None))
    for axes in (left, right):
        axes.tick_params(axis="x", labelrotation=40, labelsize=_SMALL)
        if len(groups) > 1:
            axes.set_xlabel("units a layer")
    if len(groups) > 1:
        left.legend(fontsize=_SMALL)
    return figure


def complexity_trends(trends: Mapping[str, tuple[Floats, Sequence[Complexity], Floats]]) -> Figure:
    """Return complexity and entropy against a parameter (AIQ paper, figures 7 and 8).

    Args:
        trends: name to (values, complexities with their intervals, entropies).
    Returns: A panel a parameter.
    """
    figure = Figure(figsize=(4.6 * len(trends), 3.4), layout="constrained")
    for i, (name, (x, complexities, bits)) in enumerate(trends.items()):
        axes = figure.add_subplot(1, len(trends), i + 1)
        y, errors = _heights(complexities)
        axes.errorbar(x, y, errors, fmt="x", color="black", ecolor="lightgrey")
        axes.plot(x, np.polyval(np.polyfit(x, y, 1), x), "--", color="tab:blue")
        axes.set(xlabel=name, ylabel=_COMPLEXITY, ylim=(0.0, None))
        other = axes.twinx()
        other.plot(x, bits, color="tab:red", linewidth=1)
        other.set_ylabel("entropy (bits)", color="tab:red")
    return figure


def _new_figure(
    x_label: str, y_label: str, size: tuple[float, float] = (6.4, 4.8)
) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes


def _colours(domains: Sequence[str]) -> list[tuple[float, float, float, float]]:
    return [colormaps["tab20"](i % 20) for i in range(len(domains))]


def _label_dimensions(axes: Axes3D) -> None:
    axes.set(xlabel="i1", ylabel="i2", zlabel="i3")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.label.set_fontsize(_SMALL)
    axes.tick_params(labelsize=_SMALL - 2)
