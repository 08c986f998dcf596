"""The agent's trials on pages, where a goal cannot be reached twice.

While a trial is open, either the adopted habits or those under trial go first, by the
episode's seed; the other ones only where the site did not take the work of the first.
So a pair is won or lost by chance alone where the habit does nothing, and the answer is
the first one that was taken. All that the agent can see of its work is whether the site
took it: what is wrong and taken all the same it does not learn from.
"""

from typing import NamedTuple

from owa_bench.agents.self_improving import revising
from owa_bench.agents.self_improving.notebook import Notebook
from owa_bench.interfaces import Brief
from owa_bench.records.events import Revision
from owa_bench.skills.api_solver.skill_config import SkillConfig
from owa_bench.skills.planning import PlanCall, ToolPlan
from owa_bench.skills.web_solver.solver import FormOutcome, WebSolver


class Surfed(NamedTuple):
    """The call that ends an episode on pages, and what the agent made of it."""

    closing: PlanCall
    notebook: Notebook
    revision: Revision | None


def surf(brief: Brief, notebook: Notebook) -> ToolPlan[Surfed]:
    """Reach a goal on a site, trying a change of habit where one is proposed."""
    trial = revising.candidate(notebook)
    order: list[SkillConfig] = [notebook.habits]
    if trial is not None:
        order = [trial, *order] if brief.seed % 2 else [*order, trial]
    errand, ended = yield from _tried(brief, order[0], again=False)
    shown = errand.signs
    revision: Revision | None = None
    if trial is not None:
        if ended.accepted or ended.refusal:
            notebook, revision = revising.pass_over(notebook)
        else:
            errand, ended = yield from _tried(brief, order[1], again=True)
            won = float(ended.accepted)
            old, new = (0.0, won) if order[1] is trial else (won, 0.0)
            habit = notebook.trial.habit if notebook.trial else ""
            looked = revising.is_cured_by(habit, shown)
            notebook, revision = revising.learn(notebook, old, new, looked=looked)
    closing = yield from errand.conclude(ended)
    notebook = revising.note_signs(notebook, shown)
    if revision is None:
        notebook, revision = revising.propose(notebook)
    return Surfed(closing, notebook, revision)


def _tried(
    brief: Brief, habits: SkillConfig, *, again: bool
) -> ToolPlan[tuple[WebSolver, FormOutcome]]:
    errand = WebSolver(brief, habits)
    ended = yield from errand.attempt(again=again)
    return errand, ended
