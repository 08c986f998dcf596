"""One episode's work done by one clerk, source by source, then the answer."""

from owa_bench.interfaces import Brief
from owa_bench.skills.clerk.case import EMPTY, LOST, REFUSED_WRITE, Case
from owa_bench.skills.clerk.desk import Desk
from owa_bench.skills.clerk.habits import ALL, Habits
from owa_bench.skills.clerk.vendors import Vendors
from owa_bench.skills.memory import Memory, Unheeded
from owa_bench.skills.planning import Call, Plan


class Job:
    """Fetches what a goal names and answers it; `case` is what it found."""

    def __init__(
        self,
        brief: Brief,
        memory: Memory,
        habits: Habits = ALL,
        desk: Desk | None = None,
    ) -> None:
        desk = desk or Desk(brief.interventions_left, waits=habits.waits)
        heeded = memory if habits.remembers else Unheeded(memory)
        self.case = Case(brief, desk, habits)
        self._vendors = Vendors(desk, heeded, brief.goal.get("registry"), habits)

    def solve(self) -> Plan[Call]:
        """Do the work and return the call that ends the episode."""
        gathered = yield from self.gather()
        return (yield from self.conclude(gathered=gathered))

    def gather(self) -> Plan[bool]:
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

    def conclude(self, *, gathered: bool) -> Plan[Call]:
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
