"""Chooses the parser of a case by its kind."""

from collections.abc import Callable, Iterable, Mapping

from owa_bench.agents.solvers.cases.close import CloseParser
from owa_bench.agents.solvers.cases.credits import CreditsParser
from owa_bench.agents.solvers.cases.tariff import TariffParser
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.interfaces import Brief

DESK = "submit"  # the tool by which a case is known
PARSERS: Mapping[str, Callable[[Brief, Iterable[str]], ToolPlan[PlanCall]]] = {
    "close": lambda brief, miss: CloseParser(brief, miss).plan(),
    "credits": lambda brief, miss: CreditsParser(brief, miss).plan(),
    "tariff": lambda brief, miss: TariffParser(brief, miss).plan(),
}


def case_plan(brief: Brief, miss: Iterable[str] = ()) -> ToolPlan[PlanCall]:
    """Return the plan of a case.

    Args:
        brief: Of the episode.
        miss: Sources that the parser leaves out.
    """
    return PARSERS[str(brief.goal["kind"])](brief, miss)
