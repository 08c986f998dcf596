"""Memories of the reference agents within a quota, and BM25 over what they keep.

All of them write one file, `register`, and answer from what it holds.
"""

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench import seeding
from owa_bench.agents.solvers.recall.reading import (
    Fact,
    RegisterClaim,
    RegisterQuery,
    RegisterReader,
)

_SATURATION, _LENGTH = 1.2, 0.75


class TextIndex:
    """Term counts of some texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_terms(text)) for text in texts]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / max(len(texts), 1)
        self._spread = Counter(term for counts in self._counts for term in counts)

    def ranked(self, query: str) -> list[int]:
        """Return the places of texts that hold a term of a query, best first."""
        terms = set(_terms(query))
        scores = {
            place: self._score(place, terms)
            for place, counts in enumerate(self._counts)
            if terms & counts.keys()
        }
        return sorted(scores, key=lambda place: (-scores[place], place))

    def _score(self, place: int, terms: set[str]) -> float:
        counts, texts = self._counts[place], len(self._counts)
        length = self._lengths[place] / self._mean
        total = 0.0
        for term in terms & counts.keys():
            spread, count = self._spread[term], counts[term]
            weight = math.log(1 + (texts - spread + 0.5) / (spread + 0.5))
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * length)
            total += weight * count * (_SATURATION + 1) / (count + damping)
        return total


def _terms(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


# --- memories: what each keeps of a register within its quota -------------------------


FILE = "register"
_LIKELY, _UNLIKELY = 0.95, 0.05
_SPARE = 16  # bytes of the quota that are left: the file's name


class Entry(NamedTuple):
    """A value and the notice that states it."""

    value: str
    source: int


class FactStore:
    """Keeps parsed facts about the subjects that questions name; forgets nothing.

    Args:
        goal: Of the brief.
        quota: Bytes of the folder.
    """

    def __init__(self, goal: Mapping[str, Any], quota: int) -> None:
        self.quota = quota
        self.day = 0
        self._subjects = {name: at for at, name in enumerate(goal.get("watched", ()))}
        self._relations = tuple(goal.get("relations", ()))
        self.reader = RegisterReader(goal, {})
        self.facts: list[Fact] = []

    def load(self, folder: Path) -> None:
        """Read what the sitting before kept."""
        path = folder / FILE
        if path.exists():
            head, *lines = zlib.decompress(path.read_bytes()).decode().split("\n")
            self.reader.renamed.update(json.loads(head))
            self.facts = [self._unpacked(line) for line in lines]

    def save(self, folder: Path) -> None:
        """Write the facts; under the quota the oldest superseded ones go first."""
        while True:
            packed = self._packed()
            if len(packed) + _SPARE <= self.quota or not self.facts:
                break
            self.facts.remove(self._least_needed())
        (folder / FILE).write_bytes(packed)

    def read(self, day: int, text: str) -> None:
        """Take in a page.

        Args:
            day: Its day.
            text: Its text.
        """
        self.day = day
        for fact in self.reader.facts(day, text):
            known = {kept.number for kept in self.facts}
            wanted = fact.subject in self._subjects and not fact.rumour
            if (wanted and not fact.inverse) or fact.withdraws in known:
                self.facts.append(fact)

    def entries(self, query: RegisterQuery) -> Sequence[Entry]:
        """Return the entries that answer a question, the best first."""
        return _holding(self.facts, query)

    def belief(self, claim: RegisterClaim) -> float:
        """Return the probability of a claim, 1/2 where nothing is kept of it."""
        query = RegisterQuery(claim.subject, claim.relation)
        holding, facts = self.entries(query), self._statements(query)
        if not (holding and facts):
            return 0.5
        if claim.superseded:
            return _LIKELY if holding[0].value != facts[0].value else _UNLIKELY
        return _LIKELY if len({fact.value for fact in facts}) > 1 else _UNLIKELY

    def _statements(self, query: RegisterQuery) -> list[Fact]:
        """Return what was ever stated on a pair, first issued first."""
        return _authoritative(self.facts, query)

    def _packed(self) -> bytes:
        head = json.dumps(self.reader.renamed, separators=(",", ":"))
        lines = [self._line(fact) for fact in self.facts]
        return zlib.compress("\n".join((head, *lines)).encode(), 9)

    def _line(self, fact: Fact) -> str:
        """Return a fact as number, day, and subject and relation by their places."""
        if fact.withdraws:
            return f"{fact.number} {fact.day} {fact.withdraws}"
        who, what = self._subjects[fact.subject], self._relations.index(fact.relation)
        return f"{fact.number} {fact.day} {who} {what}{fact.value}"

    def _unpacked(self, line: str) -> Fact:
        number, day, *words = line.split(" ", 3)
        if len(words) == 1:
            return Fact(int(number), int(day), withdraws=int(words[0]))
        subject = list(self._subjects)[int(words[0])]
        relation, value = self._relations[int(words[1][0])], words[1][1:]
        return Fact(int(number), int(day), subject, relation, value)

    def _least_needed(self) -> Fact:
        """Return the oldest fact with a later one on its pair, else the oldest."""
        last = {(fact.subject, fact.relation): fact.number for fact in self.facts}
        old = [f for f in self.facts if last[f.subject, f.relation] != f.number]
        return min(old or self.facts, key=lambda fact: fact.number)


def _holding(facts: Iterable[Fact], query: RegisterQuery) -> list[Entry]:
    """Return the entries in force, the last issued first."""
    facts = [fact for fact in facts if fact.number != query.without]
    withdrawn = {fact.withdraws for fact in facts if fact.withdraws}
    return [
        Entry(fact.value, fact.number)
        for fact in reversed(_authoritative(facts, query))
        if fact.number not in withdrawn
    ]


def _authoritative(facts: Iterable[Fact], query: RegisterQuery) -> list[Fact]:
    """Return the statements on a pair that have authority, first issued first."""
    return sorted(
        fact
        for fact in facts
        if (fact.subject, fact.relation) == (query.subject, query.relation)
        and not fact.rumour
        and not fact.inverse
    )


class NoStore(FactStore):
    """Keeps nothing between sittings."""

    def save(self, folder: Path) -> None:
        """Write nothing."""


class BoundedStore(FactStore):
    """Keeps the last `capacity` facts."""

    capacity = 0

    def save(self, folder: Path) -> None:
        """Write the last facts."""
        self.facts = self.facts[-self.capacity :] if self.capacity else []
        super().save(folder)


class FadingStore(FactStore):
    """Recalls an item with a probability that halves in `half_life` days.

    At age a of its last notice that is 2^(-a / half_life), drawn anew each day from the agent's
    seed.
    """

    half_life = math.inf
    seed = 0

    def entries(self, query: RegisterQuery) -> Sequence[Entry]:
        """Return the entries of an item, () where it is not recalled today."""
        withdrawn = {fact.withdraws: fact for fact in self.facts if fact.withdraws}
        about = [
            fact
            for fact in self.facts
            if (fact.subject, fact.relation) == (query.subject, query.relation)
        ]
        last = max(
            (withdrawn.get(fact.number, fact) for fact in about),
            key=lambda fact: fact.number,
            default=None,
        )
        if last is None:
            return ()
        draws = seeding.stream(self.seed, "fading", last.number, self.day)
        if draws.random() >= math.exp2(-(self.day - last.day) / self.half_life):
            return ()
        return super().entries(query)


class LineStore(FactStore):
    """Keeps the lines of notices as text, the newest that fit; ranks them by BM25.

    `verifies`: of what is found, only lines count that are about the subject and the relation, in
    their roles, with authority and not withdrawn.
    """

    verifies = False

    def __init__(self, goal: Mapping[str, Any], quota: int) -> None:
        super().__init__(goal, quota)
        self.lines: list[str] = []

    def load(self, folder: Path) -> None:
        """Read the lines that the sitting before kept."""
        path = folder / FILE
        self.lines = path.read_text().splitlines() if path.exists() else []
        for line in self.lines:
            list(self.reader.facts(0, line))  # renamed relations

    def save(self, folder: Path) -> None:
        """Write the newest lines that fit."""
        size, first = 0, len(self.lines)
        while first and size + len(self.lines[first - 1]) + 1 + _SPARE <= self.quota:
            first -= 1
            size += len(self.lines[first]) + 1
        self.lines = self.lines[first:]
        (folder / FILE).write_text("\n".join(self.lines))

    def read(self, day: int, text: str) -> None:
        """Take in the lines of a page.

        Args:
            day: Its day.
            text: Its text.
        """
        self.day = day
        list(self.reader.facts(day, text))
        self.lines += text.splitlines()

    def entries(self, query: RegisterQuery) -> Sequence[Entry]:
        """Return the entries of the best lines."""
        if not self.lines:
            return ()
        ranked = TextIndex(self.lines).ranked(f"{query.subject} {query.relation}")
        facts = [self.reader.fact(0, self.lines[place]) for place in ranked]
        found = [fact for fact in facts if fact is not None]
        if self.verifies:
            withdrawals = [self.reader.fact(0, line) for line in self.lines]
            found += [fact for fact in withdrawals if fact is not None and fact.withdraws]
            return _holding(found, query)
        return [Entry(f.value, f.number) for f in found if not f.withdraws]


class VerifyingStore(LineStore):
    """The same with every line verified."""

    verifies = True

    def _statements(self, query: RegisterQuery) -> list[Fact]:
        """Return what the lines ever stated on a pair, first issued first."""
        facts = (self.reader.fact(0, line) for line in self.lines)
        return _authoritative((fact for fact in facts if fact is not None), query)


class TranscriptStore(VerifyingStore):
    """Keeps whatever it is shown, tasks and questions too."""

    def read(self, day: int, text: str) -> None:
        """Take in a text with its day.

        Args:
            day: Its day.
            text: Its text.
        """
        super().read(day, f"Day {day}.\n{text}")


StoreFactory = Callable[[Mapping[str, Any], int], FactStore]
