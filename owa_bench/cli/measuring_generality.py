"""`owa-bench measure generality`."""

from pathlib import Path

import numpy as np

from owa_bench import seeding
from owa_bench.cli import measuring
from owa_bench.cli.console import OUT, as_json, table
from owa_bench.cli.measuring import DataFile, Pivot
from owa_bench.cli.options import AsJson, option
from owa_bench.errors import FieldError, UsageError
from owa_bench.measures.generality import difficulty, measure
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics.arrays import IntervalEstimate

CASES = ("intrinsic", "Opp", "ARef", "Rnk", "DRef", "IRT", "FA")


@measuring.blames("file")
def measure_generality(
    file: Path = measuring.DataPath,
    cases: str = option(
        "intrinsic",
        "Where difficulty comes from: intrinsic (column `difficulty`), or the "
        "responses: Opp, ARef, Rnk, DRef, IRT. FA gives loadings only.",
        "--difficulty",
    ),
    reference: str | None = option(None, "Agents that ARef (one) or DRef (some) measure against."),
    count: int = option(5, "Ranks or quantiles of Rnk and DRef.", min=1, max=1000),
    figure: Path | None = measuring.FigurePath,
    resamples: int = measuring.resamples_option(1000),
    seed: int = measuring.Seed,
    json: bool = AsJson,
) -> None:
    """Capability, spread and generality of each agent.

    Reads a long table with columns `agent`, `item`, `response` from 0 to 1 and `difficulty` (one
    per item). A response that is not there is missing, not 0.

    An agent that solves everything up to a difficulty and nothing beyond has gamma 1; one whose
    success has nothing to do with difficulty 0; one that solves only the hardest -1.

      owa-bench measure generality responses.csv

      owa-bench measure generality responses.csv --difficulty ARef --reference human
    """
    if cases not in CASES:
        raise FieldError("--difficulty", cases, f"must be one of {', '.join(CASES)}")
    long = DataFile(file).pivot("agent", "item", "response")
    if cases == "FA":
        _print_factor(
            long.columns, measuring.with_notes(difficulty.factor_loadings, long.table), json=json
        )
        return
    names, found = _with_difficulty(cases, file, long, reference, count)
    analyses = measure.measure(found.responses, found.difficulties)
    agents = dict(zip(names, analyses, strict=True))
    stream = seeding.stream(seed, "measure", "generality")
    law = measure.slodr(analyses, resamples=resamples, rng=stream)
    spans = {
        name: measure.interval(row, found.difficulties, resamples=resamples, rng=stream)
        for name, row in zip(names, found.responses, strict=True)
        if not np.isnan(row).all()
    }
    if figure:
        from owa_bench.measures.figures import generality_figure

        measuring.save(generality_figure(agents), figure)
    if json:
        as_json({"agents": agents, "intervals": spans, "slodr": law})
    else:
        _print(cases, agents, {name: span[2] for name, span in spans.items()}, law)


def _print(
    case: str,
    agents: dict[str, measure.GeneralityResult],
    spans: dict[str, IntervalEstimate],
    law: measure.Slodr,
) -> None:
    """Print a line per agent and one about all."""
    rows = [
        (
            name,
            measuring.number(one.capability),
            measuring.number(one.spread),
            measuring.number(one.normalised),
            measuring.interval(spans[name]) if name in spans else "",
            one.used,
            one.reason or "",
        )
        for name, one in agents.items()
    ]
    columns = ("agent", "capability", "spread", "gamma", "95% interval", "items")
    table(f"generality, difficulty: {case}", (*columns, "note"), rows)
    correlation = f"{measuring.number(law.correlation)} {measuring.interval(law.span)}"
    OUT.print(
        f"mean gamma {measuring.number(law.mean)}; correlation of gamma with "
        f"capability {correlation} (Spearman's law expects it below 0)"
        + (f": {law.reason}" if law.reason else "")
    )


def _with_difficulty(
    case: str, file: Path, long: Pivot, reference: str | None, count: int
) -> tuple[tuple[str, ...], difficulty.ItemTable]:
    """Return the agents with their responses and the difficulty of each column."""
    answers, items = long.table, np.arange(len(long.columns))
    if case in {"ARef", "DRef"}:
        return _against(case, file, long, reference, count)
    if case == "Rnk":
        return long.rows, measuring.with_notes(difficulty.ranks, answers, count=count)
    if case == "Opp":
        return long.rows, measuring.with_notes(difficulty.opponents, _matches(file, long))
    if case == "IRT":
        fitted = measuring.with_notes(difficulty.item_response, answers).shifted
        kept = ~np.isnan(fitted)
        made = difficulty.ItemTable(answers[:, kept], fitted[kept], items[kept])
        return long.rows, made
    measuring.with_notes(difficulty.warn_if_small, "GA", *answers.shape)
    hardness = _item_difficulty(file, long.columns)
    return long.rows, difficulty.ItemTable(answers, hardness, items)


def _against(
    case: str, file: Path, long: Pivot, reference: str | None, count: int
) -> tuple[tuple[str, ...], difficulty.ItemTable]:
    """Return the other agents' responses against those that are the reference."""
    named = reference.split(",") if reference else []
    if not named or not set(named) <= set(long.rows):
        held = ", ".join(long.rows[:8])
        raise FieldError(
            "--reference", reference, f"must name agents of {file} ({held}) for {case}"
        )
    own = np.array([name in named for name in long.rows])
    names = tuple(name for name in long.rows if name not in named)
    if not names:
        raise FieldError("--reference", reference, "must leave an agent to measure")
    rest, samples = long.table[~own], long.table[own]
    if case == "ARef":
        line = np.nanmean(samples, axis=0)
        return names, measuring.with_notes(difficulty.reference_agent, rest, line)
    return names, measuring.with_notes(
        difficulty.reference_distribution, rest, samples, count=count
    )


def _item_difficulty(file: Path, items: tuple[str, ...]) -> Floats:
    """Return each item's difficulty; it must be the same on all of its rows."""
    data = DataFile(file)
    values = data.numbers("difficulty")
    found = []
    groups = data.groups("item")
    for item in items:
        own = values[groups[item]]
        if own.min() != own.max():  # a difference of infinities would be NaN
            raise UsageError(
                f"{file}: column `difficulty` must be one number an item, got "
                f"{own.min():g} and {own.max():g} for item `{item}`."
            )
        found.append(float(own[0]))
    return np.array(found)


def _matches(file: Path, long: Pivot) -> Floats:
    """Return matches with rows and columns in one order."""
    if set(long.rows) != set(long.columns):
        raise UsageError(f"{file}: for Opp, column `item` must name opponents, who are agents too.")
    order = [long.columns.index(name) for name in long.rows]
    return long.table[:, order]


def _print_factor(items: tuple[str, ...], found: difficulty.FactorLoadings, *, json: bool) -> None:
    """Print loadings."""
    loadings = dict(zip(items, found.loadings.tolist(), strict=True))
    if json:
        as_json({"loadings": loadings, "share": found.share})
        return
    rows = [(item, measuring.number(x)) for item, x in loadings.items()]
    table("first factor", ("item", "loading"), rows)
    OUT.print(f"share of variance: {measuring.number(found.share)}")
