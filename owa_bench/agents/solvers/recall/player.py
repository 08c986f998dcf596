"""Player of Recall's cards: pages into a store, questions to it, lists by memory."""

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.recall.induction import ListMemory, RuleInducer
from owa_bench.agents.solvers.recall.reading import CardText, RegisterQuery, in_form, read_card
from owa_bench.agents.solvers.recall.stores import FactStore, FadingStore, VerifyingStore
from owa_bench.interfaces import Brief, ToolSpec

Solver = Callable[[str, list[str]], list[str] | None]
CARDS = "go_on"  # the tool of a register's cards
_NO_LIMIT = 1 << 30
_SURE, _UNSURE = 0.95, 0.05


class RecallPlayer:
    """An agent of Recall: a store over sittings, a list memory within one, a solver.

    Args:
        store: Makes the store of an episode from goal, quota and seed.
        lists: The list memory.
        solver: Answers exercises from their pages and prompt, None where it cannot.
        calibration: Share of its distance to 1/2 that a stated p keeps.
        share: Of the items, that it answers.
    """

    def __init__(
        self,
        store: Callable[[Mapping[str, Any], int, int], FactStore],
        lists: ListMemory,
        solver: Solver,
        calibration: float = 1.0,
        share: float = 1.0,
    ) -> None:
        self._make = store
        self._lists = lists
        self._solve = solver
        self._calibration = calibration
        self._share = share
        self._folder = Path()
        self._goal: Mapping[str, Any] = {}
        self._claims: Mapping[str, str] = {}
        self._pages: list[str] = []
        self._answered = self._asked = 0

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin a sitting with what the one before left in the folder.

        Args:
            brief: The task and the quota.
            tools: Play no part.
            memory_dir: The folder.
        """
        self._folder, self._goal = Path(memory_dir), brief.goal
        self._claims = brief.propositions
        quota = int(brief.budgets.get("memory_bytes", _NO_LIMIT))
        self._store = self._make(brief.goal, quota, brief.seed)
        self._store.load(self._folder)
        self._lists.clear()
        self._pages.clear()
        self._moved: dict[int, int] = {}

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: Its `text` ends with the present card.
            info: Plays no part.
        Returns: Action text.
        """
        tool, arguments = self._next(read_card(str(observation["text"])))
        return json.dumps({"tool": tool, "arguments": arguments})

    def close(self) -> None:
        """End the sitting: keep what the store keeps."""
        self._store.save(self._folder)

    def _next(self, card: CardText) -> tuple[str, dict[str, Any]]:
        if card.kind == "page":
            if card.text.startswith("Nothing is left"):
                return "finish", self._closing(card.day)
            self._store.read(card.day, card.text)
            self._lists.read(card.text)
            self._pages.append(card.text)
            return "go_on", {}
        self._store.day = card.day
        if card.kind == "review":
            return self._review(card)
        for old, new in re.findall(r"notice (\d+) is now (\d+)", card.reply):
            self._moved[int(old)] = int(new)
        self._asked += 1
        before, call = self._answered, self._answer(card)
        if self._answered <= self._share * self._asked:
            return call
        self._answered = before
        return "go_on", {}

    def _closing(self, day: int) -> dict[str, Any]:
        """Return the arguments of finish: p, and a probability of each claim."""
        self._store.day = day
        sure = self._answered >= 0.9 * self._asked
        claims = {name: self._store.reader.claim(text) for name, text in self._claims.items()}
        beliefs = {
            name: self._calibrated(self._store.belief(claim))
            for name, claim in claims.items()
            if claim is not None
        }
        p = self._calibrated(_SURE if sure else _UNSURE)
        return {"p": p, "beliefs": beliefs}

    def _calibrated(self, p: float) -> float:
        return round(0.5 + self._calibration * (p - 0.5), 4)

    def _answer(self, card: CardText) -> tuple[str, dict[str, Any]]:
        same = self._lists.same_as_before(card.text)
        if same is not None:
            self._answered += 1
            return "answer", {"values": ["yes" if same else "no"]}
        query = self._store.reader.query(card.text) if self._goal["relations"] else None
        if query is not None:
            return self._answer_query(query)
        values = self._solve(card.text, self._pages)
        if values is None:
            values = self._lists.answer(card.text)
            self._lists.clear()
        if "Options: " not in card.text:
            values = [in_form(value, self._goal["answer_form"]) for value in values]
        self._pages.clear()
        if not any(values):
            return "go_on", {}
        self._answered += 1
        return "answer", {"values": values}

    def _answer_query(self, query: RegisterQuery) -> tuple[str, dict[str, Any]]:
        entries = self._store.entries(query)
        entries = entries[: query.entries or 1]
        if not entries:
            return "go_on", {}
        self._answered += 1
        form = self._goal["answer_form"]
        arguments: dict[str, Any] = {"values": [in_form(e.value, form) for e in entries]}
        if query.entries:
            sources = [self._moved.get(entry.source, entry.source) for entry in entries]
            arguments["sources"] = sources
        return "answer", arguments

    def _review(self, card: CardText) -> tuple[str, dict[str, Any]]:
        """Ask again for pairs that the store has lost."""
        lost = [
            name
            for name in self._goal["watched"]
            if not self._store.entries(RegisterQuery(name, self._goal["relations"][0]))
        ]
        if not lost:
            return "go_on", {}
        return "answer", {"values": lost[: self._goal["reviews"]]}


def register_reader(
    *,
    depth: float | None = None,
    half_life: float = math.inf,
    calibration: float = 1.0,
    share: float = 1.0,
) -> RecallPlayer:
    """Return a player that keeps what it reads and checks it by the register's rules.

    Args:
        depth: Longest composition of rules that it finds by search, keeping every fact asked for;
            None: it keeps lines, answers the best match, and finds no rules.
        half_life: Days after which half of the facts asked for is lost.
        calibration: Share of its distance to 1/2 that a stated p keeps.
        share: Of the items, that it answers.
    """

    def make(goal: Mapping[str, Any], quota: int, seed: int) -> FactStore:
        if depth is None:
            return VerifyingStore(goal, quota)
        if math.isinf(half_life):
            return FactStore(goal, quota)
        store = FadingStore(goal, quota)
        store.half_life, store.seed = half_life, seed
        return store

    def unsolved(prompt: str, pages: list[str]) -> None:
        return None

    solver = unsolved if depth is None else RuleInducer(depth).answer
    return RecallPlayer(make, ListMemory(math.inf), solver, calibration, share)
