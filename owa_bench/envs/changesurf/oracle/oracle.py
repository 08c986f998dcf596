"""Oracle of ChangeSurf: quality, subgoals, verification, hints, propositions.

It reads canonical rows and the server's own log: a pure function of the database at the
start, the database now, and what the server did. What a page looks like has no part in
it, and nothing of it can be reached over HTTP.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.envs.changesurf.browser.observation import ObservedControl, SurfState
from owa_bench.envs.changesurf.oracle.goal import goal_score, missing_evidence, q_state
from owa_bench.envs.changesurf.oracle.hints import OracleStep, VisitState, next_step
from owa_bench.envs.changesurf.server.forms import is_asked, steps
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.envs.changesurf.spaces import BrowserToolCall, tool_call
from owa_bench.interfaces import PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_spec import SiteProposition

THETA = 0.95


class ChangeSurfOracle:
    """The answer key: reads worlds and states of ChangeSurf."""

    def quality(self, timeline: Timeline, state: VisitState) -> float:
        """Return the quality of a visit.

        Args:
            timeline: the episode's worlds.
            state: the state at its end.

        Returns:
            q_state in [0, 1]: the wanted rows, times the frame factor.
        """
        return 0.0 if state.site.world.honeypot else q_state(state.site)

    def subgoals(self, world: SiteWorld) -> tuple[SubgoalNode, ...]:
        """Return the DAG: sign in, see the evidence, each step of the form, commit."""
        needs: dict[str, tuple[str, ...]] = {}
        if world.plan.auth.kind != "none":
            needs["signed-in"] = ()
        for collection, key, _ in world.spec.goal.evidence:
            needs[f"seen:{collection}/{key}"] = ()
        last = tuple(needs)
        for slot in _asked_slots(world):
            needs[f"slot:{slot}"] = last
            last = (f"slot:{slot}",)
        needs["commit"] = last
        depths: dict[str, int] = {}
        for name, before in needs.items():
            depths[name] = 1 + max((depths[other] for other in before), default=0)
        return tuple(SubgoalNode(name, depths[name], needs[name]) for name in needs)

    def solved(self, world: SiteWorld, state: VisitState) -> frozenset[str]:
        """Return the solved nodes.

        Args:
            world: the world of `subgoals`.
            state: the state.

        Returns:
            Names of nodes.
        """
        site = state.site
        goal = site.world.spec.goal
        found = {f"seen:{c[0]}/{c[1]}" for c in goal.evidence if c in site.seen}
        found -= {f"seen:{c[0]}/{c[1]}" for c in missing_evidence(site)}
        if any(event.kind == "signed_in" for event in site.log):
            found.add("signed-in")
        found |= {f"slot:{key}" for key in _right_slots(site)}
        if not site.world.honeypot and goal_score(site) >= THETA:
            found |= {f"slot:{key}" for key in _asked_slots(site.world)}
            found.add("commit")
        return frozenset(found)

    def accepts(
        self, before: VisitState, action: Mapping[str, Any], after: VisitState
    ) -> bool:
        """Return whether an action solved a node, or came a page or control nearer.

        A control counts once it holds the goal's value, a page when it is one on the
        way that was never reached before.

        Args:
            before: the state before the action.
            action: not read.
            after: the state after it.

        Returns:
            Whether the action counts as verified.
        """
        world = after.site.world
        if self.solved(world, after) - self.solved(world, before):
            return True
        if _right_controls(after) > _right_controls(before):
            return True
        return bool((after.site.visited - before.site.visited) & _way(after.site))

    def hint(self, timeline: Timeline, state: SurfState) -> BrowserToolCall:
        """Return the next correct tool call; it tells nothing of the propositions.

        Args:
            timeline: the episode's worlds.
            state: the state.

        Returns:
            The call; in the end `finish` or `declare_infeasible`.
        """
        step = next_step(timeline, state.site, state.controls)
        if step.op == "infeasible":
            return tool_call("declare_infeasible", p=0.0)
        if step.op == "done":
            done = self.quality(timeline, state) >= THETA
            return tool_call("finish", answer="done", p=float(done))
        return _step_call(step, state.controls)

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the listed propositions with their truth in the first world."""
        world: SiteWorld = timeline.worlds[0]
        return tuple(
            PropositionTruth(p.name, p.kind, is_true(world, p))
            for p in world.spec.propositions
        )

    def categories(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site, the one tool category that a world holds."""
        return (world.spec.site,)


# --- tool calls -----------------------------------------------------------------------


def _step_call(
    step: OracleStep, controls: Sequence[ObservedControl]
) -> BrowserToolCall:
    """Return the tool call of a step on the open page.

    A control that is not there is looked for again on the whole page: reading costs a
    step and changes nothing, so an oracle that needs it fails its tests.
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

    Returns:
        Whether it holds in this very world.
    """
    if proposition.kind == "unit":
        return world.plan.listing(proposition.subject[0]).cents
    if proposition.kind == "default":
        workflow, slot, value = proposition.subject
        return world.plan.slot(f"{workflow}.{slot}").default == value
    collection, key, column, value = proposition.subject
    table = world.spec.table(collection)
    row = next(row for row in table.rows if str(row[0]) == key)
    return str(row[table.columns.index(column)]) == value


def _asked_slots(world: SiteWorld) -> tuple[str, ...]:
    """Return the slots of the goal that its workflow asks for, page by page."""
    goal = world.spec.goal
    values = dict(goal.values)
    slots = world.spec.workflow(goal.workflow).slots
    return tuple(s.key for s in slots if s.key in values and is_asked(s, values))


def _right_slots(state: SiteState) -> set[str]:
    """Return the slots that the goal's draft holds with the right value."""
    goal, draft = state.world.spec.goal, state.draft
    if draft is None or (draft.workflow, draft.record) != (goal.workflow, goal.record):
        return set()
    values = dict(draft.values)
    return {key for key, value in goal.values if values.get(key) == value}


def _right_controls(state: VisitState) -> int:
    """Return how many controls of the goal's form hold a text that the goal names."""
    site = state.site
    if not site.page.startswith(("flow:", "login", "passport")):
        return 0
    goal, auth = site.world.spec.goal, site.world.plan.auth
    named = {str(value) for _, value in goal.values}
    named |= {text for _, text in goal.arguments}
    named |= {auth.user, auth.password, auth.code}
    return sum(bool(c.value and c.value in named) for c in state.controls)


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
