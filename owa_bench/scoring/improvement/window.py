"""One arm's campaign as its dynamics read it, and what they find."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, ClosureResult, Curve, KappaScore
from owa_bench.scoring.improvement.curvature import Curvature, curvature
from owa_bench.scoring.improvement.days import Daily
from owa_bench.scoring.improvement.kappa import Series


class Frozen(NamedTuple):
    """The same checkpoints played by the frozen control: nothing learnt is kept."""

    points: Series
    daily: Daily


class Window(NamedTuple):
    """The checkpoints of one arm with everything measured at them.

    `flow` is the axis R of the run, None without evidence; `frozen` the control.
    """

    points: Series
    daily: Daily
    frozen: Frozen | None
    table: Observables
    closures: Mapping[str, ClosureResult]
    kappas: tuple[KappaScore, ...]
    flow: float | None
    protocol: Protocol
    resamples: int
    root: str

    @property
    def level(self) -> float:
        """Two-sided level of intervals."""
        return self.protocol.statistics.level

    def bent(self, values: Floats, link: str) -> Curvature:
        """Return the curvature of a series on the agent's spending."""
        return curvature(
            self.points.spent,
            values,
            link,
            self.protocol.improvement,
            level=self.level,
            resamples=self.resamples,
            root=self.root,
        )


class Dynamics(NamedTuple):
    """An arm's dynamics: curvature by link, responses by axis, tables and lines."""

    bends: Mapping[str, Curvature] = {}
    innovation: float | None = None
    link_steps: int | None = None
    score: float | None = None
    responses: Mapping[str, float] = {}
    tables: tuple[CellTable, ...] = ()
    curves: tuple[Curve, ...] = ()


def closed(closures: Mapping[str, ClosureResult]) -> bool | None:
    """Return whether both closures hold; None: not every one was tested."""
    states = {closure.status for closure in closures.values()}
    if "FAIL" in states:
        return False
    return True if states == {"PASS"} else None


def said(mark: bool | None) -> str:
    """Return a mark in words.

    >>> said(True), said(None)
    ('yes', 'NO EVIDENCE')
    """
    return {True: "yes", False: "no", None: "NO EVIDENCE"}[mark]
