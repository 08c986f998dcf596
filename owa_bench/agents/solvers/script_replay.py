"""Script replay for web pages: re-locates each recorded control by role and name.

A recorded call says in `element` what it acted on: `textbox "Guests" in "Stay"`. The exact search
needs the same role and name. The similarity search also accepts synonyms, other kinds of control
for the same choice, moved steps and unknown pages in between.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.agents.solvers.pages import PageControl, alike, is_open, items
from owa_bench.interfaces import Brief, ToolSpec

CONFIDENT, STRAYED, LOST = 0.9, 0.6, 0.02  # stated p: as known, by guesses, halted
_ENDINGS = ("finish", "declare_infeasible")
_ELEMENT = re.compile(r'(?P<role>\w+) "(?P<name>.*?)"(?: in "(?P<group>.*)")?')
_AHEAD = 4  # how many recorded steps may have been dropped from the way
_DETOURS = 12  # pages in between that are pressed through, in all
_LEAST = 0.34  # likeness of names from which on two are taken for one
_ONWARDS = re.compile(
    r"continue|next|proceed|skip|no,? thanks|not now|close|confirm|go on|onward|review",
    re.IGNORECASE,
)
_CHOICES = frozenset({"radio", "option", "checkbox", "switch"})
_TEXTUAL = frozenset({"textbox", "searchbox", "spinbutton", "combobox"})


class RecordedCall(NamedTuple):
    """A recorded call and what it acted on."""

    tool: str
    arguments: Mapping[str, Any]
    role: str = ""
    name: str = ""
    group: str = ""


def parse_script(lines: Sequence[str]) -> tuple[RecordedCall, ...]:
    """Return the steps of a script, one JSON call a line."""
    return tuple(_step(json.loads(line)) for line in lines)


def _step(call: Mapping[str, Any]) -> RecordedCall:
    arguments = dict(call["arguments"])
    match = _ELEMENT.fullmatch(str(arguments.get("element", "")))
    if match is None:
        return RecordedCall(call["tool"], arguments)
    group = match["group"] or ""
    return RecordedCall(call["tool"], arguments, match["role"], match["name"], group)


ControlFinder = Callable[[RecordedCall, Sequence[PageControl]], PageControl | None]


def find_exact(step: RecordedCall, page: Sequence[PageControl]) -> PageControl | None:
    """Return the control of the same role and name; the group resolves duplicates.

    Args:
        step: the recorded call.
        page: the controls of the open page.
    Returns: The control, None if there is none or no single one.
    """
    same = [i for i in page if (i.role, i.name) == (step.role, step.name)]
    grouped = [i for i in same if i.group == step.group]
    if len(grouped) == 1:
        return grouped[0]
    return same[0] if len(same) == 1 else None


def find_similar(step: RecordedCall, page: Sequence[PageControl]) -> PageControl | None:
    """Return the control most similar to the recorded one.

    Args:
        step: the recorded call.
        page: the controls of the open page.
    Returns: The control, None if none is similar enough.
    """
    if (found := find_exact(step, page)) is not None:
        return found
    fitting = [i for i in page if is_open(i) and _fits(step, i)]
    scored = [(_likeness(step, item), -place) for place, item in enumerate(fitting)]
    if not scored or max(scored)[0] < _LEAST:
        return None
    return fitting[-max(scored)[1]]


def _fits(step: RecordedCall, item: PageControl) -> bool:
    """Return whether a control can take the step, perhaps as another kind."""
    if step.tool == "type":
        return item.role in _TEXTUAL and not item.options
    if step.tool == "select":
        option = str(step.arguments["option"])
        return option in item.options or (
            item.role in _CHOICES and alike(item.name, option) >= _LEAST
        )
    if step.role in _CHOICES:
        return item.role in _CHOICES or step.name in item.options
    return item.role in ("button", "link")


def _likeness(step: RecordedCall, item: PageControl) -> float:
    wanted = step.name
    if step.tool == "select" and item.role in _CHOICES:
        wanted = str(step.arguments["option"])
    if step.role in _CHOICES and step.name in item.options:
        return 1.0
    near = alike(item.group, step.group) if step.group and item.group else 0.0
    return alike(item.name, wanted) + 0.2 * near


class ScriptCursor:
    """The position in a script; `lost` once no further step can be placed."""

    def __init__(self, script: Sequence[str], finder: ControlFinder, *, wanders: bool) -> None:
        self._steps = parse_script(script)
        self._place = 0
        self._finder = finder
        self._wanders = wanders
        self._detours = 0
        self._tried: set[str] = set()
        self.lost = False
        self.strayed = False

    def advance(self, text: str) -> Mapping[str, Any] | None:
        """Return the next call on the page of `text`, None at the end or if lost."""
        page = items(text)
        if text.startswith("error:") and not self._wanders:
            self.lost = True
        if self.lost or self._place >= len(self._steps):
            return None
        reach = _AHEAD if self._wanders else 1
        for ahead in range(min(reach, len(self._steps) - self._place)):
            step = self._steps[self._place + ahead]
            if (found := self._call(step, page)) is not None:
                self.strayed |= ahead > 0
                self._place += ahead + 1
                return found
        return self._detour(page)

    def _call(self, step: RecordedCall, page: Sequence[PageControl]) -> Mapping[str, Any] | None:
        """Return the step as a call on this page, None if its control is missing."""
        if not step.name:
            return {"tool": step.tool, "arguments": dict(step.arguments)}
        item = self._finder(step, page)
        if item is None:
            return None
        if step.tool == "type":
            return _call_on(item, "type", text=step.arguments["text"])
        option = step.arguments.get("option", step.name)
        # A long list shows only its first options; what was chosen before may be below.
        if item.options and (step.tool == "select" or option in item.options):
            return _call_on(item, "select", option=option)
        return _call_on(item, "click")

    def _detour(self, page: Sequence[PageControl]) -> Mapping[str, Any] | None:
        """Return the press that leads on from a page the script does not know."""
        pressable = (i for i in page if i.role in ("button", "link") and is_open(i))
        onwards = [item for item in pressable if _ONWARDS.search(item.name)]
        if not self._wanders or self._detours >= _DETOURS or not onwards:
            self.lost = True
            return None
        self._detours += 1
        self.strayed = True
        return _call_on(onwards[0], "click")


def _call_on(item: PageControl, tool: str, **given: Any) -> Mapping[str, Any]:
    element = f'{item.role} "{item.name}"'
    return {"tool": tool, "arguments": {"ref": item.ref, "element": element, **given}}


class ScriptReplayer:
    """Agent that replays one script in every episode.

    With `wanders` it skips steps that are gone and clicks through unknown pages.
    """

    def __init__(self, script: Sequence[str], finder: ControlFinder, *, wanders: bool) -> None:
        self._begin = partial(ScriptCursor, tuple(script), finder, wanders=wanders)
        self._cursor = self._begin()

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode at the first line of the script.

        Args:
            brief: not used.
            tools: not used.
            memory_dir: not used.
        """
        self._cursor = self._begin()

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call of the script on this page.

        Args:
            observation: holds the page's text.
            info: not used.
        Returns: The call as JSON text; `finish` at the end or when lost.
        """
        call = self._cursor.advance(str(observation["text"]))
        if call is None:
            arguments = {"answer": "", "p": LOST}
            return json.dumps({"tool": "finish", "arguments": arguments})
        if call["tool"] in _ENDINGS:
            p = STRAYED if self._cursor.strayed else CONFIDENT
            call = {"tool": call["tool"], "arguments": {**call["arguments"], "p": p}}
        return json.dumps(call)

    def close(self) -> None:
        """End the episode; nothing is kept."""
