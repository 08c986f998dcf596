"""Induction of list rules and concepts from examples, by search over small programs.

A program is a sequence of at most two primitives on lists; the first that maps every
example is taken. A concept is the set of features without which an object does not
fall under it.
"""

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

_List = list[str]
_Primitive = Callable[[_List], _List]
_EXAMPLE = re.compile(r"^(\w+): ([\w ]+) -> ([\w ]+)$", re.M)
_PAIR = re.compile(r"^'([\w ]+)' is (\w+); '([\w ]+)' is (too|not)\.$", re.M)
_OBJECT = re.compile(r"^(\d+): ([\w ]+)$", re.M)


def _primitives() -> dict[str, _Primitive]:
    """Return the primitives by name."""

    def swapped(first: int, second: int) -> _Primitive:
        def swap(words: _List) -> _List:
            words = list(words)
            words[first], words[second] = words[second], words[first]
            return words

        return swap

    table: dict[str, _Primitive] = {
        "same": list,
        "reverse": lambda words: words[::-1],
        "left": lambda words: words[1:] + words[:1],
        "right": lambda words: words[-1:] + words[:-1],
        "repeat first": lambda words: words[:1] + words,
        "repeat last": lambda words: words + words[-1:],
    }
    for first, second in ((0, 1), (-2, -1), (0, -1), (1, -2)):
        table[f"swap {first} {second}"] = swapped(first, second)
    for place in (0, 1, -1):
        table[f"drop {place}"] = partial(_without, place)
    return table


def _without(place: int, words: _List) -> _List:
    words = list(words)
    del words[place]
    return words


_PRIMITIVES = _primitives()


def _programs() -> Iterator[tuple[_Primitive, _Primitive]]:
    table = _PRIMITIVES
    yield from ((table["same"], step) for step in table.values())
    yield from product(table.values(), table.values())


class RuleInducer:
    """Answers compositions and concepts; carries a composition's list along.

    Args:
        depth: Links of a composition that it answers, at most.
    """

    def __init__(self, depth: float = math.inf) -> None:
        self._depth = depth
        self._links = 0
        self._rules: dict[str, tuple[_Primitive, _Primitive]] = {}
        self._list: _List = []

    def answer(self, prompt: str, pages: list[str]) -> list[str] | None:
        """Return an answer, None where the exercise is another.

        Args:
            prompt: What is asked.
            pages: What was shown since the item before.
        Returns: The values.
        """
        text = "\n".join(pages)
        if applied := re.match(r"Apply (\w+) to the (start|list)", prompt):
            if applied[2] == "start":
                self._begin(text)
            self._links += 1
            if self._links > self._depth:
                return []
            first, second = self._rules.get(applied[1], (list, list))
            self._list = second(first(self._list))
            return self._list
        if "Give the numbers of the objects" in prompt:
            return _concept(text)
        return None

    def _begin(self, text: str) -> None:
        """Find the rules of a page, and its start."""
        self._rules, self._links = {}, 0
        for name, given, wanted in _EXAMPLE.findall(text):
            for first, second in _programs():
                if second(first(given.split())) == wanted.split():
                    self._rules[name] = (first, second)
                    break
        start = re.search(r"^start: ([\w ]+)$", text, re.M)
        self._list = start[1].split() if start else []


def _concept(text: str) -> list[str]:
    """Return the numbers of the objects that have every feature that is needed."""
    needed: dict[int, str] = {}
    for yes, _, other, verdict in _PAIR.findall(text):
        pairs = zip(yes.split(), other.split(), strict=False)
        for place, (own, changed) in enumerate(pairs):
            if own != changed and verdict == "not":
                needed[place] = own
    return [
        number
        for number, words in _OBJECT.findall(text)
        if all(words.split()[place] == word for place, word in needed.items())
    ]
