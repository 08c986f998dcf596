"""What the control battery sweeps over: one ground for each suite.

A cell is a family at a tier under a drift. The cells of ToolQuest, Recall and MultiCrew
are every family, tier and announcement class at full magnitude. ChangeSurf plays in a
real browser, so its cells are every site, tier, group of operators and magnitude (0,
.5, 1), and every announcement class at full magnitude; the site's goals take turns in
them.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from owa_bench.drift.order import groups
from owa_bench.envs.changesurf.generate import HONEYPOT_FAMILIES as WEB_HONEYPOTS
from owa_bench.envs.changesurf.generate import TIERS as WEB_TIERS
from owa_bench.envs.changesurf.generate import sites
from owa_bench.envs.multicrew.generate import REAL as REAL_CODE
from owa_bench.envs.multicrew.suite import SUITE as MULTICREW
from owa_bench.envs.recall.suite import SUITE as RECALL
from owa_bench.envs.toolquest.generate import HONEYPOT_FAMILIES
from owa_bench.envs.toolquest.suite import SUITE as TOOLQUEST
from owa_bench.seeding import PRACTICE_BIT

NONE = "none"
CLASSES = ("D0", "D1", "D2", "D3", "all")
POLICIES = ("noop", "random", "plausible_wrong", "over_doer", "leak_probe", "oracle")


class Cell(NamedTuple):
    """One row of the table before it is played."""

    family: str
    tier: int
    drift: str


@dataclass(frozen=True)
class Ground:
    """One suite's part: what is swept, how often, and where the table stands.

    `golden` holds the digests of its worlds. `seeds` are instances a cell of the whole
    sweep. A slice plays `slice_seeds` on `slice_cells` of the cells (0: all of them).
    `hold` takes what a worker keeps for all its episodes. `choices` are what
    `--families` may pick. Seeds lie below `seed_limit`: a held-out site is in no
    practice world. `part` names families that have a table of their own.
    """

    suite: str
    table: str
    golden: str
    choices: tuple[str, ...]
    cells: Callable[[tuple[str, ...]], list[Cell]]
    seeds: int
    slice_seeds: int
    slice_cells: int = 0
    seed_limit: int = 1 << 63
    hold: Callable[[], Any] = lambda: None
    honeypots: tuple[str, ...] = ()
    part: str = ""

    @property
    def name(self) -> str:
        """What `--suite` calls it."""
        return f"{self.suite}/{self.part}" if self.part else self.suite


def calendar_of(drift: str) -> str:
    """Return the calendar of a cell's drift, `CLASS` or `CLASS at MAGNITUDE`."""
    kind = drift.partition(" at ")[0]
    return "nested" if kind in (NONE, "all") else f"nested:{kind}"


def magnitude_of(drift: str) -> float:
    """Return the nominal magnitude of a cell's drift."""
    return 0.0 if drift == NONE else float(drift.partition(" at ")[2] or 1)


def _by_class(families: tuple[str, ...], tiers: tuple[int, ...]) -> list[Cell]:
    """Return families by tier by drift class."""
    plain = itertools.product(families, tiers, (NONE, *CLASSES))
    return [Cell(*row) for row in plain]


def _toolquest(families: tuple[str, ...]) -> list[Cell]:
    """Return families by tier by drift class, and undrifted honeypots."""
    tiers = TOOLQUEST.card.tiers
    robbed = [name for name in HONEYPOT_FAMILIES if name.partition("-")[0] in families]
    pots = itertools.product(robbed, tiers, (NONE,))
    return _by_class(families, tiers) + [Cell(*row) for row in pots]


def _recall(families: tuple[str, ...]) -> list[Cell]:
    """Return families by tier by drift class."""
    return _by_class(families, RECALL.card.tiers)


def _multicrew(families: tuple[str, ...]) -> list[Cell]:
    """Return families by tier by drift class."""
    return _by_class(families, MULTICREW.card.tiers)


def _changesurf(chosen: tuple[str, ...]) -> list[Cell]:
    """Return sites by tier by kind and magnitude of drift; goals take turns."""
    kinds = (*groups("web"), "all")
    drifts = [NONE, *(f"{kind} at {m}" for kind in kinds for m in ("0.5", "1"))]
    drifts += [kind for kind in CLASSES if kind != "all"]
    made: list[Cell] = []
    for key in chosen:
        goals = sites()[key].goals
        for tier, (turn, drift) in itertools.product(WEB_TIERS, enumerate(drifts)):
            goal = goals[(tier + turn) % len(goals)]
            made.append(Cell(f"{key}/{goal}", tier, drift))
    pots = [name for name in WEB_HONEYPOTS if name.partition("/")[0] in chosen]
    return made + [Cell(*row) for row in itertools.product(pots, WEB_TIERS, (NONE,))]


def _browser() -> Any:
    """Return the process' browser, held so that all its episodes share it."""
    from owa_bench.envs.changesurf.browser.host import Lease

    return Lease()


GROUNDS = {
    "toolquest": Ground(
        suite="toolquest",
        table="sweep.md",
        golden="worlds.json",
        choices=TOOLQUEST.card.families,
        cells=_toolquest,
        seeds=200,
        slice_seeds=3,
        honeypots=HONEYPOT_FAMILIES,
    ),
    "multicrew": Ground(
        suite="multicrew",
        table="sweep_multicrew.md",
        golden="crews.json",
        choices=MULTICREW.card.families,
        cells=_multicrew,
        seeds=4,
        slice_seeds=1,
        slice_cells=16,
    ),
    "multicrew/codebase": Ground(
        suite="multicrew",
        part="codebase",
        table="sweep_codebase.md",
        golden="codebases.json",
        choices=REAL_CODE,
        cells=_multicrew,
        seeds=1,
        slice_seeds=1,
        slice_cells=2,
    ),
    "recall": Ground(
        suite="recall",
        table="sweep_recall.md",
        golden="registers.json",
        choices=RECALL.card.families,
        cells=_recall,
        seeds=3,
        slice_seeds=1,
        slice_cells=24,
    ),
    "changesurf": Ground(
        suite="changesurf",
        table="sweep_changesurf.md",
        golden="sites.json",
        choices=tuple(sites()),
        cells=_changesurf,
        seeds=1,
        slice_seeds=1,
        slice_cells=8,
        seed_limit=PRACTICE_BIT,
        hold=_browser,
        honeypots=WEB_HONEYPOTS,
    ),
}
