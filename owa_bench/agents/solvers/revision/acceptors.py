"""Acceptors of SelfRev: four rules of adoption, and what is proposed to them.

Each proposes one component at a time against the current version, in the proposer's order. Where
there are more components than tests, those with the best scores in development are tested.
"""

import json
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.interfaces import Brief, ToolSpec

TESTS = "request_holdout"  # the tool of campaigns
LEVEL = 0.05  # of a whole campaign
_SCREENED = 12  # development attempts a component
_NUMBER = re.compile(r"(?:score|statistic) (-?[\d.]+)")
_VERSION = re.compile(r"\bv\d+\b")
_PLAN = re.compile(r"\bp\d+\b")


class RevisionCall(NamedTuple):
    """A call of a plan."""

    tool: str
    arguments: Mapping[str, Any]


Calls = Generator[RevisionCall, str, list[str]]
Acceptor = Callable[[Mapping[str, Any]], Calls]
Proposer = Callable[[Brief], Sequence[str]]


class RevisionAgent:
    """Walks an acceptor's calls, then states what it believes and finishes.

    Args:
        acceptor: Returns the components that it adopted.
        proposer: Names the components worth a proposal, the best first; None: all.
        most: Components that it adopts at most.
    """

    def __init__(
        self, acceptor: Acceptor, proposer: Proposer | None = None, *, most: float = math.inf
    ) -> None:
        self._acceptor = acceptor
        self._propose = proposer
        self._most = most

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin a campaign.

        Args:
            brief: Its goal names the components and the budgets.
            tools: Play no part.
            memory_dir: Plays no part.
        """
        self._calls = self._campaign(brief)
        self._begun = False

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: Its `text` is the reply to the call before.
            info: Plays no part.
        Returns: Action text.
        """
        if self._begun:
            call = self._calls.send(str(observation["text"]))
        else:
            self._begun = True
            call = next(self._calls)
        return json.dumps({"tool": call.tool, "arguments": call.arguments})

    def close(self) -> None:
        """End the campaign; nothing is kept."""

    def _campaign(self, brief: Brief) -> Generator[RevisionCall, str, None]:
        goal = brief.goal
        chosen = names_of(goal) if self._propose is None else self._propose(brief)
        offered = {**goal, "components": [{"name": name} for name in chosen]}
        offered["most"] = self._most
        adopted = (yield from self._acceptor(offered)) if chosen else []
        for name in names_of(goal):
            p = 0.95 if name in adopted else 0.1
            yield RevisionCall("forecast", {"component": name, "p": p})
        yield RevisionCall("attribute", {"components": adopted})
        while True:
            yield RevisionCall("finish", {"p": 0.9 if adopted else 0.1})


def names_of(goal: Mapping[str, Any]) -> list[str]:
    """Return the names of the components."""
    return [str(component["name"]) for component in goal["components"]]


def greedy(goal: Mapping[str, Any]) -> Calls:
    """Adopt whatever scores better in development; test nothing."""
    adopted: list[str] = []
    best = yield from _developed("v0", _SCREENED)
    for name in names_of(goal):
        version = yield from _proposed([name])
        score = yield from _developed(version, _SCREENED)
        if score > best:
            yield RevisionCall("adopt", {"version": version})
            adopted.append(name)
            best = score
    return adopted


def bonferroni(goal: Mapping[str, Any]) -> Calls:
    """Adopt what a paired t bound shows at the level over the number of components."""
    level = LEVEL / len(names_of(goal))
    return (yield from _tested(goal, "lower_bound", level, lambda bound: bound > 0))


def e_process(goal: Mapping[str, Any]) -> Calls:
    """Adopt what an e-process shows at the level over the number of components."""
    level = LEVEL / len(names_of(goal))
    return (yield from _tested(goal, "e_process", level, lambda value: value >= 1 / level))


def halving(goal: Mapping[str, Any]) -> Calls:
    """Halve the components by development scores; test the last two."""
    chosen = yield from _screened(goal, 2)
    level = LEVEL / 2
    return (yield from _tested(goal, "lower_bound", level, lambda bound: bound > 0, chosen=chosen))


def _tested(
    goal: Mapping[str, Any],
    rule: str,
    level: float,
    accepts: Callable[[float], bool],
    *,
    chosen: Sequence[str] = (),
) -> Calls:
    """Test components one after the other and adopt those that are accepted."""
    names = list(chosen) or names_of(goal)
    if len(names) > goal["holdouts"]:
        names = yield from _screened(goal, goal["holdouts"])
    adopted: list[str] = []
    for name in names:
        if len(adopted) >= goal["most"]:
            break
        version = yield from _proposed([name])
        reply = yield RevisionCall(
            "register",
            {
                "version": version,
                "hypothesis": f"{name} helps",
                "metric": "quality",
                "pairs": goal["pairs"],
                "rule": rule,
                "level": level,
            },
        )
        plan = _PLAN.search(reply)
        if plan is None:
            continue
        reply = yield RevisionCall("request_holdout", {"plan": plan[0]})
        found = _NUMBER.search(reply)
        if found is not None and accepts(float(found[1])):
            yield RevisionCall("adopt", {"version": version})
            adopted.append(name)
    return adopted


def _screened(goal: Mapping[str, Any], wanted: int) -> Calls:
    """Return the components with the best development scores, by halving."""
    names, count = names_of(goal), _SCREENED // 2
    while len(names) > wanted:
        scores: dict[str, float] = {}
        for name in names:
            version = yield from _proposed([name])
            scores[name] = yield from _developed(version, count)
        kept = max(wanted, (len(names) + 1) // 2)
        names = sorted(names, key=lambda name: -scores[name])[:kept]
        count *= 2
    return names


def _proposed(diff: list[str]) -> Generator[RevisionCall, str, str]:
    """Propose a version and return its name."""
    reply = yield RevisionCall("propose", {"diff": diff})
    found = _VERSION.search(reply)
    return found[0] if found else "v0"


def _developed(version: str, count: int) -> Generator[RevisionCall, str, float]:
    """Play a version in development and return its score."""
    reply = yield RevisionCall("run_dev", {"version": version, "count": count})
    found = _NUMBER.search(reply)
    return float(found[1]) if found else 0.0


ACCEPTORS: Mapping[str, Acceptor] = {
    "greedy": greedy,
    "bonferroni": bonferroni,
    "halving": halving,
    "e_process": e_process,
}
