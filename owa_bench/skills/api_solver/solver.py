"""One episode's work done by one clerk, source by source, then the answer."""

from owa_bench.interfaces import Brief
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.api_solver.providers import ProviderClients
from owa_bench.skills.api_solver.skill_config import ALL_SKILLS, SkillConfig
from owa_bench.skills.api_solver.task_state import EMPTY, LOST, REFUSED_WRITE, TaskState
from owa_bench.skills.memory import FactMemory, WriteOnlyMemory
from owa_bench.skills.planning import PlanCall, ToolPlan


class ApiSolver:
    """Fetches what a goal names and answers it; `case` is what it found."""

    def __init__(
        self,
        brief: Brief,
        memory: FactMemory,
        habits: SkillConfig = ALL_SKILLS,
        desk: HttpSession | None = None,
    ) -> None:
        desk = desk or HttpSession(brief.interventions_left, waits=habits.waits)
        heeded = memory if habits.remembers else WriteOnlyMemory(memory)
        self.case = TaskState(brief, desk, habits)
        self._vendors = ProviderClients(
            desk, heeded, brief.goal.get("registry"), habits
        )

    def solve(self) -> ToolPlan[PlanCall]:
        """Do the work and return the call that ends the episode."""
        gathered = yield from self.gather()
        return (yield from self.conclude(gathered=gathered))

    def gather(self) -> ToolPlan[bool]:
        """Fetch every source and settle names and units; False if a needed one is out.

        Nothing is written by it.
        """
        for source in self.case.sources:
            found = yield from self._vendors.fetch(source)
            if found is not None:
                self.case.sheets[source.id] = found
            elif not source.optional:
                return False
        self.case.settle()
        return True

    def conclude(self, *, gathered: bool) -> ToolPlan[PlanCall]:
        """Ask when unsure; compute, write, and say how likely it is right."""
        case = self.case
        if not gathered and self._vendors.infeasible:
            return case.declare()
        if not gathered or case.odds() < case.habits.asks_below:
            done = yield from case.follow_hints()
            if done is not None:
                return done
        rows = case.compute() if gathered else None
        if rows is None:
            return case.finish(LOST)
        if case.goal.get("writes"):
            vendor = yield from self._vendors.open(
                case.sheets[case.goal["writes"]["source"]].source
            )
            refused = yield from case.write(rows, vendor.access if vendor else None)
            return case.finish(case.odds([REFUSED_WRITE] * refused))
        taken = yield from case.hand_in(rows)
        return case.finish(
            case.odds([EMPTY] * (not rows) + [REFUSED_WRITE] * (not taken))
        )
