"""The crew's work as one seat knows it: facts, the board, who is there."""

import json
import re
from collections.abc import Mapping
from typing import Any

from owa_bench.agents.solvers.crew.reading import ClauseFact, read_facts

_TICK = re.compile(r"^Tick (\d+) of (\d+), (\d+) ticks of work left\.$")
_MERGED = re.compile(r"(\S+) merged by (\S+), revision ([0-9a-f]+)")
_IN_WORK = re.compile(r"(\S+) (?:in work|claimed) by ([a-z]+)")
_HANDED = re.compile(r"(\S+) handed to ([a-z]+)")
_PROPOSED = re.compile(r"([a-z]+) proposes for (\S+): (.+)\.")
_SETTLED = re.compile(r"(\S+) settled: (.+)\.")
_VERDICT = re.compile(r"(\S+) (approved|rejected)")
_WORKED = re.compile(r"(\S+) in work by ([a-z]+) until tick (\d+)")
_STAMP = re.compile(r"fragment of (\S+) must carry stamp (\S+)\.")
_FRAGMENT = re.compile(r"^(\S+), revision ([0-9a-f]+), by \S+:\n(\{.*)$", re.M)
_WORDS = {"integrated by": "merged by", ", build ": ", revision "}
_KEPT = re.compile(r"^\S+, kept by ([a-z]+):$", re.M)
_SURE = 0.95
_MESSAGE = re.compile(r"^Message from ([a-z]+): (.*)$", re.M)


class CrewView:
    """The work as one seat has seen it.

    Args:
        goal: Of the brief.
    """

    def __init__(self, goal: Mapping[str, Any]) -> None:
        self.goal = goal
        self.items: dict[str, Mapping[str, Any]] = {i["name"]: i for i in goal["items"]}
        self.tick = 0
        self.deadline = int(goal["deadline"])
        self.hours = 0
        self.facts: dict[str, ClauseFact] = {}
        self.contested: set[str] = set()
        self.settled: dict[str, str] = {}
        self.proposed: dict[str, tuple[str, str]] = {}  # clause: (seat, value)
        self.revisions: dict[str, str] = {}
        self.fragments: dict[str, dict[str, Any]] = {}
        self.taken: dict[str, str] = {}  # item: seat that has it
        self.drafts: dict[str, tuple[str, int]] = {}  # others' items: author, ready
        self.approved: set[str] = set()
        self.stamps: dict[str, str] = {}
        self.distrusted: set[str] = set()  # clauses whose value a check refused
        self.seen: set[str] = set()  # roles that gave a sign
        self.letters: list[tuple[str, str]] = []  # messages of this turn
        self.keepers: dict[str, set[str]] = {}  # clause: roles known to have it

    @property
    def seat(self) -> str:
        """The seat that sees."""
        return str(self.goal["seat"])

    def read(self, text: str) -> None:
        """Take in what a turn shows."""
        self.letters = _MESSAGE.findall(text)
        self.seen.update(sender for sender, _ in self.letters)
        for line in text.split("\n"):
            if found := _TICK.match(line):
                self.tick, self.deadline, self.hours = map(int, found.groups())
            elif line.startswith("Board: "):
                self._board(line.removeprefix("Board: "))
            elif found := _SETTLED.fullmatch(line):
                self.settled[found[1]] = found[2]
            elif found := _STAMP.search(line):
                self.stamps[found[1]] = found[2]
                self.reopen({found[1]})
        for name, revision, body in _FRAGMENT.findall(text):
            self.revisions[name] = revision
            self.fragments[name] = json.loads(body)
        keeper = kept[1] if (kept := _KEPT.search(text)) else ""
        for fact in read_facts(_MESSAGE.sub("", text)):
            self._learn(fact, keeper)
        for sender, body in self.letters:
            for fact in read_facts(body):
                self._learn(fact, sender)

    def _learn(self, fact: ClauseFact, keeper: str) -> None:
        known = self.facts.get(fact.clause)
        if keeper:
            self.keepers.setdefault(fact.clause, set()).add(keeper)
        if fact.contested:
            self.contested.add(fact.clause)
        if known is None or fact.rank <= known.rank:
            self.facts[fact.clause] = fact
            self.distrusted.discard(fact.clause)
            if known is not None and known.value != fact.value:
                self.reopen({n for n, i in self.items.items() if fact.clause in i["clauses"]})

    def reopen(self, names: set[str]) -> None:
        """Take merged items, and what builds on them, as to be done anew."""
        for name, item in self.items.items():  # each after those that it needs
            if name in names or names.intersection(item["needs"]):
                names.add(name)
                self.revisions.pop(name, None)

    def _board(self, line: str) -> None:
        for word, usual in _WORDS.items():
            line = line.replace(word, usual)
        if found := _MERGED.search(line):
            self.merged(found[1], found[3])
            self.seen.add(found[2])
            self._fails(line)
        elif "fails its check" in line:
            self._fails(line)
        elif found := _WORKED.search(line):
            self.taken[found[1]] = found[2]
            self.drafts[found[1]] = (found[2], int(found[3]))
            self.seen.add(found[2])
        elif found := _PROPOSED.fullmatch(line):
            self.proposed[found[2]] = (found[1], found[3])
            self.seen.add(found[1])
        elif found := _SETTLED.fullmatch(line):
            self.settled[found[1]] = found[2]
        elif found := _IN_WORK.search(line) or _HANDED.search(line):
            self.taken[found[1]] = found[2]
            self.seen.add(found[2])
        elif found := _VERDICT.search(line):
            self.drafts.pop(found[1], None)
            if found[2] == "approved":
                self.approved.add(found[1])

    def _fails(self, line: str) -> None:
        """Distrust the values that a check refused; the item is to be done anew."""
        name, _, rest = line.partition(" fails its check on ")
        if not rest:
            return
        name = name.split(" ")[0]
        for clause in rest.rstrip(".").split(", "):
            self.facts.pop(clause, None)
            self.distrusted.add(clause)
        self.reopen({name})

    def merged(self, name: str, revision: str) -> None:
        """Note that an item is merged.

        Args:
            name: The item.
            revision: Its revision.
        """
        self.revisions[name] = revision
        self.fragments.pop(name, None)
        self.taken.pop(name, None)
        self.drafts.pop(name, None)
        self.approved.discard(name)

    def value(self, clause: str) -> str:
        """Return the value that holds as far as is known, "" where none is known."""
        if clause in self.settled:
            return self.settled[clause]
        fact = self.facts.get(clause)
        return fact.value if fact else ""

    def beliefs(self) -> dict[str, float]:
        """Return the probability of each listed claim about which something is known.

        Who was told a fact may tell it on: a keeper by hearsay is likely, not sure.
        """
        found = {}
        for claim in self.goal["claims"]:
            clause, fact = claim["clause"], self.facts.get(claim["clause"])
            if claim["kind"] == "in_force" and (value := self.value(clause)):
                found[claim["name"]] = int(value[-1]) % 2 == 0
            elif claim["kind"] == "owner" and clause in self.keepers:
                found[claim["name"]] = claim["role"] in self.keepers[clause]
            elif claim["kind"] == "contested" and (fact or clause in self.settled):
                there = clause in self.contested or clause in self.settled
                found[claim["name"]] = there
        return {name: _SURE if true else 1 - _SURE for name, true in found.items()}

    def lacking(self, item: Mapping[str, Any]) -> list[str]:
        """Return the clauses of an item whose values are not known."""
        return [name for name in self.needed(item) if not self.value(name)]

    def needed(self, item: Mapping[str, Any]) -> list[str]:
        """Return the clauses that an item must meet, as far as that is known."""
        found = list(item["clauses"])
        if part := self.value(f"{item['name']}.cause"):
            found += [f"{part}.flag", f"{part}.version"]
        return found

    def ready(self) -> list[Mapping[str, Any]]:
        """Return the items that may be begun, by nobody's work, in the task's order."""
        return [
            item
            for name, item in self.items.items()
            if name not in self.revisions
            and self.taken.get(name, self.seat) == self.seat
            and self.revisions.keys() >= set(item["needs"])
        ]
