"""Induction of list rules and concepts by search, and memory of words of a list.

A program is a sequence of at most two primitives on lists; the first that maps every example is
taken. A concept is the set of features without which an object does not fall under it.
"""

import math
import re
from collections import deque
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


# --- working memory: a bounded number of words of a list ------------------------------


_LINE = re.compile(r"^(word|upper|slot (\d+)): (.*)$")


class ListMemory:
    """Keeps the last `capacity` words, or slots, of the list that is being read."""

    def __init__(self, capacity: float = math.inf) -> None:
        self._most = None if math.isinf(capacity) else int(capacity)
        self.clear()

    def clear(self) -> None:
        """Begin a new list."""
        self._words: deque[str] = deque(maxlen=self._most)
        self._slots: dict[int, str] = {}

    def read(self, text: str) -> None:
        """Take in a page."""
        for line in text.splitlines():
            found = _LINE.match(line)
            if found is None:
                continue
            if found[2] is None:
                self._words.append(found[3])
                continue
            self._slots.pop(int(found[2]), None)
            self._slots[int(found[2])] = found[3]
            while self._most is not None and len(self._slots) > self._most:
                self._slots.pop(next(iter(self._slots)))

    def answer(self, prompt: str) -> list[str]:
        """Return the list that a prompt asks for, as far as it is kept."""
        if slots := re.search(r"slots 1 to (\d+)", prompt):
            numbers = range(1, int(slots[1]) + 1)
            return [self._slots.get(number, "") for number in numbers]
        wanted = int((re.search(r"(\d+) words", prompt) or ["", "0"])[1])
        return list(self._words)[-wanted:]

    def same_as_before(self, prompt: str) -> bool | None:
        """Return whether an n-back stimulus is that of n before, None if unasked."""
        found = re.match(r"(\d+)-back, (\d+) of \d+: (\w+)\.", prompt)
        if found is None:
            return None
        n, place, word = int(found[1]), int(found[2]), found[3]
        if place == 1:
            self.clear()
        same = len(self._words) >= n and self._words[-n] == word
        self._words.append(word)
        return same
