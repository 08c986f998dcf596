"""The simulated clock of an episode."""

from collections.abc import Sequence


class SimulatedClock:
    """Simulated milliseconds since reset, and which world of a timeline holds now.

    `starts` are the timeline's; nothing sleeps and the clock never runs back.
    """

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = tuple(starts)
        self.now_ms = 0
        self.world = 0

    def advance(self, elapsed_ms: int) -> range:
        """Move on and return the indices of the worlds whose start was passed."""
        self.now_ms += elapsed_ms
        before = self.world
        while (
            self.world + 1 < len(self._starts)
            and self._starts[self.world + 1] <= self.now_ms
        ):
            self.world += 1
        return range(before + 1, self.world + 1)
