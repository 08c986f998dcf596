"""A seat of a crew by simple rules: what to read, tell, settle and work on next."""

from collections.abc import Iterator, Mapping
from typing import Any

from owa_bench.agents.solvers.crew.reading import ALONE, BUILDS_ON, ClauseFact, SeatConfig, build
from owa_bench.agents.solvers.crew.view import CrewView
from owa_bench.agents.solvers.planning import PlanCall
from owa_bench.interfaces import Brief

_QUESTION = "question:"
_SURE, _LIKELY, _LOST = 0.95, 0.8, 0.05
_ENOUGH = 0.8  # share of the effort that makes a success
_LETTERS = 4  # characters of a token
_WORTH = 6  # effort that makes an arbitration come before other work
_SILENCE = 9  # ticks without a sign of anybody after which a seat takes itself as alone
_REVIEW, _ARBITRATION = 3, 5  # ticks from work to merge where items are approved
_LAST = 1  # ticks before the deadline at which the lead ends


class CrewPlayer:
    """One seat of a crew.

    Args:
        brief: The task.
        config: How it works.
    """

    def __init__(self, brief: Brief, config: SeatConfig) -> None:
        self.view = CrewView(brief.goal)
        self._given = self._config = config
        self._unread = dict(brief.goal["documents"])
        self._again = False  # whether documents are read a second time
        self._told: set[str] = set()
        self._asked: set[str] = set()
        self._questions: list[tuple[str, str]] = []  # who asks, for which clause
        self._held = {self.view.seat}  # roles whose documents are this seat's
        self._tried: dict[str, int] = {}  # role: tick when a document was tried
        self._saying: set[str] = set()  # what the message on offer would tell whom
        self._reply: tuple[str, str] | None = None  # the question that it would answer
        self._next_message = 0
        self._heard = 0  # tick of the last message
        self._checked: set[str] = set()  # items found wrong once
        self._own: dict[str, int] = {}  # items worked out, and since when
        self._last = PlanCall("", {})
        self._weight = _followers(self.view.items)

    def advance(self, text: str) -> PlanCall:
        """Return the next call.

        Args:
            text: What the seat is shown.
        """
        self._note(text)
        alone = not self.view.seen and self.view.tick >= _SILENCE
        self._config = ALONE if alone else self._given
        self._last = next(self._options())
        return self._last

    def _note_call(self, last: PlanCall) -> None:
        """Note what the last call means, before its result is read."""
        view, given = self.view, last.arguments
        match last.tool:
            case "read" if role := self._unread.pop(given["name"], None):
                if role not in self._held:
                    self._tried[role] = view.tick
            case "ask" | "tell":
                self._next_message = view.tick + int(view.goal["interval"])
                self._asked.add(given.get("about", ""))
                if last.tool == "tell":
                    self._told |= self._saying
                    self._questions = [q for q in self._questions if q != self._reply]
            case "accept":
                view.settled[given["clause"]] = view.proposed.pop(given["clause"])[1]
            case "propose":
                self._told.add(given["clause"])
            case "review":
                view.drafts.pop(given["item"], None)
            case "arbitrate" if given["name"] in self._own:
                view.approved.add(given["name"])

    def _note(self, text: str) -> None:
        """Take in a turn: the result of the last call, the board, the messages."""
        view, last = self.view, self._last
        self._note_call(last)
        view.read(text)
        if view.letters:
            self._heard = view.tick
        for sender, letter in view.letters:
            if letter.startswith(_QUESTION):
                clause = letter.removeprefix(_QUESTION).strip()
                self._questions.append((sender, clause))
        self._held |= {r for r, at in self._tried.items() if view.tick == at + 1}
        self._tried.clear()
        name = str(last.arguments.get("item", ""))
        if last.tool == "work" and "is worked out at tick" in text:
            self._own[name] = view.tick
        elif last.tool == "merge" and f"{name} merged by {view.seat}" in text:
            self._own.pop(name, None)
            view.merged(name, text.partition("revision ")[2][:8])
        elif last.tool == "merge":
            view.approved.discard(name)
            if "conflicts with main" in text:
                self._own.pop(name, None)
        elif last.tool in ("work", "claim") and "is claimed by" in text:
            view.taken[name] = text.partition("is claimed by ")[2].split(".")[0]

    def _options(self) -> Iterator[PlanCall]:
        """Yield calls, the best first; the last is to wait."""
        view = self.view
        if view.seat == view.goal["seats"][0]:
            yield from self._ending()
        yield from self._merging()
        own = [d for d, owner in self._unread.items() if owner in self._held]
        if self._config.answers:
            yield from self._answering(own)
        if self._config.tells:
            yield from self._reading(own)
            yield from self._telling()
        if self._config.settles:
            yield from self._settling()
        waited = view.tick >= self._heard + self._config.patience
        if waited:
            yield from self._deciding(_WORTH)
        yield from self._working()
        yield from self._reading(own)
        if self._config.asks:
            yield from self._asking()
        if waited:
            yield from self._reading(self._wanted_documents())
            yield from self._deciding(0)
        if self._config.checks and view.seat == view.goal["seats"][-1]:
            yield from self._checking()
        yield PlanCall("pass_turn", {"ticks": 1})

    def _ending(self) -> Iterator[PlanCall]:
        view = self.view
        efforts = {name: item["effort"] for name, item in view.items.items()}
        merged = view.revisions.keys() & view.items.keys()
        done = sum(efforts[name] for name in merged) / sum(efforts.values())
        open_ = view.contested - view.settled.keys()
        if len(view.revisions) == len(view.items) and not open_:
            yield self._finish(_SURE)
        if view.tick >= view.deadline - _LAST:
            likely = done >= _ENOUGH and not open_
            yield self._finish(_LIKELY if likely else _LOST)

    def _finish(self, p: float) -> PlanCall:
        return PlanCall("finish", {"p": p, "beliefs": self.view.beliefs()})

    def _merging(self) -> Iterator[PlanCall]:
        """Yield a merge of own work, or a review of others' where that is asked for."""
        view = self.view
        for name, since in self._own.items():
            if not view.goal["reviewed"] or name in view.approved:
                yield PlanCall("merge", {"item": name})
            elif view.tick >= since + self._config.patience:
                yield PlanCall("arbitrate", {"name": name})
        seats = list(view.goal["seats"])
        for name, (author, ready) in list(view.drafts.items()):
            turn = seats[(seats.index(author) + 1) % len(seats)] == view.seat
            late = view.tick > ready + 1
            if view.goal["reviewed"] and view.tick >= ready and (turn or late):
                arguments = {"item": name, "verdict": "approve"}
                yield PlanCall("review", arguments)

    def _working(self) -> Iterator[PlanCall]:
        """Yield the work on an item whose values are known, or what it builds on."""
        view = self.view
        family = str(view.goal["family"])
        able = [item for item in view.ready() if not view.lacking(item)]
        able = [item for item in able if item["name"] not in self._own]
        able = [item for item in able if view.hours >= item["effort"]]
        left = view.deadline - view.tick - self._passing()
        able = [item for item in able if item["effort"] <= left]
        if not self._config.helps:
            able = [item for item in able if self._mine(item)]
        if self._config.longest:
            able.sort(key=lambda item: -self._weight[item["name"]])
        able.sort(key=lambda item: not self._mine(item))
        for item in able[:1]:
            for need in item["needs"]:
                if need not in view.fragments and family.endswith(BUILDS_ON):
                    yield PlanCall("read", {"name": need})
            values = {name: view.value(name) for name in view.needed(item)}
            before = {n: view.fragments.get(n, {}) for n in item["needs"]}
            fragment = build(family, item, values, before)
            if item["name"] in view.stamps:
                fragment["stamp"] = view.stamps[item["name"]]
            pins = {name: view.revisions[name] for name in item["needs"]}
            arguments = {"item": item["name"], "fragment": fragment, "pins": pins}
            yield PlanCall("work", arguments)

    def _passing(self) -> int:
        """Return the ticks from an item's being worked out to its being merged."""
        if not self.view.goal["reviewed"]:
            return 1
        return _REVIEW if self.view.seen else _ARBITRATION

    def _checking(self) -> Iterator[PlanCall]:
        """Yield the reading of a merged fragment, and the work on one that is wrong."""
        view, family = self.view, str(self.view.goal["family"])
        wrong = set()
        for name in [n for n in view.revisions if n in view.items]:
            item = view.items[name]
            if view.lacking(item) or not view.fragments.keys() >= set(item["needs"]):
                continue
            if name not in view.fragments:
                yield PlanCall("read", {"name": name})
                return
            values = {clause: view.value(clause) for clause in view.needed(item)}
            before = {need: view.fragments[need] for need in item["needs"]}
            right = build(family, item, values, before)
            made = {k: v for k, v in view.fragments[name].items() if k != "stamp"}
            if made != right and name not in self._checked:
                wrong.add(name)
        if wrong:
            self._checked |= wrong
            view.reopen(wrong)
            yield from self._working()

    def _mine(self, item: Mapping[str, Any]) -> bool:
        """Return whether an item is for this seat, or for a role that nobody fills."""
        return item["role"] == self.view.seat or item["role"] not in self.view.seen

    def _reading(self, names: list[str]) -> Iterator[PlanCall]:
        for name in names[:1]:
            yield PlanCall("read", {"name": name})

    def _wanted_documents(self) -> list[str]:
        """Return documents that may hold what is lacking, absent roles' first."""
        view = self.view
        open_ = [i for n, i in view.items.items() if n not in view.revisions]
        if not self._config.helps:
            open_ = [item for item in open_ if self._mine(item)]
        lacking = {clause for item in open_ for clause in view.lacking(item)}
        if not lacking:
            return []
        if lacking <= view.distrusted and not self._again:
            self._again = True
            self._unread = dict(view.goal["documents"])
        owners = {view.goal["owners"].get(clause, "") for clause in lacking}
        wanted = [d for d, o in self._unread.items() if "" in owners or o in owners]
        return sorted(wanted, key=lambda name: self._unread[name] in view.seen)

    def _telling(self) -> Iterator[PlanCall]:
        """Yield a message with facts that one other role's open items need."""
        view = self.view
        if view.tick < self._next_message:
            return
        for role, known in list(self._news().items())[:1]:
            room = int(view.goal["tokens"]) * _LETTERS
            said: list[str] = []
            self._saying, self._reply = set(), None
            for fact in dict.fromkeys(known):
                room -= len(fact.sentence) + 1
                if said and room < 0:
                    break
                said.append(fact.sentence)
                self._saying.add(f"{role}/{fact.clause}")
            yield PlanCall("tell", {"to": role, "text": " ".join(said)})

    def _news(self) -> dict[str, list[ClauseFact]]:
        """Return by role what was not told yet; what no item names is for all."""
        view = self.view
        found: dict[str, list[ClauseFact]] = {}
        for name in sorted(view.items, key=lambda name: -self._weight[name]):
            item = view.items[name]
            if name in view.revisions or item["role"] == view.seat:
                continue
            for clause in item["clauses"]:
                fact = view.facts.get(clause)
                if fact and f"{item['role']}/{clause}" not in self._told:
                    found.setdefault(item["role"], []).append(fact)
        for clause, fact in view.facts.items():
            of_part = clause.endswith((".flag", ".version"))
            if of_part and f"all/{clause}" not in self._told:
                found.setdefault("all", []).append(fact)
        lead = str(view.goal["seats"][0])
        if self._config.hub and view.seat != lead:
            known = dict.fromkeys(fact for facts in found.values() for fact in facts)
            new = [f for f in known if f"{lead}/{f.clause}" not in self._told]
            return {lead: new} if new else {}
        return found

    def _answering(self, own: list[str]) -> Iterator[PlanCall]:
        """Yield the answer to a question, or the reading that may answer it."""
        view = self.view
        for question in list(self._questions):
            sender, clause = question
            fact = view.facts.get(clause)
            if fact is None and own:
                yield from self._reading(own)
            self._questions.remove(question) if fact is None else None
            if fact is not None and view.tick >= self._next_message:
                self._saying, self._reply = set(), question
                yield PlanCall("tell", {"to": sender, "text": fact.sentence})

    def _asking(self) -> Iterator[PlanCall]:
        """Yield a question for what an own item that is ready lacks."""
        view = self.view
        if view.tick < self._next_message:
            return
        for item in view.ready():
            for clause in view.lacking(item) if self._mine(item) else ():
                owner = view.goal["owners"].get(clause, "all")
                owner = "all" if view.goal["human"] else owner
                if clause not in self._asked and owner != view.seat:
                    yield PlanCall("ask", {"to": owner, "about": clause})

    def _settling(self) -> Iterator[PlanCall]:
        """Yield acceptance of a right proposal, or a proposal on the best ground."""
        view = self.view
        for clause, (seat, value) in list(view.proposed.items()):
            fact = view.facts.get(clause)
            if clause in view.settled or seat == view.seat or fact is None:
                continue
            if fact.value == value:
                yield PlanCall("accept", {"clause": clause})
        for clause in sorted(view.contested & view.facts.keys() - view.settled.keys()):
            fact = view.facts[clause]
            if clause in self._told or fact.ground not in ("law", "word"):
                continue
            yield PlanCall("propose", {"clause": clause, "value": fact.value})

    def _deciding(self, worth: int) -> Iterator[PlanCall]:
        """Yield an arbitration of a contested clause of own items that are merged.

        Args:
            worth: The least effort that must wait for it.
        """
        view = self.view
        for clause in sorted(view.contested - view.settled.keys()):
            own = [
                item
                for name, item in view.items.items()
                if clause in view.needed(item) and name in view.revisions and self._mine(item)
            ]
            if own and sum(self._weight[item["name"]] for item in own) >= worth:
                yield PlanCall("arbitrate", {"name": clause})


def _followers(items: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the effort of the longest chain that begins with each item."""
    found: dict[str, int] = {}
    for name in reversed(list(items)):
        after = [found[n] for n, other in items.items() if name in other["needs"]]
        found[name] = int(items[name]["effort"]) + max(after, default=0)
    return found
