"""Working memory of the reference agents: a bounded number of words of a list."""

import math
import re
from collections import deque

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
