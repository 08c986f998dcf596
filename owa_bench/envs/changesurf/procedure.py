"""Replay of a recorded procedure: what worked on one world, done blindly on another.

The procedure is the oracle's walk on the world before drift: controls by role and
accessible name, what was typed, boxes toggled. An answer is no recorded text: the
procedure reads the same cells again, as they are shown now, and reckons with them as
before. What fails, and what ends in another row, shows where a drift operator bites.
"""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from owa_bench.envs.changesurf.oracle.goal import q_state
from owa_bench.envs.changesurf.oracle.hints import OracleStep
from owa_bench.envs.changesurf.oracle.oracle import THETA
from owa_bench.envs.changesurf.oracle.walk import HttpWalker, walk
from owa_bench.envs.changesurf.server.forms import read_money, show
from owa_bench.envs.changesurf.server.friction import act_ms
from owa_bench.errors import DriftError
from owa_bench.records.instance import Instance, Timeline
from owa_bench.worlds.site import SiteWorld


def procedure_fails(instance: Instance, before: SiteWorld, after: SiteWorld) -> bool:
    """Return whether the procedure that solves one world fails on another.

    Args:
        instance: The attempt, whose goal both worlds have.
        before: The world on which the procedure was recorded.
        after: The world on which it is replayed.

    Returns:
        True where a control is missing, a page refuses, or other rows are left.
    """
    still = replace(instance, drift_step=0)
    steps = walk(_timeline(still, before)).steps
    return asyncio.run(_replayed(_timeline(still, after), before, steps)) < THETA


async def _replayed(
    timeline: Timeline, before: SiteWorld, steps: Sequence[OracleStep]
) -> float:
    """Return the quality that a replay ends with."""
    [world] = timeline.worlds
    answer, read = _answer_text(before, before), _answer_text(before, world)
    async with HttpWalker(timeline, act_ms=act_ms) as walker:
        await walker.load("GET", walker.server.start_url)
        for step in steps:
            if step.op == "wait":
                continue
            if step.op == "fill" and answer and step.value == answer:
                step = step._replace(value=read)
            try:
                await _repeat(walker, step)
            except (DriftError, StopIteration, RuntimeError, KeyError):
                break  # the control, its option or its form is not there
        return q_state(walker.server.state)


async def _repeat(walker: HttpWalker, step: OracleStep) -> None:
    """Do a step again; a box is clicked, whatever it holds."""
    if step.op != "check":
        await walker.perform(step)
        return
    node = walker.find(step)
    held = {control.ident: control for control in walker.control_values()}
    ticked = bool(held[node.attributes["id"]].checked)
    await walker.perform(step._replace(value="off" if ticked else "on"))


def _answer_text(before: SiteWorld, now: SiteWorld) -> str:
    """Return the answer that the procedure reads off the site, "" without a question.

    Formula: answer x (sum of the cells as read now) / (sum of the cells). Every
    question of a site is a multiple of a sum of cells.
    """
    goal = before.spec.goal
    if goal.workflow != "answer" or not goal.evidence:
        return ""
    whole, read = 0, 0
    for table, key, column in goal.evidence:
        rows = before.spec.table(table)
        row = next(row for row in rows.rows if row[0] == key)
        cents = int(row[rows.columns.index(column)])
        plan = now.plan.listing(table)
        listed = column in (*plan.columns, *plan.drawer)
        text = show(cents, "money", "iso", in_cents=plan.cents and listed)
        whole, read = whole + cents, read + (read_money(text) or 0)
    answer = int(dict(goal.values)["answer"]) * read // max(1, whole)
    return show(answer, "money", "iso").replace(",", "")


def _timeline(still: Instance, world: SiteWorld) -> Timeline:
    return Timeline(
        instance=still, starts=(0,), worlds=(world,), changes=((),), realised=0.0
    )
