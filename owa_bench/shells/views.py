"""Views of one transition function: language, vector and python.

A view turns an agent's action into action text and a step's text into what the agent observes. All
three leave the same trace.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench.interfaces import SuiteCard, ToolSpec, View
from owa_bench.shells.action_forms import text_action, whole_number
from owa_bench.shells.calls import TEXT_LIMIT, PlainText, ToolCalls, call_text
from owa_bench.shells.episode import Episode

FINISH_AT = (0.05, 0.25, 0.5, 0.75, 0.95)  # p of the finish macros
WAITS_S = (5, 60)  # simulated seconds of the wait macros, where a suite can wait
NO_MACRO = -1  # number in the text of an action that is no number
SHELL_FEATURES = 3  # share of steps used, share of hints left, last action failed

Features = npt.NDArray[np.float32]
Macros = tuple[Mapping[str, Any] | None, ...]


class EnvView(Protocol):
    """A translation of actions into action text, and of answers into observations."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    def text_of(self, action: Any, episode: Episode) -> str:
        """Return the text of an action.

        Args: action: of the view's action space; episode: the running one.
        """

    def observe(self, text: str, episode: Episode) -> Any:
        """Return the observation after a step.

        Args: text: the answer to the last action; episode: the running one.
        Returns: An element of the view's observation space.
        """


def make_view(name: View, card: SuiteCard, tools: Sequence[ToolSpec]) -> EnvView:
    """Return the view of a suite.

    Args:
        name: Of the view.
        card: The suite's.
        tools: The suite's own and the standard ones.
    Returns: With observation space and action space.
    """
    if name == "vector":
        return VectorView(card, tools)
    return LanguageView(tools) if name == "language" else PythonView(tools)


def features_of(episode: Episode) -> Features:
    """Return the suite's features and the shell's own after them."""
    limit, left = episode.terms.interventions, episode.interventions_left
    own = (
        episode.spent / episode.step_limit,
        1.0 if limit is None or left is None else left / max(limit, 1),
        float(episode.last_failed),
    )
    return np.concatenate((episode.session.features(), own), dtype=np.float32)


def _features_space(card: SuiteCard) -> spaces.Box:
    return spaces.Box(0.0, 1.0, (card.features + SHELL_FEATURES,), np.float32)


class PythonView:
    """Text in, text out: what a client, a person or another process drives."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.observation_space: spaces.Space[Any] = PlainText(TEXT_LIMIT)
        self.action_space: spaces.Space[Any] = ToolCalls(tools)

    def text_of(self, action: Any, episode: Episode) -> str:
        """Return the action itself. Args: as `EnvView`. Returns: Action text."""
        return text_action(action)

    def observe(self, text: str, episode: Episode) -> Any:
        """Return the text itself. Args: as `EnvView`. Returns: The text."""
        return text


class LanguageView(PythonView):
    """Text in; text and a mask over the tools out."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        super().__init__(tools)
        self._names = [tool.name for tool in tools]
        self._ask = self._names.index("ask_supervisor")
        self._mask = np.ones(len(self._names), dtype=np.int8)
        self.observation_space = spaces.Dict(
            {"text": PlainText(TEXT_LIMIT), "action_mask": spaces.MultiBinary(len(tools))}
        )

    def observe(self, text: str, episode: Episode) -> Any:
        """Return the text with a mask. Args: as `EnvView`.

        Returns: "text" and "action_mask", (tools,), 1 for a tool that may be called.
        """
        mask = self._mask.copy()
        mask[self._ask] = _may_ask(episode)
        return {"text": text, "action_mask": mask}


class VectorView:
    """A macro's number in, features out.

    The suite's macros come first, then finish at each p, declare_infeasible, ask_supervisor and,
    where the suite has the tool, waits.
    """

    def __init__(self, card: SuiteCard, tools: Sequence[ToolSpec]) -> None:
        fixed = {f"finish_{p}": call_text("finish", {"p": p}) for p in FINISH_AT}
        fixed["declare_infeasible"] = call_text("declare_infeasible", {"p": FINISH_AT[0]})
        fixed["ask_supervisor"] = call_text("ask_supervisor", {})
        if any(tool.name == "wait" for tool in tools):
            for seconds in WAITS_S:
                fixed[f"wait_{seconds}"] = call_text("wait", {"seconds": seconds})
        self._fixed = fixed
        self._known: tuple[Episode | None, int, Macros] = (None, 0, ())
        self.names = (*card.macros, *fixed)
        self.observation_space: spaces.Space[Any] = _features_space(card)
        self.action_space: spaces.Space[Any] = spaces.Discrete(len(self.names))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: no episode of this env."""
        return {**self.__dict__, "_known": (None, 0, ())}

    def masks(self, episode: Episode) -> npt.NDArray[np.int8]:
        """Return 1 for each macro that may be played now, as `sample` takes it."""
        own = [call is not None for call in self._macros(episode)]
        mask = np.ones(len(self.names), dtype=np.int8)
        mask[: len(own)] = own
        mask[self.names.index("ask_supervisor")] = _may_ask(episode)
        return mask

    def text_of(self, action: Any, episode: Episode) -> str:
        """Return the macro's call. Args: as `EnvView`.

        Returns: Action text; malformed for a masked or unknown macro.
        """
        number = whole_number(action)
        if number is None:
            return call_text_of_macro(NO_MACRO)
        if not 0 <= number < len(self.names):
            return call_text_of_macro(number)
        name = self.names[number]
        if name in self._fixed:
            return self._fixed[name]
        call = self._macros(episode)[number]
        if call is None:
            return call_text_of_macro(name)
        return call_text(call["tool"], call["arguments"])

    def number_of(self, text: str, episode: Episode) -> int | None:
        """Return the number of the macro that stands for an action text now.

        Args:
            text: The action.
            episode: The running one.
        Returns: The lowest number where macros share a call; None: it is no macro.
        """
        try:
            action = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return None
        return next(
            (
                number
                for number in range(len(self.names))
                if msgspec.json.decode(self.text_of(number, episode)) == action
            ),
            None,
        )

    def _macros(self, episode: Episode) -> Macros:
        """Return the suite's macros, asked for once a step."""
        known, steps, calls = self._known
        if known is not episode or steps != episode.steps:
            calls = episode.session.macros()
            self._known = (episode, episode.steps, calls)
        return calls

    def observe(self, text: str, episode: Episode) -> Any:
        """Return the features. Args: as `EnvView`. Returns: (features,) in [0, 1]."""
        return features_of(episode)


def _may_ask(episode: Episode) -> bool:
    offered = "ask_supervisor" in episode.seating.offered
    return offered and episode.interventions_left != 0


def call_text_of_macro(macro: str | int) -> str:
    """Return the malformed action that stands for a macro without a call."""
    return msgspec.json.encode({"macro": macro}).decode()


# --- pictures of text, for recorders of videos ----------------------------------------


_HEIGHT, _WIDTH = 480, 640  # pixels
_COLUMNS, _LINES = 104, 38  # characters of Pillow's own font that fit
_MARGIN = 6  # pixels


def text_picture(text: str) -> npt.NDArray[np.uint8]:
    """Return the beginning of a text as a picture, black on white.

    Args:
        text: any text; what the font lacks is a question mark.
    Returns: (480, 640, 3) pixels.

    >>> bool((text_picture("moved") != text_picture("")).any())
    True
    """
    from PIL import Image, ImageDraw

    known = text.encode("latin-1", "replace").decode("latin-1")
    lines = [part for line in known.splitlines() for part in textwrap.wrap(line, _COLUMNS)]
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    shown = "\n".join(lines[:_LINES])
    ImageDraw.Draw(image).multiline_text((_MARGIN, _MARGIN), shown, fill="black")
    return np.asarray(image)
