"""The crew on pages: one window, so one surfs and the others check what it brings."""

from owa_bench.agents.orchestrator.board import Board
from owa_bench.interfaces import Brief
from owa_bench.skills.planning import PlanCall, ToolPlan
from owa_bench.skills.web_solver.solver import WebSolver

PLANNER, SURFER, VERIFIER = "planner", "surfer", "verifier"
ROUNDS = 2  # how often the verifier may have the work done again


class Surfers:
    """A planner, a surfer and a verifier who work on one errand over a board.

    The window is one and whoever holds it works; a site that refused without a rule is
    tried once more from its first page, unless nobody is heard.
    """

    def __init__(self, brief: Brief) -> None:
        roles = (PLANNER, SURFER, VERIFIER)
        self.board = Board(roles, brief.role_cap, muted=brief.muted)
        self._brief = brief

    def plan(self) -> ToolPlan[PlanCall]:
        """Walk the goal; return the call that ends the episode."""
        self.board.post(PLANNER, SURFER, "reach the goal on the site")
        errand = WebSolver(self._brief)
        ended = yield from errand.attempt()
        for _ in range(ROUNDS - 1):
            self.board.post(SURFER, VERIFIER, ended.refusal or "it is done")
            heard = bool(self.board.take(VERIFIER))
            if ended.accepted or ended.refusal or not heard:
                break
            self.board.post(VERIFIER, SURFER, "nothing was taken: once more")
            ended = yield from errand.attempt(again=True)
        self.board.post(VERIFIER, PLANNER, "taken" if ended.accepted else "not taken")
        return (yield from errand.conclude(ended))
