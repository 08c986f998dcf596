"""Action and observation spaces: tools, feature vector and macros of the vector view.

Rows are the first controls in view, in reading order; scrolling moves the window. A macro types a
goal argument, so text needs no policy over characters, and a control's name is hashed by trigrams,
so that "Check-in" is near "Check-in date" while no id is visible. All features lie in [0, 1]. No
tool takes a selector or a script.
"""

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.envs.changesurf.browser.observation import (
    CHECKED,
    DISABLED,
    FOCUSED,
    IN_DIALOG,
    IN_VIEW,
    INVALID,
    REQUIRED,
    ObservedControl,
    PageObservation,
)
from owa_bench.envs.changesurf.browser.tab import KEYS
from owa_bench.interfaces import ToolSpec
from owa_bench.shells.standard_tools import tool_of

BrowserToolCall = Mapping[str, Any]


def tool_call(tool: str, **arguments: Any) -> BrowserToolCall:
    """Return a tool call as an action.

    Args:
        tool: the tool's name.
        arguments: its arguments.
    """
    return {"tool": tool, "arguments": arguments}


# --- tools ----------------------------------------------------------------------------


def _text(most: int, **more: Any) -> Mapping[str, Any]:
    return {"type": "string", "maxLength": most, **more}


def _number(kind: str, least: int, most: int, **more: Any) -> Mapping[str, Any]:
    return {"type": kind, "minimum": least, "maximum": most, **more}


def _one_of(*values: str) -> Mapping[str, Any]:
    return {"type": "string", "enum": list(values)}


_REF = _number(
    *("integer", 1, 9999), description="The number of a control in the last page text, as in [12]."
)
_ELEMENT = _text(400, description="What the control is, in words; for the record, never looked up.")
_WHOLE = "Scroll the window; the page text is whole wherever it stands."
_GOTO = "Go to an address: a path of this site, or a whole address."
_READ = "Read the page text on from a line, where it was cut."
_TYPE = "Replace what a text field holds."
_SELECT = "Choose an option of a list by its label."
_KEY = "Press a key in the focused control."
TOOLS: tuple[ToolSpec, ...] = (
    tool_of("click", "Click a control; boxes toggle.", "element", ref=_REF, element=_ELEMENT),
    tool_of("type", _TYPE, "element", ref=_REF, text=_text(2000), element=_ELEMENT),
    tool_of("select", _SELECT, "element", ref=_REF, option=_text(400), element=_ELEMENT),
    tool_of("press", _KEY, key=_one_of(*KEYS)),
    tool_of("scroll", _WHOLE, direction=_one_of("down", "up")),
    tool_of("back", "Go back one page."),
    tool_of("goto", _GOTO, address=_text(400, examples=["/"])),
    tool_of("wait", "Let simulated time pass.", seconds=_number("number", 0, 3600)),
    tool_of("read", _READ, line=_number("integer", 1, 100_000)),
)


# --- the vector view ------------------------------------------------------------------


ELEMENTS = 40
GOALS = 12  # texts that a goal names, at most
ARGUMENTS = GOALS + 4  # and what signs in: user, passwords, code
_ROLES = (
    "button",
    "link",
    "textbox",
    "searchbox",
    "checkbox",
    "radio",
    "combobox",
    "option",
    "switch",
)
_HASH = 16
WIDTH = len(_ROLES) + 1 + 4 + 6 + 3 + 2 + _HASH
PAGE = 8 + _HASH
_PARTS = (ELEMENTS * WIDTH, ELEMENTS * WIDTH + ARGUMENTS * _HASH)  # where they end
FEATURES = _PARTS[-1] + PAGE
OTHERS = ("scroll_down", "scroll_up", "back", "press_enter")
MACROS = (
    *(f"click_{i}" for i in range(ELEMENTS)),
    *(f"fill_{i}_{v}" for i in range(ELEMENTS) for v in range(ARGUMENTS)),
    *OTHERS,
)
_TEXTUAL = frozenset({"textbox", "searchbox", "spinbutton"})


def listed_controls(page: PageObservation) -> tuple[ObservedControl, ...]:
    """Return the controls that have a row: those in view first."""
    seen = [c for c in page.controls if c.has(IN_VIEW)]
    rest = [c for c in page.controls if not c.has(IN_VIEW)]
    return tuple((*seen, *rest)[:ELEMENTS])


def features(page: PageObservation, arguments: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """Return the feature vector of a page.

    Args:
        page: the page.
        arguments: the texts that macros can type.
    Returns: (FEATURES,) float32 in [0, 1].
    """
    values = np.zeros(FEATURES, dtype=np.float32)
    rows, texts, whole = np.split(values, _PARTS)  # views of the vector
    for i, control in enumerate(listed_controls(page)):
        rows.reshape(ELEMENTS, WIDTH)[i] = _row(control, page, arguments)
    for i, text in enumerate(arguments[:ARGUMENTS]):
        texts.reshape(ARGUMENTS, _HASH)[i] = _hashed(text)
    whole[:] = _page(page)
    return values


def _row(
    control: ObservedControl, page: PageObservation, arguments: tuple[str, ...]
) -> list[float]:
    window = page.window
    wide, high = max(window.width, 1), max(window.height, 1)
    values = [float(control.role == role) for role in _ROLES]
    values.append(float(control.role not in _ROLES))
    values += [_clipped(control.x / wide), _clipped(control.y / high)]
    values += [_clipped(control.width / wide), _clipped(control.height / high)]
    flags = (IN_VIEW, DISABLED, CHECKED, FOCUSED, REQUIRED, INVALID)
    values += [float(control.has(flag)) for flag in flags]
    values += [float(bool(control.value)), float(control.value in arguments)]
    values.append(float(_is_named(control, arguments)))
    values += [float(bool(control.group)), float(control.has(IN_DIALOG))]
    return [*values, *_hashed(control.name)]


def _is_named(control: ObservedControl, arguments: tuple[str, ...]) -> bool:
    """Return whether a control goes by a text of the goal: a row's link, its action."""
    named = [text for text in arguments[:GOALS] if text]
    return any(text in control.name or text == control.group for text in named)


def _page(page: PageObservation) -> list[float]:
    window = page.window
    high = max(window.page_height, 1)
    words = " ".join(line for line in page.lines if isinstance(line, str))
    return [
        _clipped(window.y / high),
        _clipped(window.height / high),
        _clipped(len(page.controls) / ELEMENTS),
        float(any(isinstance(x, str) and x.startswith("! ") for x in page.lines)),
        float(any(c.has(IN_DIALOG) for c in page.controls)),
        float(any(c.type == "password" for c in page.controls)),
        float(any(c.has(INVALID) for c in page.controls)),
        1.0,
        *_hashed(f"{page.title} {words[:400]}"),
    ]


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


@lru_cache(maxsize=4096)
def _hashed(text: str) -> tuple[float, ...]:
    """Return a signed hash of the text's trigrams, .5 where nothing falls."""
    sums = [0] * _HASH
    padded = f"  {text.lower()} "
    for i in range(len(padded) - 2):
        number = zlib.crc32(padded[i : i + 3].encode())
        sums[number % _HASH] += 1 if number & 0x10000 else -1
    most = max(1, *map(abs, sums))
    return tuple(0.5 + 0.5 * value / most for value in sums)


def macros(page: PageObservation, arguments: tuple[str, ...]) -> tuple[BrowserToolCall | None, ...]:
    """Return the tool call behind each macro.

    Args:
        page: the page.
        arguments: the texts that macros can type.
    Returns: A call for each of MACROS, None where it makes no sense.
    """
    rows = listed_controls(page)
    clicks: list[BrowserToolCall | None] = [_click(c) for c in rows]
    clicks += [None] * (ELEMENTS - len(rows))
    fills: list[BrowserToolCall | None] = []
    for control in rows:
        fills += [_fill(control, text) for text in arguments[:ARGUMENTS]]
        fills += [None] * (ARGUMENTS - len(arguments[:ARGUMENTS]))
    fills += [None] * (ELEMENTS * ARGUMENTS - len(fills))
    return (*clicks, *fills, *_others(page))


def _click(control: ObservedControl) -> BrowserToolCall | None:
    if control.has(DISABLED) or control.tag == "select":
        return None
    return tool_call("click", ref=control.ref)


def _fill(control: ObservedControl, text: str) -> BrowserToolCall | None:
    """Return typing or choosing a goal argument; None if it is there already."""
    if control.has(DISABLED) or not text or control.value == text:
        return None
    if control.options:
        labels = [option.label for option in control.options if option.enabled]
        choice = tool_call("select", ref=control.ref, option=text)
        return choice if text in labels else None
    if control.role in _TEXTUAL:
        return tool_call("type", ref=control.ref, text=text)
    return None


def _others(page: PageObservation) -> tuple[BrowserToolCall | None, ...]:
    window = page.window
    down = window.y + window.height < window.page_height
    return (
        tool_call("scroll", direction="down") if down else None,
        tool_call("scroll", direction="up") if window.y > 0 else None,
        tool_call("back"),
        tool_call("press", key="Enter"),
    )
