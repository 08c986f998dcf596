"""The answer key of ToolQuest: quality, subgoals, verification, hints, propositions.

It reads the world and the state, never what the agent says. Hints follow the contract
as it is served, so they hold whatever the documents claim.
"""

import math
from collections.abc import Mapping
from typing import Any

from owa_bench.envs.toolquest import answer_scoring, tool_calls
from owa_bench.envs.toolquest.access import TOKEN_KINDS
from owa_bench.envs.toolquest.backend import instance_key
from owa_bench.envs.toolquest.goal import truths
from owa_bench.envs.toolquest.state import (
    ApiState,
    CollectionKey,
    is_complete,
    missing_rows,
)
from owa_bench.interfaces import PropositionTruth, SubgoalNode
from owa_bench.records.events import fixed
from owa_bench.records.instance import Timeline
from owa_bench.worlds.api import ApiWorld, Provider

FRAME_RATE = 0.5  # k of the frame factor exp(-k * severity) [D]
THETA = 0.95
TOKEN_MARGIN_MS = 1_000


class ToolQuestOracle:
    """Reads worlds and states of ToolQuest."""

    def quality(self, timeline: Timeline, state: ApiState) -> float:
        """Return q_state: the answer's F1, times the frame factor.

        Args:
            timeline: The episode's worlds.
            state: The state to judge.

        Returns:
            A share in [0, 1]; 0 on a honeypot.
        """
        if state.world.honeypot:
            return 0.0
        frame = math.exp(-FRAME_RATE * answer_scoring.severity(state))
        return fixed(_answer_score(state) * frame)

    def subgoals(self, world: ApiWorld) -> tuple[SubgoalNode, ...]:
        """Return the DAG: find, read, authenticate, fetch, then answer or write."""
        needs: dict[str, tuple[str, ...]] = {}
        if world.tier >= 3:
            needs["registry"] = ()
        last: list[str] = []
        for place in world.needed:
            provider = world.provider(place[0])
            gate = _access_nodes(world, provider, needs)
            rows = f"rows:{place[0]}/{place[1]}"
            if _takes_pages(provider, place):
                page = f"page:{place[0]}/{place[1]}"
                needs[page] = (gate,)
                gate = page
            needs[rows] = (gate,)
            last.append(rows)
        for wanted in answer_scoring.required_writes(world):
            needs[f"write:{wanted.place[0]}/{wanted.place[1]}"] = tuple(last)
        if not world.writes:
            needs["artifact"] = tuple(last)
        return _with_depths(needs)

    def solved(self, world: ApiWorld, state: ApiState) -> frozenset[str]:
        """Return the nodes that `state` has solved.

        The rows behind a right answer count as read even where a filter left out those
        that do not matter.

        Args:
            world: The world whose nodes are asked about.
            state: The state to judge.

        Returns:
            Names of nodes.
        """
        found = {f"home:{key}" for key in state.homes}
        found |= {f"docs:{key}" for key in state.docs}
        if state.registry_read:
            found.add("registry")
        for key in {place[0] for place in world.needed}:
            if state.has_secret(key):
                found.add(f"key:{key}")
            if key in state.grants:
                found.add(f"token:{key}")
        answered = self._answered(state)
        found |= answered
        for place in world.needed:
            if state.fetched.get(place, 0):
                found.add(f"page:{place[0]}/{place[1]}")
            if is_complete(state, place) or (answered and state.fetched.get(place, 0)):
                found.add(f"rows:{place[0]}/{place[1]}")
        return frozenset(found)

    def _answered(self, state: ApiState) -> set[str]:
        """Return the final nodes that are solved."""
        if not state.world.writes:
            good = answer_scoring.artefact_score(state.world, state.artefact) >= THETA
            return {"artifact"} if good else set()
        return {
            f"write:{wanted.place[0]}/{wanted.place[1]}"
            for wanted in answer_scoring.required_writes(state.world)
            if state.records and answer_scoring.write_score(wanted, state) >= THETA
        }

    def accepts(
        self, before: ApiState, action: Mapping[str, Any], after: ApiState
    ) -> bool:
        """Return whether an action gained something that an unsolved node needs.

        Args:
            before: The state before the action.
            action: The tool call.
            after: The state after it.

        Returns:
            True if the action is verified.
        """
        if after is before:
            return False
        return (
            _discovered(before, after)
            or _authenticated(before, after)
            or any(
                missing_rows(after, place) != missing_rows(before, place)
                for place in after.world.needed
                if after.fetched != before.fetched
            )
            or _advanced(before, after)
        )

    def hint(self, timeline: Timeline, state: ApiState) -> Mapping[str, Any]:
        """Return the next right tool call; it holds no beliefs about the world.

        Args:
            timeline: The episode's worlds.
            state: The state now.

        Returns:
            Tool and arguments.
        """
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

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the listed propositions with their truth in the first world."""
        world = timeline.worlds[0]
        return tuple(PropositionTruth(p.name, p.kind, p.truth) for p in truths(world))

    def categories(self, world: ApiWorld) -> tuple[str, ...]:
        """Return the tool categories of the vendors that the task needs."""
        keys = {place[0] for place in world.needed}
        return tuple(sorted({world.provider(key).category for key in keys}))


def _answer_score(state: ApiState) -> float:
    """Return the F1 of the artefact, or the mean over the places written to."""
    if not state.world.writes:
        return answer_scoring.artefact_score(state.world, state.artefact)
    wanted = answer_scoring.required_writes(state.world)
    return sum(answer_scoring.write_score(each, state) for each in wanted) / len(wanted)


def _takes_pages(provider: Provider, place: CollectionKey) -> bool:
    """Return whether a collection is longer than its largest page."""
    pager = provider.contract.resource(place[1]).pager
    return pager.kind != "none" and len(provider.table(place[1]).rows) > pager.size


def _access_nodes(
    world: ApiWorld, provider: Provider, needs: dict[str, tuple[str, ...]]
) -> str:
    """Add the nodes that lead to a vendor's data; return the last of them."""
    chain = ["registry"] if world.tier >= 3 else []
    if world.tier >= 2:
        chain.append(f"home:{provider.key}")
    if not provider.undocumented:
        chain.append(f"docs:{provider.key}")
    if provider.contract.auth.kind != "none":
        chain.append(f"key:{provider.key}")
    if provider.contract.auth.kind in TOKEN_KINDS:
        chain.append(f"token:{provider.key}")
    for i, name in enumerate(chain):
        needs.setdefault(name, tuple(chain[i - 1 : i]))
    return chain[-1]


def _with_depths(needs: Mapping[str, tuple[str, ...]]) -> tuple[SubgoalNode, ...]:
    """Return nodes in the order given, which is topological, with their depth."""
    depths: dict[str, int] = {}
    for name, before in needs.items():
        depths[name] = 1 + max((depths[other] for other in before), default=0)
    return tuple(SubgoalNode(name, depths[name], needs[name]) for name in needs)


# --- progress of an action --------------------------------------------------------


def _discovered(before: ApiState, after: ApiState) -> bool:
    """Return whether a page that leads to a needed vendor was read first now."""
    keys = {place[0] for place in after.world.needed}
    tier = after.world.tier
    return (
        bool((after.docs - before.docs) & keys)
        or (tier >= 2 and bool((after.homes - before.homes) & keys))
        or (tier >= 3 and after.registry_read and not before.registry_read)
    )


def _authenticated(before: ApiState, after: ApiState) -> bool:
    """Return whether a credential or token was gained that is still needed."""
    world = after.world
    writing = {wanted.place[0] for wanted in answer_scoring.required_writes(world)}
    for key in {place[0] for place in world.needed}:
        busy = key in writing or any(
            missing_rows(after, place) or place not in after.fetched
            for place in world.needed
            if place[0] == key
        )
        if busy and (_new_secret(before, after, key) or _new_token(before, after, key)):
            return True
    return False


def _new_secret(before: ApiState, after: ApiState, key: str) -> bool:
    working = {(key, s.name) for s in after.vendors[key].secrets if not s.revoked}
    return bool((after.secrets - before.secrets) & working)


def _new_token(before: ApiState, after: ApiState, key: str) -> bool:
    return (
        after.grants.get(key) != before.grants.get(key)
        and after.has_token(key)
        and not before.has_token(key, margin_ms=TOKEN_MARGIN_MS)
    )


def _advanced(before: ApiState, after: ApiState) -> bool:
    """Return whether the answer came nearer."""
    if after.artefact is before.artefact and after.records is before.records:
        return False
    return _answer_score(after) > _answer_score(before)


# --- the next right step ------------------------------------------------------------


def _towards(
    state: ApiState, key: bytes, place: CollectionKey
) -> tool_calls.ToolAction | None:
    """Return the next call on the way to the rows of `place`, None if all are there."""
    provider = state.vendors[place[0]]
    step = _discovery(state, provider)
    if step is not None or is_complete(state, place):
        return step
    return access_step(state, provider) or tool_calls.page(
        state, key, place, provider.contract
    )


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

    Returns:
        The call, None if a request may be sent at once.
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
        if answer_scoring.artefact_score(world, state.artefact) >= 1.0:
            return None
        return tool_calls.call(
            "write_artifact",
            name="answer",
            columns=list(world.expected_columns),
            rows=[list(row) for row in world.expected_rows],
        )
    for wanted in answer_scoring.required_writes(world):
        for row in answer_scoring.open_writes(wanted, state):
            provider = state.vendors[wanted.place[0]]
            values = dict(zip(wanted.columns, row, strict=True))
            return access_step(state, provider) or tool_calls.post(
                state, key, wanted.place, provider.contract, values
            )
    return None
