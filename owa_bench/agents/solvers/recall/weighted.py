"""A small model that plays n-back: the subject whose weights SelfRev revises.

Its inputs say which of the last words a stimulus equals. Noise is added to its score, as in a model
that is sampled: which answers slip follows from the agent's seed and the weights, so that other
weights slip elsewhere.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench import seeding
from owa_bench.agents.solvers.recall.tunable import expert_answers, next_key, write_own_log
from owa_bench.errors import FieldError
from owa_bench.interfaces import AgentConfig, Brief, ToolSpec

WEIGHTS: Mapping[str, str] = {
    "base": "Weights of the last words, level by level.",
    "adapters": "Weights that are added to them, a line each.",
    "left": "A weight a level; its product with `right` is added too.",
    "right": "A weight a word.",
    "noise": "Greatest number that is added to a score or taken from it, in fifties.",
    "contexts": "Whether it is trained on the log in its folder first: 1, or 0.",
    "logged_from": "Least score of an item that stands in its own log, in fifties.",
}
_FIFTY = 50
_CERTAIN = 1_000_000  # weight of a context after the one update that fits it
_ITEM = re.compile(r"(\d+)-back, (\d+) of \d+: (\w+)\.")
_FINISH = json.dumps({"tool": "finish", "arguments": {"p": 0.05}})


class WeightedPlayer:
    """The model under its weights.

    Args:
        config: Its options are the weights.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._options = config.options
        left, right, base = (self._numbers(name) for name in ("left", "right", "base"))
        if len(base) != len(left) * len(right):
            rule = "must have a row of as many as `right` for each of `left`"
            raise FieldError("base", config.options.get("base", ""), rule)
        rows = [base] + [
            [int(weight) for weight in line.split()]
            for line in config.options.get("adapters", "").splitlines()
        ]
        rows.append([row * column for row in left for column in right])
        self._weights = [sum(column) for column in zip(*rows, strict=True)]
        self._lags = len(right)
        self._noise, self._least, self._reads = (
            self._numbers(name)[0] for name in ("noise", "logged_from", "contexts")
        )

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an attempt.

        Args:
            brief: The task.
            tools: Play no part.
            memory_dir: Holds the expert's log; takes the model's own.
        """
        self._folder = memory_dir
        weights = ",".join(map(str, self._weights))
        self._rng = seeding.stream(brief.seed, "noise", weights)
        self._words: list[str] = []
        self._key, self._logged = "", 0
        self._contexts = expert_answers(memory_dir) if self._reads else {}

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: Its `text` ends with the present card.
            info: Plays no part.
        Returns: Action text.
        """
        text = str(observation["text"])
        self._key = next_key(self._key, text)
        item = _ITEM.search(text)
        if item is None:
            return _FINISH
        level, place, word = int(item[1]), int(item[2]), item[3]
        if place == 1:
            self._words.clear()
        score = self._score(level, word) + self._context()
        self._words.append(word)
        most = self._noise * _FIFTY
        score += int(self._rng.integers(-most, most + 1))
        self._logged += abs(score) >= self._least * _FIFTY
        values = ["yes" if score > 0 else "no"]
        return json.dumps({"tool": "answer", "arguments": {"values": values}})

    def close(self) -> None:
        """Write how many items stand in the model's own log."""
        write_own_log(self._folder, self._logged)

    def _score(self, level: int, word: str) -> int:
        """Return the sum of the weights of a level: added where words are the same."""
        row = self._weights[(level - 1) * self._lags : level * self._lags]
        lately = self._words[::-1]
        same = [at < len(lately) and lately[at] == word for at in range(len(row))]
        return sum(w if as_then else -w for w, as_then in zip(row, same, strict=True))

    def _context(self) -> int:
        """Return the weight of all that was shown so far, of the expert's answer."""
        answer = self._contexts.get(self._key)
        if answer is None:
            return 0
        return _CERTAIN if '"yes"' in answer else -_CERTAIN

    def _numbers(self, name: str) -> list[int]:
        text = self._options.get(name, "")
        try:
            numbers = [int(word) for word in text.split()]
        except ValueError:
            numbers = []
        if not numbers:
            raise FieldError(name, text, "must be whole numbers between blanks")
        return numbers
