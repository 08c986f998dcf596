"""What an agent says of novelty: a probability and a threshold, when they change."""

from typing import NamedTuple

from owa_bench.interfaces import Move

NOVELTY, THRESHOLD = "novelty", "novelty_threshold"
_STEP = 0.02  # smaller changes are not worth an event


class Statement(NamedTuple):
    """A probability that this episode is novel, and from where on it counts as one."""

    p: float
    threshold: float = 0.5


class Speaker:
    """Adds a statement to a move where it differs from the last one."""

    def __init__(self) -> None:
        self._said: Statement | None = None

    def move(self, action: int, now: Statement) -> Move:
        """Return the move, with what is new to say."""
        bounded = Statement(min(max(now.p, 0.0), 1.0), now.threshold)
        if self._said is not None and not _differs(self._said, bounded):
            return Move(action)
        self._said = bounded
        return Move(
            action, beliefs=((NOVELTY, bounded.p), (THRESHOLD, bounded.threshold))
        )


def _differs(a: Statement, b: Statement) -> bool:
    crossed = (a.p >= a.threshold) != (b.p >= b.threshold)
    return crossed or abs(a.p - b.p) >= _STEP
