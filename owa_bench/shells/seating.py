"""Turns of an episode: the seat that acts next, its sitting, its tools, its text.

A session that is not `Seated` has one seat, "", with one sitting.
"""

from collections.abc import Callable

import msgspec

from owa_bench import interfaces
from owa_bench.errors import UsageError
from owa_bench.interfaces.sessions import NO_ROUNDS
from owa_bench.records import events
from owa_bench.records.trace import EventT
from owa_bench.shells.calls import shorten
from owa_bench.shells.standard_tools import ENDING_TOOLS, tools_of


class Seating:
    """Whose turn it is in one episode, and what that seat is shown and offered."""

    def __init__(
        self,
        session: interfaces.Session,
        *,
        tools: tuple[str, ...] | None,
        tools_off: tuple[str, ...],
        forget: Callable[[str], None],
    ) -> None:
        self.crew = session if isinstance(session, interfaces.Seated) else None
        self._session = session
        self._allowed = tools
        self._tools_off = frozenset(tools_off)
        self._names = tuple(tool.name for tool in tools_of(session.tools))
        self._forget = forget
        self._sittings: dict[str, int] = {}
        self._unseen: dict[str, tuple[str, str]] = {}  # answers not shown yet, digests
        self._previews: dict[tuple[str, str, str], str] = {}  # of this round
        self._offers: dict[tuple[str, ...] | None, tuple[str, ...]] = {}
        self._recorded: dict[str, tuple[str, ...]] = {}  # last Tools event by seat
        self.offered = self._offer()  # names of the tools that may be called now

    @property
    def seats(self) -> tuple[str, ...]:
        """The seats that play, () where there is one."""
        return self.crew.seats if self.crew else ()

    @property
    def seat(self) -> str:
        """The seat that acts next."""
        return self.crew.seat if self.crew else ""

    @property
    def sitting(self) -> int:
        """The number of that seat's present sitting, from 0."""
        return self.crew.sitting if self.crew else 0

    @property
    def rounds(self) -> interfaces.Seated:
        """The session as one of rounds; UsageError where its seats take turns."""
        if self.crew is None:
            raise UsageError(NO_ROUNDS)
        return self.crew

    def task_of(self, seat: str) -> interfaces.Task:
        """Return the task that a seat is told."""
        return self.crew.task_of(seat) if self.crew else self._session.task

    def refusal(self, tool: str) -> str:
        """Return why a tool may not be called now, "" if it may."""
        if tool in self.offered:
            return ""
        known = ", ".join(self.offered)
        return f"`tool` must be one of those on offer now ({known}), got {tool!r}."

    def retires(self, tool: str) -> bool:
        """Give the present seat no further turn if the call means that; say whether.

        Only the first seat ends the episode.
        """
        crew = self.crew
        if crew is None or tool not in ENDING_TOOLS or crew.seat == crew.seats[0]:
            return False
        crew.retire(crew.seat)
        return True

    def keep(self, seat: str, answer: str, digest: str) -> None:
        """Keep an answer until its seat acts again.

        Args:
            seat: The seat that acted.
            answer: What it is to be shown.
            digest: Of the answer.
        """
        self._unseen[seat] = (answer, digest)

    def turn(self, step: int, blob: Callable[[bytes], str]) -> tuple[str, tuple[events.Event, ...]]:
        """Return what the seat that acts next is shown, and the events of its turn.

        Args:
            step: Number of the last action.
            blob: Stores a text and returns its digest.
        Returns: The text; Sitting and Tools where they change, and Observation.
        """
        seat, sitting = self.seat, self.sitting
        opening: list[events.Event] = []
        text, digest = self._unseen.pop(seat, ("", ""))
        if self._sittings.get(seat) != sitting:
            self._sittings[seat] = sitting
            self._forget(seat)
            text, digest = first_text(self.task_of(seat)), ""
            if self.crew is not None:
                opening.append(events.Sitting(step=step, number=sitting, role=seat))
        seen = self.crew.look() if self.crew else ""
        if seen:
            known = self._previews.pop((seat, text, seen), "")
            text, digest = known or _joined(text, seen), ""
        self.offered = self._offer()
        if self.offered != self._recorded.get(seat):
            self._recorded[seat] = self.offered
            offer = events.ToolOffer(step=step, names=self.offered, role=seat)
            opening.append(offer)
        digest = digest or blob(text.encode())
        opening.append(events.Observation(step=step, blob=digest, role=seat))
        return text, tuple(opening)

    def preview(self, seat: str) -> str:
        """Return what `turn` would return for a seat that acts in this round.

        Args:
            seat: One of a session with rounds that still plays.
        Returns: The text; nothing counts as shown by this.
        """
        text, _ = self._unseen.get(seat, ("", ""))
        if seat not in self._sittings:
            text = first_text(self.task_of(seat))
        seen = self.rounds.preview(seat)
        if len(self._previews) >= len(self.seats):
            self._previews.clear()
        whole = self._previews[seat, text, seen] = _joined(text, seen)
        return whole

    def _offer(self) -> tuple[str, ...]:
        allowed = self._session.offer
        if allowed is None:
            allowed = self._allowed
        if allowed not in self._offers:
            self._offers[allowed] = tuple(
                name
                for name in self._names
                if name not in self._tools_off and (allowed is None or name in allowed)
            )
        return self._offers[allowed]


def _joined(answer: str, seen: str) -> str:
    """Return an answer and what its seat is shown after it."""
    return shorten(f"{answer}\n\n{seen}" if answer else seen)


def first_text(task: interfaces.Task) -> str:
    """Return the text of a task with its listed propositions."""
    text = task.text
    if task.propositions:
        lines = [f"- {name}: {it}" for name, it in task.propositions.items()]
        text += "\n\nWhen you end, give the probability of each in `beliefs`:\n"
        text += "\n".join(lines)
    return shorten(text)


def by_seat(event: EventT, seat: str) -> EventT:
    """Return an event with the seat it belongs to.

    Args:
        event: Stays as it is where it names a seat already, and a drift always.
        seat: The seat, "" where there is one.
    """
    if not seat or event.role or isinstance(event, events.Drift):
        return event
    return msgspec.structs.replace(event, role=seat)
