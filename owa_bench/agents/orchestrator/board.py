"""The board on which roles leave each other messages, and who holds which role."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from owa_bench.records.events import Message

CHARACTERS_IN_TOKEN = 4


class Note(NamedTuple):
    """A message that arrived: who wrote it, its topic and what it is about."""

    sender: str
    topic: str
    thing: Any


class Board:
    """Carries notes between roles.

    `cap` is how many may hold roles: the first roles get a holder each, the last holder
    has all that remain. What a holder tells itself is no message. Between two holders
    each note is one, unless they are `muted`: then it is lost.
    """

    def __init__(self, roles: Sequence[str], cap: int | None, *, muted: bool) -> None:
        last = len(roles) if cap is None else max(1, cap)
        self._holders = {role: min(i, last - 1) for i, role in enumerate(roles)}
        self._muted = muted
        self._waiting: dict[str, list[Note]] = {role: [] for role in roles}
        self._sent: list[Message] = []

    @property
    def holders(self) -> int:
        """How many hold roles."""
        return len(set(self._holders.values()))

    def post(self, sender: str, receiver: str, topic: str, thing: Any = None) -> None:
        """Leave `receiver` a note about `thing`; it arrives at once or never."""
        apart = self._holders[sender] != self._holders[receiver]
        if apart and self._muted:
            return
        self._waiting[receiver].append(Note(sender, topic, thing))
        if apart:
            self._sent.append(_message(sender, receiver, topic))

    def take(self, role: str) -> list[Note]:
        """Return the notes for a role, once."""
        found, self._waiting[role] = self._waiting[role], []
        return found

    def sent(self) -> tuple[Message, ...]:
        """Return the messages since the last call, for the record."""
        found, self._sent = self._sent, []
        return tuple(found)


def _message(sender: str, receiver: str, words: str) -> Message:
    """Return the event of a message; the harness keeps its words as a blob."""
    tokens = -(-len(words) // CHARACTERS_IN_TOKEN)
    return Message(
        step=0, sender=sender, receivers=(receiver,), tokens=tokens, digest=words
    )
