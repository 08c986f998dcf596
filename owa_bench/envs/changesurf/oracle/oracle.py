"""Oracle of ChangeSurf: quality, subgoals, verification, hints, propositions.

It reads canonical rows and the server's own log: a pure function of the database at the start, the
database now, and what the server did. What a page looks like has no part in it, and nothing of it
can be reached over HTTP.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import override

from owa_bench.envs.changesurf.browser.observation import ObservedControl, SurfState
from owa_bench.envs.changesurf.oracle.goal import goal_score, missing_evidence, q_state
from owa_bench.envs.changesurf.oracle.hints import OracleStep, VisitState, next_step
from owa_bench.envs.changesurf.server.forms import is_asked, slots_on, steps
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.envs.changesurf.site_spec import SiteProposition
from owa_bench.envs.changesurf.spaces import BrowserToolCall, tool_call
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline

THETA = 0.95


class ChangeSurfOracle(Oracle):
    """The answer key: reads worlds and states of ChangeSurf."""

    @override
    def quality(self, timeline: Timeline, state: VisitState) -> float:
        """Return the quality of a visit.

        Returns: q_state in [0, 1]: the wanted rows, times the frame factor.
        """
        return 0.0 if state.site.world.honeypot else q_state(state.site)

    @override
    def subgoals(self, world: SiteWorld) -> tuple[SubgoalNode, ...]:
        """Return the DAG: sign in, find row and evidence, form by form, commit.

        An edge where the next address, the token of the next form or the answer cannot be had
        without what the prerequisite served.
        """
        spec, goal = world.spec, world.spec.goal
        workflow = spec.workflow(goal.workflow)
        needs: dict[str, tuple[str, ...]] = {}
        access = ("signed-in",) if world.plan.auth.kind != "none" else ()
        needs |= dict.fromkeys(access, ())
        begun: tuple[str, ...] = ()
        if workflow.record:
            row = f"row:{workflow.record}/{goal.record}"
            needs[row] = ()
            begun = (row,)
            if not world.plan.listing(workflow.record).direct:
                item = f"item:{workflow.record}/{goal.record}"
                needs[item] = (row,)
                begun = (item,)
        evidence = tuple(_evidence_nodes(world, needs))
        needs["begun"] = begun
        # A form that asks for a sign-in begins with it: only sending needs it before.
        last: tuple[str, ...] = (*access, "begun", *evidence)
        *forms, _ = steps(world, workflow, dict(goal.values))
        for page in forms:
            needs[_form_node(world, page)] = last
            last = (_form_node(world, page),)
        needs["commit"] = last
        depths: dict[str, int] = {}
        for name, before in needs.items():
            depths[name] = 1 + max((depths[other] for other in before), default=0)
        return tuple(SubgoalNode(name, depths[name], needs[name]) for name in needs)

    @override
    def solved(self, world: SiteWorld, state: VisitState) -> frozenset[str]:
        site = state.site
        goal = site.world.spec.goal
        workflow = site.world.spec.workflow(goal.workflow)
        found = {f"seen:{c[0]}/{c[1]}" for c in goal.evidence if c in site.seen}
        found -= {f"seen:{c[0]}/{c[1]}" for c in missing_evidence(site)}
        found |= {page for page in site.visited if page.startswith("item:")}
        found |= {f"row:{collection}/{key}" for collection, key, _ in site.seen}
        kinds = {(event.kind, *event.detail) for event in site.log}
        if ("signed_in",) in kinds:
            found.add("signed-in")
        if ("start", goal.workflow, str(goal.record)) in kinds:
            found.add("begun")
        forms = [
            page
            for page in steps(site.world, workflow, dict(goal.values))
            if ("step", page) in kinds and _form_slots(site.world, page) <= _right_slots(site)
        ]
        if not site.world.honeypot and goal_score(site) >= THETA:
            forms = [*steps(world, workflow, dict(goal.values))]
            found |= {"begun", "commit"}
        found |= {_form_node(site.world, page) for page in forms}
        return frozenset(found & {node.name for node in self.subgoals(world)})

    @override
    def gained(
        self, before: VisitState, action: Mapping[str, Any], after: VisitState
    ) -> frozenset[str]:
        """Return the nodes solved, the pages on the way and the goal's texts entered.

        A text counts in whichever control of the goal's form holds it.
        """
        world = after.site.world
        new = self.solved(world, after) - self.solved(world, before)
        pages = (after.site.visited - before.site.visited) & _way(after.site)
        texts = _right_texts(after) - _right_texts(before)
        return frozenset({*new, *(f"page {p}" for p in pages), *(f"text {t}" for t in texts)})

    @override
    def hint(self, timeline: Timeline, state: SurfState) -> BrowserToolCall:
        """Return the next correct tool call; it tells nothing of the propositions."""
        step = next_step(timeline, state.site, state.controls)
        if step.op == "infeasible":
            return tool_call("declare_infeasible", p=0.0)
        if step.op == "done":
            done = self.quality(timeline, state) >= THETA
            return tool_call("finish", answer="done", p=float(done))
        return _step_call(step, state.controls)

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        world: SiteWorld = timeline.worlds[0]
        return tuple(
            PropositionTruth(p.name, p.kind, is_true(world, p)) for p in world.spec.propositions
        )

    @override
    def categories(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the one kind: a site is reached in the browser alone."""
        return ("browser",)


# --- tool calls -----------------------------------------------------------------------


def _step_call(step: OracleStep, controls: Sequence[ObservedControl]) -> BrowserToolCall:
    """Return the tool call of a step on the open page.

    A control that is not there is looked for again on the whole page: reading costs a step and
    changes nothing, so an oracle that needs it fails its tests.
    """
    if step.op == "goto":
        return tool_call("goto", address=step.value)
    if step.op == "wait":
        return tool_call("wait", seconds=int(step.value) / 1000)
    same = (c for c in controls if step.ident and c.ident == step.ident)
    control = next(same, None)
    if control is None:
        return tool_call("read", line=1)
    words = f'{control.role} "{control.name}"'
    if control.group:
        words += f' in "{control.group}"'
    if step.op == "fill":
        return tool_call("type", ref=control.ref, text=step.value, element=words)
    if step.op == "select":
        return tool_call("select", ref=control.ref, option=step.value, element=words)
    return tool_call("click", ref=control.ref, element=words)


# --- inside ---------------------------------------------------------------------------


def is_true(world: SiteWorld, proposition: SiteProposition) -> bool:
    """Return the truth of a proposition.

    Args:
        world: the world that it is about.
        proposition: the proposition.
    Returns: Whether it holds in this very world.
    """
    if proposition.kind == "unit":
        return world.plan.listing(proposition.subject[0]).cents
    if proposition.kind == "default":
        workflow, slot = proposition.subject
        return world.plan.slot(f"{workflow}.{slot}").default not in ("", "no")
    collection, key, column, value = proposition.subject
    table = world.spec.table(collection)
    row = next(row for row in table.rows if str(row[0]) == key)
    return str(row[table.columns.index(column)]) == value


def _evidence_nodes(world: SiteWorld, needs: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Add a node for every row of the evidence, below its list where that hides it."""
    for collection, key, column in world.spec.goal.evidence:
        plan = world.plan.listing(collection)
        name, row = f"seen:{collection}/{key}", f"row:{collection}/{key}"
        listed = column in (*plan.columns, *plan.drawer)
        if not listed:
            needs.setdefault(row, ())
        needs.setdefault(name, () if listed else (row,))
        yield name


def _form_slots(world: SiteWorld, page: str) -> set[str]:
    """Return the slots of the goal that a page of its form asks for."""
    goal = world.spec.goal
    values, workflow = dict(goal.values), world.spec.workflow(goal.workflow)
    kind, _, number = page.partition("/")
    if not kind.startswith("flow:"):
        return set()
    slots = slots_on(world, workflow, int(number), values)
    return {s.key for s in slots if s.key in values and is_asked(s, values)}


def _form_node(world: SiteWorld, page: str) -> str:
    """Return the node of a page of the goal's form, which drift may move."""
    slots = _form_slots(world, page)
    return f"form:{'+'.join(sorted(slots))}" if slots else page


def _right_slots(state: SiteState) -> set[str]:
    """Return the slots that the goal's draft holds with the right value."""
    goal, draft = state.world.spec.goal, state.draft
    if draft is None or (draft.workflow, draft.record) != (goal.workflow, goal.record):
        return set()
    values = dict(draft.values)
    return {key for key, value in goal.values if values.get(key) == value}


def _right_texts(state: VisitState) -> set[str]:
    """Return the texts that the goal names and a control of its form holds."""
    site = state.site
    if not site.page.startswith(("flow:", "login", "passport")):
        return set()
    goal, auth = site.world.spec.goal, site.world.plan.auth
    named = {str(value) for _, value in goal.values}
    named |= {text for _, text in goal.arguments}
    named |= {auth.user, auth.password, *auth.codes, *auth.mailed}
    return named & {control.value for control in state.controls if control.value}


def _way(state: SiteState) -> set[str]:
    """Return the pages that the goal leads through."""
    spec = state.world.spec
    goal = spec.goal
    workflow = spec.workflow(goal.workflow)
    way = {"home", "search", "login", "login2", "passport", "mail"}
    way |= {f"list:{cell[0]}" for cell in goal.evidence}
    way |= {f"item:{cell[0]}/{cell[1]}" for cell in goal.evidence}
    if workflow.record:
        way |= {f"list:{workflow.record}", f"item:{workflow.record}/{goal.record}"}
    return way | set(steps(state.world, workflow, dict(goal.values)))
