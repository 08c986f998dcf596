"""Crosswalk: the ten broad abilities of CHC beside the axes of AAI.

A domain is measured where the run played families that test it; vision, hearing, speed and quantity
have none.

Source: AAI paper, section 4.5, table 2.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.records.score import AxisScore, CellTable
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.task_means import interval_columns, mean_over_tasks

TITLE = "AAI axes beside CHC domains"
_HIGH = 0.5  # [D] of T, $ and of a domain: at or above is high, below is weak


class Domain(NamedTuple):
    """A CHC domain: the axes closest to it, and the families that test it here."""

    symbol: str
    name: str
    axes: tuple[str, ...]
    families: tuple[str, ...] = ()


DOMAINS = (
    Domain("Gc", "knowledge", ("G", "W"), ("recall/literacy",)),
    Domain("Grw", "reading and writing", ("G",), ("recall/literacy",)),
    Domain("Gf", "fluid reasoning", ("P", "W", "A"), ("recall/reasoning", "recall/counterfactual")),
    Domain("Gwm", "working memory", ("P", "M", "A"), ("recall/working_memory", "recall/n_back")),
    Domain("Gls", "long-term storage", ("M",), ("recall/learning", "recall/spaced")),
    Domain("Glr", "long-term retrieval", ("M", "W"), ("recall/retrieval",)),
    Domain("Gq", "quantity", ("G",)),
    Domain("Gv", "visual processing", ("G",)),
    Domain("Ga", "auditory processing", ("G",)),
    Domain("Gs", "processing speed", ()),
)
_COLUMNS = ("domain", "ability", "tasks", *interval_columns("quality"), "AAI axes")


def crosswalk_table(sample: Sample, axes: Mapping[str, AxisScore]) -> CellTable:
    """Return the quality in each CHC domain beside the axes closest to it.

    Formula:
        mean Q over the episodes that axes read, of the domain's families
    Shapes: a row a domain. Units: quality in [0, 1].
    Missing: a domain whose families were not played has no figure; "not covered" where
        no suite tests it. Errors: none.
    Source: AAI paper, section 4.5, table 2; which family tests what [D] docs/recall.md.
    """
    base = sample.table.take(sample.base)
    means: dict[str, float] = {}
    rows: list[tuple[str | float | int | None, ...]] = []
    for domain in DOMAINS:
        rows_of = np.isin(base.family, domain.families)
        beside = ", ".join(_axis(symbol, axes) for symbol in domain.axes) or "none"
        head = (domain.symbol, domain.name)
        if not domain.families:
            rows.append((*head, "not covered", None, None, None, beside))
        elif not rows_of.any():
            rows.append((*head, 0, None, None, None, beside))
        else:
            tasks = base.pair[rows_of]
            quality = mean_over_tasks(base.q[rows_of], tasks)
            means[domain.symbol] = quality[0] or 0.0
            rows.append((*head, len(set(tasks.tolist())), *quality, beside))
    return CellTable(TITLE, _COLUMNS, tuple(rows), _note(means, axes))


def _axis(symbol: str, axes: Mapping[str, AxisScore]) -> str:
    value = axes[symbol].value
    return f"{symbol} {'no evidence' if value is None else f'{value:.3f}'}"


def _note(means: Mapping[str, float], axes: Mapping[str, AxisScore]) -> str:
    """Return the discrepancies that the paper asks for, in words.

    They are high tool or economic axes beside weak storage or retrieval, and the converse.
    """
    seen = []
    for symbol in ("T", "$"):
        value = axes[symbol].value
        for domain in ("Gls", "Glr"):
            if value is None or domain not in means:
                continue
            if (value >= _HIGH) != (means[domain] >= _HIGH):
                ends = ("high", "weak") if value >= _HIGH else ("weak", "high")
                seen.append(
                    f"{ends[0]} {symbol} ({value:.3f}) beside {ends[1]} {domain} "
                    f"({means[domain]:.3f})"
                )
    words = "; ".join(seen) if seen else "none seen"
    if not {"Gls", "Glr"} & set(means):
        words = "not computable: no family of storage or retrieval was played"
    return (
        "CHC says what a system can think, AAI what it can be relied on to do. "
        f"Discrepancies between T or $ and Gls or Glr, at {_HIGH:g}: {words}. "
        "Correlations over systems need twenty reports."
    )
