"""Players of the seats of a crew in a Gymnasium env, which has one player.

A seat must not use what another seat alone was shown. One player who reads the texts of all seats
cannot help it, so the env asks who plays, and every text says for whom it is.

Source: docs/multicrew.md#one-env-many-seats
"""

from collections.abc import Callable
from typing import Any, Literal

import gymnasium as gym

from owa_bench.errors import UsageError
from owa_bench.interfaces import SuiteCard
from owa_bench.shells.calls import shorten
from owa_bench.shells.tool_env import ToolEnv

ONE_READER, EACH_SEAT = "one_reader", "each_seat"
SeatPlayer = Callable[[str, Any, dict[str, Any]], Any]
SeatPolicy = Literal["one_reader", "each_seat"] | SeatPlayer
_NOW: dict[object, str] = {
    ONE_READER: "You play every seat, and may use what any of them was shown. Now: {}.",
    EACH_SEAT: "For {} alone: no other seat may use what only this one is shown.",
}


def check_seat_policy(card: SuiteCard, policy: object) -> None:
    """Refuse an env of a crew of which nobody says who plays its seats.

    Args:
        card: Of the suite.
        policy: The option `seat_policy`.
    Raises: UsageError: it is none of the three, or the suite has one seat.
    """
    if card.seats < 2 and policy is not None:
        raise UsageError(
            f"`seat_policy` is for suites with seats, got {policy!r} for {card.name}, "
            "which has one: leave it out."
        )
    if card.seats > 1 and policy not in _NOW and not callable(policy):
        raise UsageError(
            f"`seat_policy` must say who plays the {card.seats} seats of {card.title}: "
            f'"{ONE_READER}" (one player plays all and reads all their texts, so no '
            f'crew is measured), "{EACH_SEAT}" (a player a seat, which is shown the '
            "texts of that seat alone; info['seat'] says whose turn it is), or a "
            "function (seat, observation, info) -> action that plays all seats but the "
            f"first; got {policy!r}."
        )


class SeatEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A crew's env whose texts say for whom they are.

    With a function as its policy only the turns of the first seat are the player's.

    Args:
        env: Of a suite with seats.
        policy: As in `check_seat_policy`.
    """

    def __init__(self, env: gym.Env[Any, Any], policy: SeatPolicy) -> None:
        super().__init__(env)
        self._policy = policy

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, up to the player's first turn.

        Args:
            seed: As of the env.
            options: As of the env.
        Returns: Observation and info.
        """
        start = self.env.reset(seed=seed, options=options)
        first = (start[0], 0.0, False, False, start[1])
        observation, *_, info = self._to_player(first)
        return observation, start[1] | info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action, then those of the others; the reward is the sum of all."""
        return self._to_player(self.env.step(action))

    def _to_player(
        self, step: tuple[Any, Any, bool, bool, dict[str, Any]]
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = step
        shell = self.unwrapped
        assert isinstance(shell, ToolEnv)  # noqa: S101  every suite with seats has it
        policy, total = self._policy, float(reward)
        while (
            callable(policy)
            and not (terminated or truncated)
            and (seat := shell.episode.seating.seat) != shell.seats[0]
        ):
            action = policy(seat, observation, info)
            observation, more, terminated, truncated, info = self.env.step(action)
            total += float(more)
        named = self._named(observation, shell.episode.seating.seat)
        return named, total, terminated, truncated, info

    def _named(self, observation: Any, seat: str) -> Any:
        """Return an observation with the seat before its text, if it has a text."""
        line = _NOW[self._policy].format(seat) if self._policy in _NOW else ""
        if line and isinstance(observation, dict) and "text" in observation:
            text = shorten(f"{line}\n\n{observation['text']}")
            return {**observation, "text": text}
        if line and isinstance(observation, str):
            return shorten(f"{line}\n\n{observation}")
        return observation
