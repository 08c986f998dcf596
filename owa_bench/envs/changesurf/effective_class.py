"""Effective announcement class of a change, and the replay that it must agree with.

The world before a change is the counterfactual of the world after it. Each part of the
presentation in which the two differ is judged on the way to the goal, in the world that
the visitor meets, later changes of the same moment included:

    D0  what worked before works: the same control by role and name, the same values
    D1  the page shows the new fact before it matters: a word, a control, a page, a hint
    D2  no page does; a refusal, or a sign-in that comes back, says it
    D3  nothing does; values or contents of fields look as before and mean another thing

A change has the hardest class among its parts. Source: docs/changesurf.md#operators.

The replay does blindly on one world what worked on another: the oracle's walk before drift,
controls by role and accessible name, what was typed, boxes toggled. An answer is no recorded text:
the procedure reads the same cells again, as they are shown now, and reckons with them as before.
"""

import asyncio
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from owa_bench.envs.changesurf.oracle.goal import q_state
from owa_bench.envs.changesurf.oracle.hints import OracleStep
from owa_bench.envs.changesurf.oracle.oracle import THETA
from owa_bench.envs.changesurf.oracle.walk import HttpWalker, walk
from owa_bench.envs.changesurf.server.forms import is_asked, read_money, show
from owa_bench.envs.changesurf.server.sign_in import act_ms
from owa_bench.envs.changesurf.site_edits import goal_lists, goal_workflow
from owa_bench.envs.changesurf.site_spec import SiteSpec, by_key
from owa_bench.envs.changesurf.world import ListPlan, RenderPlan, SiteWorld, SlotPlan
from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement, Instance, Timeline


def procedure_fails(instance: Instance, before: SiteWorld, after: SiteWorld) -> bool:
    """Return whether the procedure that solves one world fails on another.

    Args:
        instance: The attempt, whose goal both worlds have.
        before: The world on which the procedure was recorded.
        after: The world on which it is replayed.
    Returns: True where a control is missing, a page refuses, or other rows are left.
    """
    still = replace(instance, drift_step=0)
    steps = walk(_timeline(still, before)).steps
    return asyncio.run(_replayed_quality(_timeline(still, after), before, steps)) < THETA


async def _replayed_quality(
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
    return Timeline(instance=still, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


_TYPED = ("text", "area")


def effective_class(before: SiteWorld, after: SiteWorld, met: SiteWorld) -> Announcement:
    """Return the class that a change has in effect.

    Args:
        before: The world just before the change.
        after: The world just after it.
        met: The world that the visitor meets, after all changes of the same moment.
    Returns: D0 to D3.
    """
    old, new = before.plan, after.plan
    classes: set[Announcement] = {"D0"}
    if {x.key: x.text for x in old.labels} != {x.key: x.text for x in new.labels}:
        classes.add("D1")
    for slot in new.slots:
        classes.update(_slot_classes(old.slot(slot.key), slot, met))
    for plan in new.lists:
        if plan.key in goal_lists(met):
            classes.update(_list_classes(old.listing(plan.key), plan, met))
    flow = goal_workflow(met).key
    if old.flow(flow) != new.flow(flow):
        classes.add("D1")
    classes.update(_site_classes(old, new, met))
    return max(classes)


def _asked_slots(met: SiteWorld) -> frozenset[str]:
    """Return the references of the slots that the goal's form asks for."""
    values, workflow = dict(met.spec.goal.values), goal_workflow(met)
    return frozenset(
        f"{workflow.key}.{slot.key}"
        for slot in workflow.slots
        if slot.key in values and is_asked(slot, values)
    )


def _slot_classes(old: SlotPlan, new: SlotPlan, met: SiteWorld) -> Iterator[Announcement]:
    """Yield the classes of what changed of a field of the goal's form."""
    if old == new or new.key not in _asked_slots(met):
        return
    if old.control != new.control and {old.control, new.control} - {*_TYPED}:
        yield "D1"
    if old.default != new.default:
        workflow, _, key = new.key.partition(".")
        kind = met.spec.workflow(workflow).slot(key).kind
        # Who chooses an option overrides the one that came; a box is only toggled.
        yield "D3" if kind == "check" else "D0"


def _list_classes(old: ListPlan, new: ListPlan, met: SiteWorld) -> Iterator[Announcement]:
    """Yield the classes of what changed of a list on the way to the goal."""
    shapes = ((x.form, x.drawer, x.size, x.paging, x.filter) for x in (old, new))
    if len({*shapes}) > 1 or (old.direct and not new.direct):
        yield "D1"
    read = {column for key, _, column in met.spec.goal.evidence if key == new.key}
    shown = read & {*new.columns, *new.drawer}
    kinds = {met.spec.collection(new.key).column(column).kind for column in shown}
    if old.cents != new.cents and "money" in kinds:
        yield "D1" if met.plan.listing(new.key).told else "D3"
    if old.dates != new.dates and shown:
        # Every day lies past the 12th: the dates themselves say which number it is.
        yield "D1" if _has_dates(met.spec, new) else "D0"


def _has_dates(spec: SiteSpec, plan: ListPlan) -> bool:
    columns = by_key(spec.collections, plan.key).columns
    return any(c.kind == "date" and c.key in plan.columns for c in columns)


def _site_classes(old: RenderPlan, new: RenderPlan, met: SiteWorld) -> Iterator[Announcement]:
    """Yield the classes of what changed all over the site."""
    asked = _asked_slots(met)
    typed = [slot for slot in new.slots if slot.key in asked and slot.control in _TYPED]
    if old.dates != new.dates and any(_is_date(met.spec, slot) for slot in typed):
        yield "D1" if met.plan.hinted else "D2"
    if (old.auth.kind, old.auth.early) != (new.auth.kind, new.auth.early):
        yield "D1"
    if old.auth.password != new.auth.password and _has_passwords(met):
        yield "D2"
    if old.auth.expires != new.auth.expires:
        yield "D2"
    friction, former = new.friction, old.friction
    if (former.requests, former.window_ms) != (friction.requests, friction.window_ms):
        yield "D2"
    if former.least_ms != friction.least_ms and typed:
        yield "D2"


def _is_date(spec: SiteSpec, slot: SlotPlan) -> bool:
    workflow, _, key = slot.key.partition(".")
    return spec.workflow(workflow).slot(key).kind == "date"


def _has_passwords(met: SiteWorld) -> bool:
    """Return whether the sign-in that the visitor meets asks for a password."""
    return met.plan.auth.kind not in ("none", "mailbox")
