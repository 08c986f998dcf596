"""A player of Recall's exercises with settings: the subject that SelfRev revises.

Every setting does something real to how exercises are played. A share of items slips, by the
agent's seed and the names of its streams; the settings say what it remembers, reads, tries and
logs.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench import seeding
from owa_bench.agents.solvers.recall.induction import ListMemory, RuleInducer
from owa_bench.agents.solvers.recall.player import RecallPlayer
from owa_bench.agents.solvers.recall.reading import read_card
from owa_bench.agents.solvers.recall.stores import FactStore
from owa_bench.errors import FieldError
from owa_bench.interfaces import AgentConfig, Brief, ToolSpec

OPTIONS: Mapping[str, str] = {
    "capacity": "Words that its list memory can hold.",
    "window": "Words that it writes to its list memory at most.",
    "pages": "Whether pages are handed to the solver: 1, or 0.",
    "inducer": "Whether the solver of rules and concepts is installed: 1, or 0.",
    "depth": "Links of a composition that it answers.",
    "slip": "Items of a hundred that slip.",
    "streams": "Names, joined by commas, from which it is drawn which items slip.",
    "pass_every": "Passes every item of this number; 0: none.",
    "stop_after": "Items after which it passes all; 0: never.",
    "expert_log": "Whether it answers from the log in its folder first: 1, or 0.",
    "log_passed": "Whether items that it passed stand in its own log: 1, or 0.",
}
DEFAULTS: Mapping[str, str] = {
    "capacity": "9",
    "window": "9",
    "pages": "1",
    "inducer": "1",
    "depth": "9",
    "slip": "20",
    "streams": "",
    "pass_every": "0",
    "stop_after": "0",
    "expert_log": "0",
    "log_passed": "1",
}
_GO_ON = json.dumps({"tool": "go_on", "arguments": {}})


class TunablePlayer:
    """The player under its settings.

    Args:
        config: Its options are the settings; those left out have their defaults.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._streams = config.options.get("streams", "")
        names = [name for name in DEFAULTS if name != "streams"]
        self._set = {name: _whole_option(name, config.options) for name in names}
        words = min(self._set["capacity"], self._set["window"])
        inducer = RuleInducer(self._set["depth"])

        def solver(prompt: str, pages: list[str]) -> list[str] | None:
            if not self._set["inducer"]:
                return None
            return inducer.answer(prompt, pages if self._set["pages"] else [])

        self._player = RecallPlayer(_store, ListMemory(words), solver)
        self._log: Mapping[str, str] = {}
        self._key = ""

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an attempt.

        Args:
            brief: The task.
            tools: Play no part.
            memory_dir: Holds the expert's log; takes the subject's own.
        """
        self._player.reset(brief, tools, memory_dir)
        self._folder = memory_dir
        self._rng = seeding.stream(brief.seed, "slip", self._streams)
        self._items = self._logged = 0
        self._key = ""
        self._log = expert_answers(memory_dir) if self._set["expert_log"] else {}

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: Its `text` ends with the present card.
            info: Plays no part.
        Returns: Action text.
        """
        text = str(observation["text"])
        action = self._player.act(observation, info)
        card = read_card(text)
        self._key = next_key(self._key, text)
        if card.kind != "item":
            return action
        self._items += 1
        slips = self._rng.random() * 100 < self._set["slip"]
        action = self._log.get(self._key, action)
        every, last = self._set["pass_every"], self._set["stop_after"]
        if slips or (every and self._items % every == 0) or (last and self._items > last):
            action = _GO_ON
        self._logged += self._set["log_passed"] or action != _GO_ON
        return action

    def close(self) -> None:
        """Write how many items stand in the subject's own log."""
        write_own_log(self._folder, self._logged)


def _store(goal: Mapping[str, Any], quota: int, seed: int) -> FactStore:
    return FactStore(goal, quota)


def _whole_option(name: str, options: Mapping[str, str]) -> int:
    text = options.get(name, DEFAULTS[name])
    if not text.isdecimal():
        raise FieldError(name, text, "must be a whole number, at least 0")
    return int(text)


def next_key(before: str, text: str) -> str:
    """Return the key of a card in an attempt: it and all before it.

    Args:
        before: The key of the card before it.
        text: Ends with the card.
    """
    card = read_card(text)
    return hashlib.sha256(f"{before}|{card.kind}|{card.text}".encode()).hexdigest()


def expert_answers(memory_dir: Path) -> Mapping[str, str]:
    """Return the expert's action by key of the card; none without a log."""
    path = memory_dir / "expert_log.json"
    return _answers(str(path), path.stat().st_mtime_ns) if path.exists() else {}


def write_own_log(memory_dir: Path, items: int) -> None:
    """Write how many items stand in a subject's own log.

    Args:
        memory_dir: The subject's folder.
        items: How many.
    """
    (memory_dir / "own_log.json").write_text(json.dumps({"items": items}))


@functools.lru_cache(maxsize=4)
def _answers(path: str, changed_ns: int) -> Mapping[str, str]:
    """Return the expert's action by key of the card.

    Args:
        path: Of the expert's log.
        changed_ns: Tells files apart.
    Returns: Action text by key.
    """
    answers = {}
    for attempt in json.loads(Path(path).read_text()):
        key = ""
        for text, action in attempt:
            key = next_key(key, text)
            answers[key] = action
    return answers
