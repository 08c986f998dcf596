"""The answer key of ToolQuest: quality, subgoals, verification, hints, propositions.

It reads the world and the state, never what the agent says. Hints follow the contract as it is
served, so they hold whatever the documents claim.
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from typing_extensions import override

from owa_bench.envs.toolquest import answers, tool_calls
from owa_bench.envs.toolquest.access import TOKEN_KINDS
from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.goal import is_served, proposition_class, truths
from owa_bench.envs.toolquest.state import ApiState, CollectionKey, is_complete
from owa_bench.envs.toolquest.world import ApiWorld, Provider
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.events import fixed
from owa_bench.records.instance import Timeline

FRAME_RATE = 0.5  # k of the frame factor exp(-k * severity) [D]
THETA = 0.95
TOKEN_MARGIN_MS = 1_000


_Result = TypeVar("_Result")


class _LastResults(Generic[_Result]):
    """The last results of a pure function of frozen objects, found by the very objects.

    A step asks several times for the same two states, and to compare them takes longer than to
    judge them. Threads share it: each replaces the whole.
    """

    def __init__(self, function: Callable[..., _Result], size: int) -> None:
        self._function = function
        self._size = size
        self._results: tuple[tuple[tuple[object, ...], _Result], ...] = ()

    def __call__(self, *arguments: object) -> _Result:
        """Return the function's result."""
        for objects, result in self._results:
            if all(map(operator.is_, objects, arguments)):
                return result
        result = self._function(*arguments)
        self._results = (*self._results, (arguments, result))[-self._size :]
        return result


class ToolQuestOracle(Oracle):
    """Reads worlds and states of ToolQuest."""

    def __init__(self) -> None:
        self._solved = _LastResults(_solved_nodes, size=2)
        self._subgoals = _LastResults(_subgoal_nodes, size=1)

    @override
    def quality(self, timeline: Timeline, state: ApiState) -> float:
        """Return q_state: the answer's F1, times the frame factor.

        Returns: A share in [0, 1]; 0 on a honeypot.
        """
        if state.world.honeypot:
            return 0.0
        frame = math.exp(-FRAME_RATE * answers.severity(state))
        return fixed(_answer_score(state) * frame)

    @override
    def subgoals(self, world: ApiWorld) -> tuple[SubgoalNode, ...]:
        """Return the DAG: find, read, authenticate, fetch, then answer or write.

        An edge where the right request cannot be made without what the prerequisite served: hosts,
        paths with the place of the proof, credentials, tokens, sealed marks of pages, and the rows
        behind the answer.
        """
        return self._subgoals(world)

    @override
    def solved(self, world: ApiWorld, state: ApiState) -> frozenset[str]:
        """Return the nodes that `state` has solved.

        The rows behind a right answer count as read even where a filter left out those that do not
        matter.
        """
        return self._solved(world, state)

    @override
    def products(self, world: ApiWorld, state: ApiState) -> frozenset[str]:
        """Return the nodes whose product was served: of rows, any that it holds."""
        begun = {f"rows:{p}/{r}" for (p, r), bits in state.fetched.items() if bits}
        return self.solved(world, state) | begun

    @override
    def gained(
        self, before: ApiState, action: Mapping[str, Any], after: ApiState
    ) -> frozenset[str]:
        """Return the nodes that an action solved and the wanted records it posted.

        Returns: Names; a record's is that of its place and key.
        """
        world = after.world
        found = set(self.solved(world, after) - self.solved(world, before))
        if found:
            found &= {node.name for node in self.subgoals(world)}
        if after.records is not before.records:
            found |= _standing(after) - _standing(before)
        return frozenset(found)

    @override
    def hint(self, timeline: Timeline, state: ApiState) -> Mapping[str, Any]:
        """Return the next right tool call; it holds no beliefs about the world."""
        world = state.world
        if world.honeypot:
            return tool_calls.call("declare_infeasible", p=0.0)
        key = instance_key(timeline.instance.seed)
        ways = (_towards(state, key, place) for place in world.needed)
        step = next(filter(None, ways), None) or _answer(state, key)
        if step is not None:
            return step
        done = self.quality(timeline, state) >= THETA
        return tool_calls.call("finish", answer="done", p=float(done))

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the listed propositions with their truth in the first world.

        Those about a collection that a honeypot lacks have none.
        """
        world = timeline.worlds[0]
        return tuple(
            PropositionTruth(p.name, proposition_class(p), p.truth)
            for p in truths(world)
            if is_served(world, p)
        )

    @override
    def categories(self, world: ApiWorld) -> tuple[str, ...]:
        """Return the one kind: every vendor is an HTTP API."""
        return ("http_api",)


def _subgoal_nodes(world: ApiWorld) -> tuple[SubgoalNode, ...]:
    """Return the DAG of `ToolQuestOracle.subgoals`."""
    needs: dict[str, tuple[str, ...]] = {}
    if world.tier >= 3:
        needs["registry"] = ()
    last: list[str] = []
    for place in world.needed:
        provider = world.provider(place[0])
        gates = _access_nodes(world, provider, needs)
        rows = f"rows:{place[0]}/{place[1]}"
        if _takes_marks(provider, place):
            page = f"page:{place[0]}/{place[1]}"
            needs[page] = gates
            gates = (page,)
        needs[rows] = gates
        last.append(rows)
    for wanted in answers.required_writes(world):
        needs[f"write:{wanted.place[0]}/{wanted.place[1]}"] = tuple(last)
    if not world.writes:
        needs["artifact"] = tuple(last)
    return _with_depths(needs)


def _solved_nodes(world: ApiWorld, state: ApiState) -> frozenset[str]:
    """Return the nodes of `ToolQuestOracle.solved`."""
    found = {f"docs:{key}" for key in state.docs}
    if state.registry_read:
        found.add("registry")
    for key in {place[0] for place in world.needed}:
        if state.has_secret(key):
            found.add(f"key:{key}")
        if key in state.grants:
            found.add(f"token:{key}")
    answered = _answered_nodes(state)
    found |= answered
    for place in world.needed:
        if state.fetched.get(place, 0):
            found.add(f"page:{place[0]}/{place[1]}")
        if is_complete(state, place) or (answered and state.fetched.get(place, 0)):
            found.add(f"rows:{place[0]}/{place[1]}")
    return frozenset(found)


def _answered_nodes(state: ApiState) -> set[str]:
    """Return the final nodes that are solved."""
    if not state.world.writes:
        good = answers.artefact_score(state.world, state.artefact) >= THETA
        return {"artifact"} if good else set()
    return {
        f"write:{wanted.place[0]}/{wanted.place[1]}"
        for wanted in answers.required_writes(state.world)
        if state.records and answers.write_score(wanted, state) >= THETA
    }


def _answer_score(state: ApiState) -> float:
    """Return the F1 of the artefact, or the mean over the places written to."""
    if not state.world.writes:
        return answers.artefact_score(state.world, state.artefact)
    wanted = answers.required_writes(state.world)
    return sum(answers.write_score(each, state) for each in wanted) / len(wanted)


def _takes_marks(provider: Provider, place: CollectionKey) -> bool:
    """Return whether the second page of a collection needs a mark from the first."""
    pager = provider.contract.resource(place[1]).pager
    is_long = len(provider.table(place[1]).rows) > pager.size
    return pager.kind in ("cursor", "link") and is_long


def _standing(state: ApiState) -> set[str]:
    """Return the wanted records that stand, by place and values."""
    return {
        f"record:{vendor}/{resource}:{values!r}"
        for wanted in answers.required_writes(state.world)
        for vendor, resource in (wanted.place,)
        for values in set(wanted.rows) - set(answers.open_writes(wanted, state))
    }


def _access_nodes(
    world: ApiWorld, provider: Provider, needs: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Add the nodes that lead to a vendor's data; return the last of them."""
    host = way = ("registry",) if world.tier >= 3 else ()
    if not provider.undocumented:
        needs.setdefault(f"docs:{provider.key}", way)
        way = (f"docs:{provider.key}",)
    if provider.contract.auth.kind == "none":
        return way
    needs.setdefault(f"key:{provider.key}", ())
    proof = (f"key:{provider.key}",)
    if provider.contract.auth.kind in TOKEN_KINDS:
        needs.setdefault(f"token:{provider.key}", (*host, *proof))
        proof = (f"token:{provider.key}",)
    return (*way, *proof)


def _with_depths(needs: Mapping[str, tuple[str, ...]]) -> tuple[SubgoalNode, ...]:
    """Return nodes in the order given, which is topological, with their depth."""
    depths: dict[str, int] = {}
    for name, before in needs.items():
        depths[name] = 1 + max((depths[other] for other in before), default=0)
    return tuple(SubgoalNode(name, depths[name], needs[name]) for name in needs)


# --- the next right step ------------------------------------------------------------


def _towards(state: ApiState, key: bytes, place: CollectionKey) -> tool_calls.ToolAction | None:
    """Return the next call on the way to the rows of `place`, None if all are there."""
    provider = state.vendors[place[0]]
    step = _discovery(state, provider)
    if step is not None or is_complete(state, place):
        return step
    return access_step(state, provider) or tool_calls.page(state, key, place, provider.contract)


def _discovery(state: ApiState, provider: Provider) -> tool_calls.ToolAction | None:
    """Return the page to read next on the way to a vendor's documents."""
    if state.world.tier >= 3 and not state.registry_read:
        return tool_calls.get(state.world.registry)
    if state.world.tier >= 2 and provider.key not in state.homes:
        return tool_calls.home(provider)
    if provider.key not in state.docs and not provider.undocumented:
        return tool_calls.docs(provider)
    return None


def access_step(state: ApiState, provider: Provider) -> tool_calls.ToolAction | None:
    """Return what must come before a call to a vendor: credential, token or wait.

    Args:
        state: The state now.
        provider: The vendor.
    Returns: The call, None if a request may be sent at once.
    """
    auth = provider.contract.auth
    if auth.kind != "none" and (step := tool_calls.credential(state, provider)):
        return step
    if wait := state.wait_ms(provider.key):
        return tool_calls.wait(wait)
    live = state.has_token(provider.key, margin_ms=TOKEN_MARGIN_MS)
    if auth.kind in TOKEN_KINDS and not live:
        return tool_calls.token(state, provider, provider.contract)
    return None


def _answer(state: ApiState, key: bytes) -> tool_calls.ToolAction | None:
    """Return the call that hands in the answer or posts the next record."""
    world = state.world
    if not world.writes:
        if answers.artefact_score(world, state.artefact) >= 1.0:
            return None
        return tool_calls.call(
            "write_artifact",
            name="answer",
            columns=list(world.expected_columns),
            rows=[list(row) for row in world.expected_rows],
        )
    for wanted in answers.required_writes(world):
        for row in answers.open_writes(wanted, state):
            provider = state.vendors[wanted.place[0]]
            values = dict(zip(wanted.columns, row, strict=True))
            return access_step(state, provider) or tool_calls.post(
                state, key, wanted.place, provider.contract, values
            )
    return None
