"""The API solver: fetches the sources of a goal, then answers, writes or declares."""

from collections.abc import Mapping

from owa_bench.agents.solvers.api_solver.authentication import Connector
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.api_solver.providers import DocumentSearch, ProviderClients
from owa_bench.agents.solvers.api_solver.task_state import EMPTY, LOST, REFUSED_WRITE, TaskState
from owa_bench.agents.solvers.memory import FactMemory, WriteOnlyMemory
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.interfaces import Brief


class ApiSolver:
    """Fetches what a goal names and answers it; `task` is what it found."""

    def __init__(
        self,
        brief: Brief,
        memory: FactMemory,
        config: SkillConfig = ALL_SKILLS,
        session: HttpSession | None = None,
        connectors: Mapping[str, Connector] = {},
    ) -> None:
        session = session or HttpSession(brief.interventions_left, waits=config.waits)
        read_memory = memory if config.remembers else WriteOnlyMemory(memory)
        self.task = TaskState(brief, session, config)
        registry, finder = brief.goal.get("registry"), DocumentSearch(session)
        self.vendors = ProviderClients(session, read_memory, registry, finder, config, connectors)

    def solve(self) -> ToolPlan[PlanCall]:
        """Do the work and return the call that ends the episode."""
        gathered = yield from self.gather()
        return (yield from self.conclude(gathered=gathered))

    def gather(self) -> ToolPlan[bool]:
        """Fetch every source and settle names and units; False if a needed one is out.

        Nothing is written by it.
        """
        for source in self.task.sources:
            found = yield from self.vendors.fetch(source)
            if found is not None:
                self.task.tables[source.id] = found
            elif not source.optional:
                return False
        self.task.settle()
        return True

    def conclude(self, *, gathered: bool) -> ToolPlan[PlanCall]:
        """Ask when unsure; compute, write, and say how likely it is right."""
        task = self.task
        if not gathered and self.vendors.infeasible:
            return task.declare()
        if not gathered or task.odds() < task.config.asks_below:
            done = yield from task.follow_hints()
            if done is not None:
                return done
        rows = task.compute() if gathered else None
        if rows is None:
            return task.finish(LOST)
        if task.goal.get("writes"):
            vendor = yield from self.vendors.open(task.tables[task.goal["writes"]["source"]].source)
            refused = yield from task.write(rows, vendor.access if vendor else None)
            return task.finish(task.odds([REFUSED_WRITE] * refused))
        taken = yield from task.hand_in(rows)
        return task.finish(task.odds([EMPTY] * (not rows) + [REFUSED_WRITE] * (not taken)))
