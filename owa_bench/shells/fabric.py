"""The channel of a crew: all messages pass here, capped, muted and rated, untold.

A suite with seats sends through a `Fabric` and shows each seat what `take` returns. A message to a
seat that does not play, or of a muted crew, is dropped; its sender is told what it would be told
otherwise. Messages arrive in the tick after they were sent.

Source: docs/multicrew.md#channel
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from owa_bench.records.events import Message
from owa_bench.records.trace import sketch

CHARACTERS_IN_TOKEN = 4


class Letter(NamedTuple):
    """A message as its receiver is shown it; `tick` is when it was sent."""

    tick: int
    sender: str
    text: str


class Delivery(NamedTuple):
    """A message on its way: why it was refused ("" if not), who gets it, its event."""

    refusal: str
    receivers: tuple[str, ...] = ()
    event: Message | None = None


class Fabric:
    """The channel of one episode.

    Args:
        playing: The seats that play.
        muted: Whether everything is dropped.
        blob: Stores a text and returns its digest.
    """

    def __init__(
        self, playing: Sequence[str], *, muted: bool, blob: Callable[[bytes], str]
    ) -> None:
        self._playing = frozenset(playing)
        self._muted = muted
        self._blob = blob
        self._letters: defaultdict[str, list[Letter]] = defaultdict(list)
        self._next: dict[str, int] = {}

    def send(
        self,
        sender: str,
        receivers: Sequence[str],
        text: str,
        *,
        tick: int,
        step: int,
        interval: int = 1,
        tokens: int = 0,
    ) -> Delivery:
        """Send a text to other seats.

        Args:
            sender: A seat that plays.
            receivers: Seats; the sender's own is left out.
            text: The message.
            tick: Now.
            step: Number of the action, for the events.
            interval: Ticks from one message of a seat to its next.
            tokens: The most tokens of a message; 0: not limited.
        Returns: The outcome.
        """
        if tick < (free := self._next.get(sender, 0)):
            return Delivery(f"the channel takes your next message at tick {free}")
        size = token_count(text)
        if tokens and size > tokens:
            return Delivery(f"a message has at most {tokens} tokens, got {size}")
        self._next[sender] = tick + interval
        reached = tuple(
            seat
            for seat in dict.fromkeys(receivers)
            if seat != sender and seat in self._playing and not self._muted
        )
        if not reached:
            return Delivery("")
        for seat in reached:
            self._letters[seat].append(Letter(tick, sender, text))
        message = Message(
            step=step,
            source="env",
            sender=sender,
            receivers=reached,
            tokens=size,
            digest=self._blob(text.encode()),
            sketch=sketch(text),
        )
        return Delivery("", reached, message)

    def arrived(self, seat: str, *, tick: int) -> tuple[Letter, ...]:
        """Return the messages that have arrived for a seat and were not taken.

        Args:
            seat: The receiver.
            tick: Now; what was sent in this tick has not arrived.
        Returns: The messages, oldest first.
        """
        letters = self._letters[seat]
        return tuple(one for one in letters if one.tick < tick) if letters else ()

    def take(self, seat: str, *, tick: int) -> tuple[Letter, ...]:
        """Return the messages that have arrived for a seat, once.

        Args:
            seat: The receiver.
            tick: As for `arrived`.
        Returns: The messages, oldest first.
        """
        arrived = self.arrived(seat, tick=tick)
        if arrived:
            self._letters[seat] = self._letters[seat][len(arrived) :]
        return arrived


def token_count(text: str) -> int:
    """Return the tokens of a text: a token is four characters.

    >>> token_count("hello")
    2
    """
    return -(-len(text) // CHARACTERS_IN_TOKEN)
