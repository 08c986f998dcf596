"""Views of a crew in which its seats act at the same time, round by round.

A round is a tick in which somebody is free: every seat that is free acts once, on what it was shown
before the round. The session, its events and its trace are those of the per-seat view: the same
actions leave the same replay digest.

Source: docs/multicrew.md#views-of-a-whole-crew
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import gymnasium as gym
from gymnasium import spaces

from owa_bench import discovery
from owa_bench.errors import UsageError
from owa_bench.interfaces import Setting, Sink, View
from owa_bench.runs import assembly
from owa_bench.shells.seat_policy import EACH_SEAT
from owa_bench.shells.tool_env import ToolEnv
from owa_bench.shells.views import EnvView, make_view, text_picture

RENDER_MODES = ("rgb_array", "ansi")
_OPTIONS = ("instance", "start", "interventions")
_ENDING = ("outcome", "q_state", "quality", "success")


class RoundResult(NamedTuple):
    """The result of a round: what each seat pays is the same, `over` ends it for all.

    `observations` and `retired` are by seat that still played before the round.
    """

    observations: dict[str, Any]
    reward: float
    retired: frozenset[str]
    terminated: bool
    truncated: bool


class CrewRounds:
    """An env of a suite with seats, played round by round.

    Args:
        suite: Name of the suite.
        view: Language or vector.
        role_cap: The most seats that play; None: all.
        muted: Whether the channel drops every message.
        one_reader: Whether one player reads what all seats are shown.
        **options: As for `run.assembly.make_env`, but for `seat_policy`.
    """

    def __init__(
        self,
        suite: str,
        *,
        view: View = "language",
        role_cap: int | None = None,
        muted: bool = False,
        one_reader: bool = False,
        **options: Any,
    ) -> None:
        card = discovery.get("suites", suite).card
        if card.seats < 2:
            raise UsageError(f"`suite` must have seats, got {suite!r}, which has one.")
        options["seat_policy"] = EACH_SEAT
        made = assembly.make_env(suite, view="python", **options)
        self.env = cast(ToolEnv, made.unwrapped)
        self._setting = Setting(role_cap=role_cap, muted=muted, one_reader=one_reader)
        self.env.reset(seed=0, options={"setting": self._setting})
        self.seats = self.env.seats  # of every instance of a tier
        tools = self.env.tools
        self.views: Mapping[str, EnvView] = {
            seat: make_view(view, card, tools) for seat in self.seats
        }
        self.observed: dict[str, Any] = {}  # by seat, what it was shown last
        self._texts: dict[str, str] = {}  # the same as text, whatever the view
        self._errors: dict[str, str] = {}  # of the last round, by seat
        self.playing: tuple[str, ...] = self.seats
        self.acting: tuple[str, ...] = ()

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Begin an episode.

        Args:
            seed: As for the env of the suite.
            options: Its options by name but for the setting; other names are left out.
        Returns: Observations by seat.
        """
        chosen = {name: it for name, it in (options or {}).items() if name in _OPTIONS}
        options = {**chosen, "setting": self._setting}
        text, info = self.env.reset(seed=seed, options=options)
        self.playing, self._errors = self.seats, {}
        for seat in self.seats:  # one that is away has an observation too
            self._show(seat, self.env.episode.seating.preview(seat))
        return self._observe(info["seat"], text)

    def step(self, actions: Mapping[str, Any]) -> RoundResult:
        """Play a round.

        Args:
            actions: By seat; those of seats that are not free are left out. A seat that is free and
                has no action plays a malformed one, as `None` is.
        Returns: The result.
        """
        chosen: Mapping[Any, Any] = actions if isinstance(actions, Mapping) else {}
        self._errors = {}
        before, reward, text = self.playing, 0.0, ""
        terminated = truncated = False
        info: dict[str, Any] = {}
        for seat in self.acting:
            action = self.views[seat].text_of(chosen.get(seat), self.env.episode)
            text, paid, terminated, truncated, info = self.env.step(action)
            reward += paid
            if "error" in info:
                self._errors[seat] = info["error"]
            # After what takes no tick (a note, a malformed action) the seat acts
            # again before those behind it do.
            if terminated or truncated or info["seat"] == seat != self.acting[-1]:
                break
        over = terminated or truncated
        self.playing = () if over else self.env.episode.seating.rounds.remaining
        seen = self._observe("" if over else info["seat"], text)
        return RoundResult(
            observations={seat: seen[seat] for seat in before},
            reward=reward,
            retired=frozenset(before) - frozenset(self.playing),
            terminated=terminated,
            truncated=truncated,
        )

    def infos(self) -> dict[str, dict[str, Any]]:
        """Return by seat what is told beside its observation.

        "acts" says whether it acts in the next round, "error" why its last action was refused; at
        the end there is the result.
        """
        ending = self.env.ending
        more = {} if ending is None else {n: getattr(ending, n) for n in _ENDING}
        tick = self.env.simulated_ms
        errors = {seat: {"error": error} for seat, error in self._errors.items()}
        return {
            seat: {"acts": seat in self.acting, "simulated_ms": tick, **more} | errors.get(seat, {})
            for seat in self.seats
        }

    def text(self) -> str:
        """Return what each seat was shown last."""
        return "\n\n".join(f"== {s} ==\n{text}" for s, text in self._texts.items())

    def render(self, mode: str | None) -> Any:
        """Return what the seats are shown as text or as a picture of it."""
        if mode not in RENDER_MODES:
            return None
        text = self.text()
        return text if mode == "ansi" else text_picture(text)

    def attach(self, sink: Sink) -> None:
        """Send the events of the next episode to `sink`."""
        self.env.attach(sink)

    def _observe(self, first: str, text: str) -> dict[str, Any]:
        """Return observations by seat; one that is not free has its last one.

        Args:
            first: The seat that acts first in the round, "" where none does.
            text: What it has been shown already.
        """
        self.acting = self.env.episode.seating.rounds.acting if first else ()
        for seat in self.acting:
            self._show(seat, text if seat == first else self.env.episode.seating.preview(seat))
        return dict(self.observed)

    def _show(self, seat: str, text: str) -> None:
        self._texts[seat] = text
        self.observed[seat] = self.views[seat].observe(text, self.env.episode)


class CentralEnv(gym.Env[Any, Any]):
    """A crew as one Gymnasium env: one learner acts for all seats at once.

    Action and observation spaces are Dicts by seat; the action of a seat that is busy, away or
    retired is left out. The reward is the crew's, once.

    Args:
        suite: Name of the suite.
        render_mode: "ansi" or "rgb_array".
        **options: As for `CrewRounds`.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 4}

    def __init__(
        self, suite: str = "multicrew", *, render_mode: str | None = None, **options: Any
    ) -> None:
        self.rounds = CrewRounds(suite, one_reader=True, **options)
        views = self.rounds.views
        self.render_mode = render_mode
        self.action_space = spaces.Dict({s: v.action_space for s, v in views.items()})
        self.observation_space = spaces.Dict({s: v.observation_space for s, v in views.items()})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. Args: as `CrewRounds.reset`. Returns: as Gymnasium."""
        super().reset(seed=seed)
        return self.rounds.reset(seed, options), self.rounds.infos()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play a round. Args: an action by seat. Returns: as Gymnasium."""
        made = self.rounds.step(action)
        seen = dict(self.rounds.observed)
        return seen, made.reward, made.terminated, made.truncated, self.rounds.infos()

    def render(self) -> Any:
        """Return what the seats are shown, as text or as a picture."""
        return self.rounds.render(self.render_mode)

    def close(self) -> None:
        """Release the session."""
        self.rounds.env.close()
