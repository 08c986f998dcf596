"""`owa-bench measure aiq`."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from owa_bench.cli import measuring, options
from owa_bench.cli.console import OUT, as_json, table
from owa_bench.cli.measuring import DataFile
from owa_bench.cli.options import AsJson, option
from owa_bench.errors import UnknownNameError, UsageError
from owa_bench.measures.aiq import complexity
from owa_bench.measures.aiq import measure as aiq
from owa_bench.records.observables import Floats

T = TypeVar("T")


class MeasuredSuite(NamedTuple):
    """Results for a suite of domains; None where no file was given for one."""

    domains: tuple[str, ...]
    complexities: tuple[complexity.Complexity, ...]
    distances: aiq.Dissimilarities | None
    points: aiq.Space | None
    agents: dict[str, aiq.AiqResult]


@measuring.blames("pool", "mixtures", "distances", "performances")
def measure_aiq(
    pool: Path = option(
        ...,
        "Trained policies: columns `domain`, `size` (parameters), `performance` in 0 "
        ".. 1, and `repeat` where pools were drawn and trained several times.",
    ),
    mixtures: Path | None = option(
        None,
        "Mixed domains: columns `first`, `second`, `p` (share of the first, 0 .. 1), "
        "`performance`; a row a retraining. Rows with first = second give the noise "
        "floor.",
    ),
    distances: Path | None = option(
        None, "Instead of --mixtures: columns `first`, `second`, `dissimilarity`."
    ),
    performances: Path | None = option(
        None, "Agents: columns `agent`, `domain`, `performance` (0 .. 1)."
    ),
    domains: str | None = option(None, "Only these of the pool's domains are the suite: 14,15,16."),
    figure: Path | None = measuring.FigurePath,
    json: bool = AsJson,
) -> None:
    """Complexity of domains, their dissimilarity, and each agent's AIQ.

    --pool alone gives MCCP complexities. With --mixtures or --distances it gives the
    intelligence space too, and with --performances the AIQ: the volume that an agent's
    points span in the effective dimension.

      owa-bench measure aiq --pool pool.csv

      owa-bench measure aiq --pool pool.csv --mixtures mixtures.csv
      --performances agents.csv --figure space.svg
    """
    if mixtures and distances:
        raise UsageError("`--mixtures` and `--distances` say the same thing: give one of them.")
    if performances and not (mixtures or distances):
        raise UsageError("`--performances` needs `--mixtures` or `--distances` for an AIQ.")
    suite = measured_suite(
        pool,
        mixtures=mixtures,
        distances=distances,
        performances=performances,
        only=tuple(options.split(domains)),
    )
    if figure:
        from owa_bench.measures.figures import aiq_figure

        matrix = suite.distances.matrix if suite.distances else None
        heights = dict(zip(suite.domains, suite.complexities, strict=True))
        drawn = aiq_figure(heights, matrix, suite.points)
        measuring.save(drawn, figure)
    if json:
        as_json(suite)
    else:
        print_suite(suite)


def measured_suite(
    pool: Path,
    *,
    mixtures: Path | None = None,
    distances: Path | None = None,
    performances: Path | None = None,
    only: tuple[str, ...] = (),
) -> MeasuredSuite:
    """Return everything that the files allow.

    Args:
        pool: file of trained policies.
        mixtures: file of retrainings on mixed domains.
        distances: file of dissimilarities, instead of mixtures.
        performances: file of the agents' performances.
        only: the suite's domains; empty: all of the pool.
    Raises: UnknownNameError: a domain is not in the pool.
    """
    data = DataFile(pool)
    sizes, good = data.numbers("size"), data.numbers("performance", missing=True)
    repeats = data.numbers("repeat") if "repeat" in data else np.zeros(len(sizes))
    found = {
        name: complexity.complexity(sizes[rows], good[rows], pools=repeats[rows])
        for name, rows in data.groups("domain").items()
    }
    whole = tuple(found)
    domains = _chosen_domains(only, whole) or whole
    heights = tuple(found[name] for name in domains)
    if mixtures:
        gaps = _mixed(DataFile(mixtures), whole)
    elif distances:
        gaps = _given_dissimilarities(DataFile(distances), whole)
    else:
        return MeasuredSuite(domains, heights, None, None, {})
    if only:
        gaps = aiq.subset(gaps, [whole.index(name) for name in domains])
    points = aiq.intelligence_space(gaps.matrix, [one.value for one in heights])
    agents = _agents(DataFile(performances), domains, points) if performances else {}
    return MeasuredSuite(domains, heights, gaps, points, agents)


def _chosen_domains(only: tuple[str, ...], whole: tuple[str, ...]) -> tuple[str, ...]:
    """Return the chosen domains, each once and in the pool."""
    for name in only:
        if name not in whole:
            raise UnknownNameError("domain of --pool", name, whole)
    return tuple(dict.fromkeys(only))


def _mixed(data: DataFile, domains: tuple[str, ...]) -> aiq.Dissimilarities:
    """Return dissimilarities from retrainings on mixtures."""
    first, second = data.names("first"), data.names("second")
    p, good = data.numbers("p"), data.numbers("performance", missing=True)
    pairs: dict[tuple[str, str], list[int]] = {}
    for i, pair in enumerate(zip(first, second, strict=True)):
        pairs.setdefault(pair, []).append(i)
    gaps = {pair: _one_mixture(p[rows], good[rows]) for pair, rows in pairs.items()}
    selves = [gap for (one, other), gap in gaps.items() if one == other]
    floor = aiq.noise_floor(selves) if selves else 0.0
    others = {pair: gap for pair, gap in gaps.items() if pair[0] != pair[1]}
    _refuse_unknown(data, others, domains)
    return aiq.dissimilarity_matrix(gap_matrix(others, domains), floor=floor)


def _one_mixture(p: Floats, good: Floats) -> float:
    """Return the dissimilarity of one pair from its rows."""
    levels, place = np.unique(p, return_inverse=True)
    most = int(np.bincount(place).max())
    table = np.full((levels.size, most), np.nan)
    for i in range(levels.size):
        values = good[place == i]
        table[i, : values.size] = values
    return aiq.dissimilarity(table, levels)


def _given_dissimilarities(data: DataFile, domains: tuple[str, ...]) -> aiq.Dissimilarities:
    """Return dissimilarities that were measured elsewhere."""
    pairs = zip(data.names("first"), data.names("second"), strict=True)
    values = data.numbers("dissimilarity").tolist()
    gaps = dict(zip(pairs, values, strict=True))
    _refuse_unknown(data, gaps, domains)
    return aiq.dissimilarity_matrix(gap_matrix(gaps, domains))


def _refuse_unknown(
    data: DataFile, pairs: Iterable[tuple[str, str]], domains: tuple[str, ...]
) -> None:
    for name in itertools.chain.from_iterable(pairs):
        if name not in domains:
            known = ", ".join(domains)
            raise UsageError(f"{data.path}: domain `{name}` is not in --pool ({known}).")


def gap_matrix(gaps: Mapping[tuple[T, T], float], domains: Sequence[T]) -> Floats:
    """Return dissimilarities of pairs as a matrix.

    Args:
        gaps: by (row's domain, column's domain).
        domains: rows and columns, in order.
    Returns: (domains, domains): where a pair has none, NaN, or 0 on the diagonal.
    """
    matrix = np.full((len(domains), len(domains)), np.nan)
    np.fill_diagonal(matrix, 0.0)
    for (one, other), gap in gaps.items():
        matrix[domains.index(one), domains.index(other)] = gap
    return matrix


def rank_agents(
    suite: MeasuredSuite, good: Mapping[str, Floats]
) -> tuple[list[str], Floats, Floats]:
    """Return agents in ascending order of AIQ.

    Args:
        suite: holds their AIQ.
        good: (domains,) performances of each.
    Returns: Names, mean performances and AIQ^(1/r), each (agents,).
    """
    names = sorted(good, key=lambda name: suite.agents[name].length)
    means = np.array([good[name].mean() for name in names])
    return names, means, np.array([suite.agents[name].length for name in names])


def _agents(
    data: DataFile, domains: tuple[str, ...], points: aiq.Space
) -> dict[str, aiq.AiqResult]:
    """Return each agent's AIQ."""
    long = data.pivot("agent", "domain", "performance")
    lacking = set(domains) - set(long.columns)
    if lacking:
        raise UsageError(f"{data.path}: no row has domain {', '.join(sorted(lacking))} of --pool.")
    order = [long.columns.index(name) for name in domains]
    found = {}
    for name, row in zip(long.rows, long.table[:, order], strict=True):
        if np.isnan(row).any():
            gap = domains[int(np.argmax(np.isnan(row)))]
            raise UsageError(f"{data.path}: agent `{name}` has no performance on domain `{gap}`.")
        found[name] = aiq.measure(points, row)
    return found


def print_suite(suite: MeasuredSuite) -> None:
    """Print complexities, dissimilarities and AIQ."""
    rows: list[tuple[Any, ...]] = []
    for name, one in zip(suite.domains, suite.complexities, strict=True):
        seen = one.how.count(complexity.OBSERVED)
        shown = measuring.number(one.value), measuring.interval(one.span)
        rows.append((name, *shown, one.used, f"{seen} of {len(one.how)}"))
    columns = ("domain", "complexity", "95% interval", "policies", "bins observed")
    table("MCCP complexity (parameters)", columns, rows)
    if suite.distances is None or suite.points is None:
        return
    floor = measuring.number(suite.distances.floor)
    table(
        "dissimilarity", ("domain", *suite.domains), _distance_rows(suite.domains, suite.distances)
    )
    OUT.print(f"~ below the noise floor {floor}; * not measured, filled in")
    OUT.print(
        f"effective dimension {suite.points.dimension}; negative eigenvalues cut: "
        f"{suite.points.cut:.1%}"
    )
    if suite.agents:
        table(
            "AIQ",
            ("agent", "volume", "volume^(1/r)", "r", "corners", "full", "note"),
            [
                (
                    name,
                    measuring.number(one.volume),
                    measuring.number(one.length),
                    one.dimension,
                    ", ".join(suite.domains[i] for i in one.corners),
                    measuring.number(one.full),
                    one.reason or "",
                )
                for name, one in suite.agents.items()
            ],
        )


def _distance_rows(domains: tuple[str, ...], found: aiq.Dissimilarities) -> list[tuple[str, ...]]:
    """Return the matrix row by row, ~ where a pair cannot be told from noise."""
    rows = []
    for i, name in enumerate(domains):
        cells = []
        for j in range(len(domains)):
            sign = "" if i == j or found.told[i, j] else "~"
            star = "*" if found.filled[i, j] else ""
            cells.append(f"{sign}{found.matrix[i, j]:.3f}{star}")
        rows.append((name, *cells))
    return rows
