"""The counterfactual: how the same checkpoints go when nothing learnt is kept."""

from collections.abc import Iterator
from typing import NamedTuple

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.score import CellTable
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.improvement.responses import Response, response
from owa_bench.scoring.improvement.window import Window


class Counterfactual(NamedTuple):
    """Slopes of an agent, of its frozen control, and of what lies between both."""

    agent: Response
    frozen: Response
    gap: Response


def counterfactual(
    name: str, spent: Floats, agent: Floats, frozen: Floats, *, least: int, level: float
) -> Counterfactual:
    """Return the slope on resources with learning, without it, and of the gap.

    Formula:
        slope of A(R), of A_frozen(R) and of A - A_frozen, each Theil-Sen on the
        *agent's* R: the control spends nothing that could move it
    Shapes: three arrays (checkpoints,). Units: per kappa unit.
    Missing: as `response`. Errors: ScoringError if the shapes differ.
    Source: [S] section 3.9 of the AAI paper (ablations that freeze self-revision and
        tool discovery); the gap [R].

    >>> import numpy as np
    >>> x = np.arange(8.0)
    >>> found = counterfactual("A", x, 0.3 + 0.02 * x, 0.3 - 0.01 * x, least=7,
    ...     level=0.95)
    >>> round(found.gap.slope.value, 6)
    0.03
    """
    if agent.shape != frozen.shape:
        raise ScoringError(
            f"A control plays the same checkpoints: {agent.shape}, {frozen.shape}."
        )

    def of(values: Floats) -> Response:
        return response(name, spent, values, None, least=least, level=level)

    return Counterfactual(of(agent), of(frozen), of(agent - frozen))


def counterfactual_table(window: Window) -> CellTable | None:
    """Return the table of every series, None where no control played along."""
    frozen = window.frozen
    if frozen is None or frozen.points.days != window.points.days:
        return None
    days, link = window.points.days, window.protocol.improvement.link
    return CellTable(
        title="Counterfactual: the same checkpoints with learning frozen",
        columns=(
            "of",
            "slope",
            "slope frozen",
            "slope of the gap",
            "low",
            "high",
            f"c_g ({link})",
            "c_g frozen",
            "why",
        ),
        rows=tuple(_rows(window)),
        note=(
            "the control keeps no memory, so no self-revision and no discovered tool; "
            f"window: days {days[0]} to {days[-1]}, bandwidth of the local quadratic: "
            "the whole window; per kappa unit of the agent's own spending"
        ),
    )


def _rows(window: Window) -> Iterator[tuple[str | float | None, ...]]:
    frozen, rules = window.frozen, window.protocol.improvement
    if frozen is None:
        return
    pairs = {"AAI_dyn": (window.daily.dynamic, frozen.daily.dynamic)}
    pairs |= {
        family: (values, frozen.points.quality[family])
        for family, values in window.points.quality.items()
    }
    for name, (own, other) in pairs.items():
        found = counterfactual(
            name,
            window.points.spent,
            own,
            other,
            least=rules.checkpoints_min,
            level=window.level,
        )
        bends = [window.bent(values, rules.link).curvature for values in (own, other)]
        yield (
            name,
            figure(found.agent.slope.value),
            figure(found.frozen.slope.value),
            figure(found.gap.slope.value),
            figure(found.gap.slope.low),
            figure(found.gap.slope.high),
            *bends,
            found.gap.reason,
        )
