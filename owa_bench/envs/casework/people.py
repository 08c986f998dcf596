"""People of the company in the chat: scripts that answer one fact a message, later."""

from typing import Any

from owa_bench.canonical import sha256
from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.messages import ChatFact

_LEAST, _SPREAD = 10, 36  # minutes until an answer
_NOT_MINE = "Sorry, that is not my area. Please ask somebody else."
_WHICH = "That is several things at once. Which one do you need first?"


class CaseChat:
    """The chat of a case.

    Args:
        world: Its people and what they know.
    """

    def __init__(self, world: CaseWorld) -> None:
        self._people = {row.id: row for row in world.tables["people"]}
        self._facts = world.facts
        self._talks: list[dict[str, Any]] = []
        self._due: list[tuple[int, dict[str, Any], str]] = []
        self.unread = 0

    def people(self) -> list[dict[str, str]]:
        """Return who can be asked."""
        return [{"id": row.id, "name": row.name, "role": row.role} for row in self._people.values()]

    def ask(self, to: str, text: str, minute: int) -> str:
        """Ask somebody; the answer comes 10 to 45 minutes later.

        Args:
            to: Key of the person.
            text: The question.
            minute: Of the case.
        Returns: Why nothing was asked, "" if it was.
        """
        person = self._people.get(to)
        if person is None:
            return f"`to` must be the key of a person, got {to!r}."
        if not text.strip():
            return "`text` must hold a question."
        talk = {"to": to, "question": text, "answer": None}
        self._talks.append(talk)
        delay = _LEAST + int(sha256(f"{to}|{text}".encode())[:8], 16) % _SPREAD
        self._due.append((minute + delay, talk, self._answer(person.role, text)))
        return ""

    def pass_time(self, minute: int) -> None:
        """Bring the answers that are due.

        Args:
            minute: Of the case.
        """
        for entry in [entry for entry in self._due if entry[0] <= minute]:
            self._due.remove(entry)
            entry[1]["answer"] = entry[2]
            self.unread += 1

    def read(self) -> list[dict[str, Any]]:
        """Return all talks; nothing is unread any more."""
        self.unread = 0
        return self._talks

    def _answer(self, role: str, text: str) -> str:
        words = text.lower()
        asked = [fact for fact in self._facts if any(word in words for word in fact.words)]
        if len(asked) > 1:
            return _WHICH
        known = [fact for fact in asked if _knows(fact, role)]
        known += [fact for fact in self._facts if not fact.words and _knows(fact, role)]
        return known[0].answer if known else _NOT_MINE


def _knows(fact: ChatFact, role: str) -> bool:
    return any(role.startswith(name) for name in fact.roles)
