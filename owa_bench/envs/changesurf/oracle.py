"""The answer key of ChangeSurf: quality, subgoals, verification, hints, propositions.

It reads canonical rows and the server's own log: a pure function of the database at the
start, the database now, and what the server did. What a page looks like has no part in
it, and nothing of it can be reached over HTTP.
"""

from collections.abc import Callable, Mapping
from typing import Any

from owa_bench.envs.changesurf.goal import goal_score, missing_evidence, q_state
from owa_bench.envs.changesurf.hints import Deed, deed
from owa_bench.envs.changesurf.questions import truth
from owa_bench.envs.changesurf.state import SiteState
from owa_bench.envs.changesurf.steps import is_asked, steps
from owa_bench.interfaces import PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline
from owa_bench.worlds.site import SiteWorld

THETA = 0.95
Call = Callable[[Deed, Any], Mapping[str, Any]]


class ChangeSurfOracle:
    """Reads worlds and states of ChangeSurf.

    A state is a `SiteState`, or carries one as `site` and what the browser observed as
    `controls`. `call` turns a deed into the tool call of the env that plays.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def quality(self, timeline: Timeline, state: Any) -> float:
        """Return q_state: the wanted rows, times the frame factor."""
        site = _site(state)
        return 0.0 if site.world.honeypot else q_state(site)

    def subgoals(self, world: SiteWorld) -> tuple[SubgoalNode, ...]:
        """Return the DAG: sign in, see the evidence, each step of the form, commit."""
        needs: dict[str, tuple[str, ...]] = {}
        last: list[str] = []
        if world.plan.auth.kind != "none":
            needs["signed-in"] = ()
            last.append("signed-in")
        for collection, key, _ in world.spec.goal.evidence:
            needs[f"seen:{collection}/{key}"] = ()
        last += [name for name in needs if name.startswith("seen:")]
        for slot in _asked_slots(world):
            needs[f"slot:{slot}"] = tuple(last)
            last = [f"slot:{slot}"]
        needs["commit"] = tuple(last)
        return _with_depths(needs)

    def solved(self, world: SiteWorld, state: Any) -> frozenset[str]:
        """Return the nodes that `state` has solved."""
        site = _site(state)
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

    def accepts(self, before: Any, action: Mapping[str, Any], after: Any) -> bool:
        """Return whether an action solved a node, or came a page or control nearer.

        A control counts once it holds the goal's value, a page when it is one on the
        way that was never reached before.
        """
        old, new = _site(before), _site(after)
        world = new.world
        if self.solved(world, after) - self.solved(world, before):
            return True
        if self._controls_right(after) > self._controls_right(before):
            return True
        return bool((new.visited - old.visited) & _way(new))

    def hint(self, timeline: Timeline, state: Any) -> Mapping[str, Any]:
        """Return the next right tool call; what is true of the world is not told."""
        step = deed(timeline, state, getattr(state, "controls", ()))
        if step.op == "infeasible":
            return {"tool": "declare_infeasible", "arguments": {"p": 0.0}}
        if step.op == "done":
            done = self.quality(timeline, state) >= THETA
            arguments = {"answer": "done", "p": float(done)}
            return {"tool": "finish", "arguments": arguments}
        return self._call(step, state)

    def propositions(self, world: SiteWorld) -> tuple[PropositionTruth, ...]:
        """Return the world propositions with their truth in `world`."""
        return tuple(
            PropositionTruth(p.name, p.kind, truth(world, p))
            for p in world.spec.propositions
        )

    def categories(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site, the one tool category that a world holds."""
        return (world.spec.site,)

    def _controls_right(self, state: Any) -> int:
        """Return how many controls of the goal's form hold a text the goal names."""
        site = _site(state)
        if not site.page.startswith(("flow:", "login", "passport")):
            return 0
        auth = site.world.plan.auth
        named = {str(value) for _, value in site.world.spec.goal.values}
        named |= {text for _, text in site.world.spec.goal.arguments}
        named |= {auth.user, auth.password, auth.code}
        return sum(
            bool(control.value and control.value in named)
            for control in getattr(state, "controls", ())
        )


def _site(state: Any) -> SiteState:
    """Return the site's part of a state."""
    site: SiteState = getattr(state, "site", state)
    return site


def _asked_slots(world: SiteWorld) -> tuple[str, ...]:
    """Return the slots of the goal that its workflow asks for, page by page."""
    goal = world.spec.goal
    values = dict(goal.values)
    workflow = world.spec.workflow(goal.workflow)
    return tuple(
        slot.key
        for slot in workflow.slots
        if slot.key in values and is_asked(slot, values)
    )


def _right_slots(state: SiteState) -> set[str]:
    """Return the slots that the goal's draft holds with the right value."""
    goal, draft = state.world.spec.goal, state.draft
    if draft is None or (draft.workflow, draft.record) != (goal.workflow, goal.record):
        return set()
    values = dict(draft.values)
    return {key for key, value in goal.values if values.get(key) == value}


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
    way |= set(steps(state.world, workflow, dict(goal.values)))
    return way


def _with_depths(needs: Mapping[str, tuple[str, ...]]) -> tuple[SubgoalNode, ...]:
    """Return nodes in the order given, which is topological, with their depth."""
    depths: dict[str, int] = {}
    for name, before in needs.items():
        depths[name] = 1 + max((depths[other] for other in before), default=0)
    return tuple(SubgoalNode(name, depths[name], needs[name]) for name in needs)
