"""Notices a model that goes round in circles."""

from owa_bench.errors import AgentRaised

LONGEST_CYCLE = 4  # actions of a circle that is noticed
ROUNDS = 8  # times a circle is gone round before it ends the episode
MOST_MALFORMED = 6  # malformed actions in a row


class Watch:
    """Sees every action of an episode.

    Errors: `see` raises AgentRaised for the action that closes the last round.
    """

    def __init__(self) -> None:
        self._actions: list[str] = []
        self._malformed = 0

    def see(self, action: str, *, malformed: bool) -> None:
        """Take the next action."""
        self._actions.append(action)
        self._malformed = self._malformed + 1 if malformed else 0
        if self._malformed >= MOST_MALFORMED:
            raise AgentRaised(
                f"an endless loop: {MOST_MALFORMED} replies in a row held no tool call "
                "that can be run; does the model (and its server) support tool calls?"
            )
        for length in range(1, LONGEST_CYCLE + 1):
            if self._circles(length):
                raise AgentRaised(
                    f"an endless loop: the same {length} call(s) {ROUNDS} times over, "
                    f"last {action[:120]}; a higher temperature or another model may "
                    "not get stuck"
                )

    def _circles(self, length: int) -> bool:
        last = self._actions[-length * ROUNDS :]
        return last == self._actions[-length:] * ROUNDS
