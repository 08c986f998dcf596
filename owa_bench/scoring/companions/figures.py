"""Figures of the companion measures, as matplotlib figures; the caller saves them."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from owa_bench.errors import ScoringError
from owa_bench.scoring.companions.aiq.complexity import Complexity
from owa_bench.scoring.companions.aiq.space import Space, coordinates
from owa_bench.scoring.companions.entropy_decay.curve import Point
from owa_bench.scoring.companions.generality.curve import Generality
from owa_bench.scoring.companions.generality.population import isometrics
from owa_bench.scoring.companions.intelligence_test.exponent import Likelihood
from owa_bench.scoring.companions.intelligence_test.failures import Failures, tail
from owa_bench.scoring.companions.trials import Curves

_REGIONS = (  # exponents, colour, name: the seed's figure 1
    (0.0, 2.0, "#d9d9d9", "Limited"),
    (2.0, 3.0, "#c7e9c0", "Capable"),
    (3.0, 12.0, "#fff3b0", "Autonomous"),
)


def capability_spread(agents: Mapping[str, Generality]) -> Figure:
    """Return the plane of capability and spread with its three isometrics."""
    if not agents:
        raise ScoringError("`agents` is empty: there is nothing to draw.")
    figure, axes = _sheet("capability", "spread (lower is more general)")
    lines = isometrics(next(iter(agents.values())).largest)
    axes.plot(lines.capability, lines.general, ":", color="green", label="gamma = 1")
    axes.plot(lines.capability, lines.constant, ":", color="blue", label="gamma = 0")
    axes.plot(lines.capability, lines.abstruse, ":", color="red", label="gamma = -1")
    for name, one in agents.items():
        axes.plot(one.capability, one.spread, "o", color="black", markersize=4)
        if len(agents) <= 30:
            axes.annotate(
                name,
                (one.capability, one.spread),
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=8,
            )
    axes.legend(fontsize=8)
    return figure


def failure_regions(
    failures: Failures, found: Likelihood, *, title: str = ""
) -> Figure:
    """Return frequencies of failure counts over the regions of the three levels."""
    figure, axes = _sheet("failures before success", "probability")
    seen = tail(failures, 1.0)
    if not seen.values.size:
        raise ScoringError(
            "`failures` holds no count of 1 or more: nothing can be drawn on logs."
        )
    shares = seen.weights / failures.counts.size
    x = np.geomspace(1.0, max(10.0, float(seen.values[-1])), 100)
    top = float(shares[0])
    low = min(float(shares.min()) / 3.0, top * 1e-3)
    for least, most, colour, name in _REGIONS:
        axes.fill_between(
            x,
            np.maximum(top * x**-most, low),
            np.maximum(top * x**-least, low),
            color=colour,
            label=name,
            linewidth=0,
        )
    axes.plot(seen.values, shares, "o", color="tab:blue", markersize=3)
    if np.isfinite(found.alpha):
        kept = x >= found.start
        at = shares[np.searchsorted(seen.values, found.start)]
        axes.plot(
            x[kept],
            np.maximum(at * (x[kept] / found.start) ** -found.alpha, low),
            color="tab:red",
            label=f"alpha = {found.alpha:.2f}",
        )
    axes.set(xscale="log", yscale="log", ylim=(low, top * 2.0), title=title)
    axes.legend(fontsize=8)
    return figure


def decay_curves(curves: Mapping[str, Sequence[Point]]) -> Figure:
    """Return U over context length, a line a model, with intervals where known."""
    figure, axes = _sheet(
        "context length k (tokens)", "U, share of the marginal entropy"
    )
    for name, points in curves.items():
        ks = [point.length for point in points]
        values = np.array([point.uncertainty for point in points])
        ends = np.array([(point.span.low, point.span.high) for point in points])
        line = axes.plot(ks, values, "o-", markersize=4, label=name)[0]
        axes.fill_between(ks, ends[:, 0], ends[:, 1], alpha=0.2, color=line.get_color())
    axes.set(xscale="log", ylim=(0.0, 1.02))
    axes.legend(fontsize=8)
    return figure


def intelligence_space(
    domains: Sequence[str],
    complexities: Sequence[Complexity],
    dissimilarities: np.typing.NDArray[np.float64] | None,
    suite: Space | None,
) -> Figure:
    """Return complexities and, where known, distances, dimensions and points."""
    figure = Figure(figsize=(10, 8), layout="constrained")
    _complexities(figure.add_subplot(2, 2, 1), domains, complexities)
    if dissimilarities is not None:
        _heat_map(figure.add_subplot(2, 2, 2), domains, dissimilarities)
    if suite is not None:
        _dimensions(figure.add_subplot(2, 2, 3), suite)
        _points(figure, domains, suite)
    return figure


def _complexities(
    axes: Axes, domains: Sequence[str], complexities: Sequence[Complexity]
) -> None:
    values = np.array([one.value for one in complexities])
    ends = np.array([(one.span.low, one.span.high) for one in complexities]).T
    errors = np.nan_to_num(np.abs(ends - values))
    axes.bar(range(len(domains)), values, yerr=errors, capsize=3, color="tab:blue")
    axes.set_xticks(range(len(domains)), domains, rotation=45, ha="right", fontsize=8)
    axes.set(ylabel="complexity (parameters)", title="MCCP complexity")


def _heat_map(
    axes: Axes, domains: Sequence[str], dissimilarities: np.typing.NDArray[np.float64]
) -> None:
    axes.imshow(dissimilarities, cmap="viridis")
    axes.set_xticks(range(len(domains)), domains, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(domains)), domains, fontsize=8)
    half = float(dissimilarities.max()) / 2.0
    for i, j in np.ndindex(dissimilarities.shape):
        shown = f"{dissimilarities[i, j]:.2f}"
        ink = "black" if dissimilarities[i, j] > half else "white"
        axes.text(j, i, shown, ha="center", va="center", color=ink, fontsize=7)
    axes.set(title="dissimilarity")


def _dimensions(axes: Axes, suite: Space) -> None:
    colours = [
        "tab:blue" if i < suite.dimension else "lightgrey"
        for i in range(suite.held.size)
    ]
    axes.bar(range(1, suite.held.size + 1), suite.held, color=colours)
    axes.set(
        xlabel="dimension",
        ylabel="share of squared singular values",
        title=f"effective dimension {suite.dimension}",
    )


def _points(figure: Figure, domains: Sequence[str], suite: Space) -> None:
    axes = figure.add_subplot(2, 2, 4, projection="3d")
    for name, place in zip(domains, coordinates(suite), strict=True):
        axes.plot(*zip(np.zeros(3), place, strict=True), "o-", markersize=3)
        axes.text(*place, name, fontsize=8)
    axes.set(title="intelligence space, first three dimensions")


_FEW, _ACROSS = 3, 5  # agents of one panel; panels side by side
_SINCE, _QUALITY = "episodes since the novelty came in", "mean quality"


def novelty_curves(curves: Sequence[Curves]) -> Figure:
    """Return mean quality around the introduction of a novelty.

    Few agents share one panel; of many, each has its own, with its band and the first
    agent's line in grey, as lines that lie on each other could not be told apart.
    """
    if not curves:
        raise ScoringError("`curves` is empty: there is no whole trial to draw.")
    if len(curves) > _FEW:
        return _panels(curves)
    figure, axes = _sheet(_SINCE, _QUALITY)
    for one in curves:
        _curve(axes, one)
    axes.axvline(-0.5, color="black", linestyle=":", linewidth=1)
    axes.set_ylim(0.0, 1.05)
    axes.legend(fontsize=8)
    return figure


def _panels(curves: Sequence[Curves]) -> Figure:
    """Return a panel an agent, all of one scale."""
    rows = -(-len(curves) // _ACROSS)
    size = (1.9 * _ACROSS, 1.7 * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    cells = figure.subplots(rows, _ACROSS, sharex=True, sharey=True, squeeze=False)
    first = curves[0]
    for axes in cells.flat[len(curves) :]:
        axes.set_visible(False)
    for axes, one in zip(cells.flat, curves, strict=False):
        axes.plot(first.offsets, first.mean, color="grey", linewidth=1, linestyle="--")
        _curve(axes, one)
        axes.axvline(-0.5, color="black", linestyle=":", linewidth=1)
        axes.set_ylim(0.0, 1.05)
        axes.set_title(one.arm, fontsize=8)
        axes.tick_params(labelsize=7)
    figure.supxlabel(f"{_SINCE} (dashed: {first.arm})", fontsize=8)
    figure.supylabel(_QUALITY, fontsize=8)
    return figure


def _curve(axes: Axes, one: Curves) -> None:
    """Draw an agent's mean and its interval."""
    (line,) = axes.plot(one.offsets, one.mean, ".-", label=one.arm, linewidth=1)
    colour = line.get_color()
    axes.fill_between(one.offsets, one.low, one.high, color=colour, alpha=0.15, lw=0)


def _sheet(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes
