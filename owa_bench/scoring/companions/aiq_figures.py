"""Figures of a suite's intelligence space, after those of the AIQ seed, section 3.4."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from scipy import spatial

from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.aiq.complexity import Complexity
from owa_bench.scoring.companions.aiq.dissimilarity import Distances
from owa_bench.scoring.companions.aiq.space import Space, coordinates

_SMALL = 7  # points, of letters in crowded figures


def complexity_bars(
    domains: Sequence[str], complexities: Sequence[Complexity]
) -> Figure:
    """Return MCCP complexities with their intervals (the seed's figure 23)."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    values = np.array([one.value for one in complexities])
    ends = np.array([(one.span.low, one.span.high) for one in complexities]).T
    errors = np.maximum(np.nan_to_num((ends - values) * [[-1.0], [1.0]]), 0.0)
    axes.bar(range(len(domains)), values, yerr=errors, capsize=2, color="tab:blue")
    axes.set_xticks(range(len(domains)), domains)
    axes.set(xlabel="level", ylabel="MCCP complexity (parameters)")
    return figure


def dissimilarity_map(
    domains: Sequence[str], found: Distances, *, label: str = "level"
) -> Figure:
    """Return the dissimilarities (figures 14, 24); pairs not measured are marked *."""
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes = figure.add_subplot()
    drawn = axes.imshow(found.matrix, cmap="viridis")
    axes.set_xticks(range(len(domains)), domains)
    axes.set_yticks(range(len(domains)), domains)
    for i, j in np.argwhere(found.filled).tolist():
        axes.text(j, i, "*", ha="center", va="center", color="white", fontsize=_SMALL)
    filled = "; * from the triangle inequality" if found.filled.any() else ""
    axes.set(xlabel=label, ylabel=label, title=f"noise floor {found.floor:.3f}{filled}")
    figure.colorbar(drawn, ax=axes, label="dissimilarity")
    return figure


def dimension_bars(domains: Sequence[str], suite: Space) -> Figure:
    """Return how much each domain lies along each dimension (figure 25)."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.add_subplot()
    share = np.abs(suite.points @ suite.basis)
    floor = np.zeros(share.shape[1])
    numbers = np.arange(1, share.shape[1] + 1)
    colours = _colours(len(domains))
    for name, row, colour in zip(domains, share, colours, strict=True):
        axes.bar(numbers, row, bottom=floor, color=colour, label=name)
        floor = floor + row
    axes.set_xticks(numbers)
    axes.set(
        xlabel="dimension of intelligence",
        ylabel="sum of |coordinates| (parameters)",
        title=f"effective dimension {suite.dimension}",
    )
    axes.legend(fontsize=_SMALL, ncols=2, title="level", title_fontsize=_SMALL)
    return figure


def located(domains: Sequence[str], suite: Space) -> Figure:
    """Return the domains in the first three dimensions (figure 26)."""
    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axes = figure.add_subplot(projection="3d")
    points = coordinates(suite)
    for name, place, colour in zip(domains, points, _colours(len(points)), strict=True):
        axes.plot(*([0.0, x] for x in place), color=colour, linewidth=0.6)
        axes.scatter(*place, color=colour, s=16)
        axes.text(*place, name, fontsize=_SMALL)
    axes.scatter(0.0, 0.0, 0.0, color="black", s=16)
    _labels(axes)
    return figure


def hulls(suite: Space, agents: Mapping[str, Floats]) -> Figure:
    """Return the suite's hull and that of each agent in three dimensions (27)."""
    figure = Figure(figsize=(3.4 * (len(agents) + 1), 3.6), layout="constrained")
    whole = coordinates(suite)
    shown = {"the suite": whole}
    for name, good in agents.items():
        shown[name] = whole * good[:, None]
    for i, (name, points) in enumerate(shown.items()):
        axes = figure.add_subplot(1, len(shown), i + 1, projection="3d")
        corners = np.vstack((points, np.zeros(3)))
        try:
            faces = spatial.ConvexHull(corners).simplices
        except spatial.QhullError:
            faces = np.empty((0, 3), dtype=np.int64)
        body = Poly3DCollection(corners[faces], alpha=0.35, edgecolor="grey")
        axes.add_collection3d(body)
        axes.scatter(*corners.T, s=6, color="black")
        for setter, axis in zip(
            (axes.set_xlim, axes.set_ylim, axes.set_zlim), whole.T, strict=True
        ):
            low, high = min(axis.min(), 0.0), max(axis.max(), 0.0)
            setter(low, high if high > low else low + 1.0)
        axes.set_title(name, fontsize=9)
        _labels(axes)
    return figure


def mean_and_quotient(
    groups: Mapping[str, tuple[Sequence[str], Floats, Floats]],
    *,
    mean: str = "mean performance",
) -> Figure:
    """Return mean performance, or another mean, beside AIQ (figures 28 and 29).

    groups: name to (members, means, AIQ lengths); a group is a line.
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


def trends(checks: Mapping[str, tuple[Floats, Sequence[Complexity], Floats]]) -> Figure:
    """Return complexity and entropy against a parameter (figures 7 and 8).

    checks: name to (values, complexities with their intervals, entropies).
    """
    figure = Figure(figsize=(4.6 * len(checks), 3.4), layout="constrained")
    for i, (name, (values, found, bits)) in enumerate(checks.items()):
        axes = figure.add_subplot(1, len(checks), i + 1)
        heights = np.array([one.value for one in found])
        ends = np.array([(one.span.low, one.span.high) for one in found]).T
        errors = np.maximum(np.nan_to_num((ends - heights) * [[-1.0], [1.0]]), 0.0)
        axes.errorbar(
            values, heights, errors, fmt="x", color="black", ecolor="lightgrey"
        )
        line = np.polyfit(values, heights, 1)
        axes.plot(values, np.polyval(line, values), "--", color="tab:blue")
        axes.set(xlabel=name, ylabel="MCCP complexity (parameters)", ylim=(0.0, None))
        other = axes.twinx()
        other.plot(values, bits, color="tab:red", linewidth=1)
        other.set_ylabel("entropy (bits)", color="tab:red")
    return figure


def _colours(count: int) -> list[tuple[float, float, float, float]]:
    from matplotlib import colormaps

    return [colormaps["tab20"](i % 20) for i in range(count)]


def _labels(axes: Axes3D) -> None:
    axes.set_xlabel("i1", fontsize=_SMALL)
    axes.set_ylabel("i2", fontsize=_SMALL)
    axes.set_zlabel("i3", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL - 2)
