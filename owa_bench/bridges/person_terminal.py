"""A terminal for a person: prompts for tools and their fields, line by line."""

import time
from collections.abc import Mapping
from typing import Any, TextIO

import msgspec

from owa_bench.bridges.person import PersonLeaves, PersonView, ToolDesk
from owa_bench.bridges.tool_forms import ToolField, ToolForm
from owa_bench.errors import AgentTimeout, FieldError, UsageError

_CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, and what can be scrolled back to
_HELP = """\
Type the name of a tool and fill in its fields (Enter leaves one out), or the name and
its arguments as JSON, such as: finish {"p": 0.8}
Also: tools (what there is), task (the task again), pause (clears the screen until
Enter). Ctrl-D leaves, and an episode that is left has failed.
"""


class TerminalScreen:
    """Prompts on one stream, answers from another.

    Args:
        answers: Where lines come from.
        screen: Where everything is written.
    """

    def __init__(self, answers: TextIO, screen: TextIO) -> None:
        self._answers = answers
        self._screen = screen
        self._page = 0
        self._paused_s = 0.0

    def begin(self, view: PersonView) -> None:
        """Clear the screen and wait for Enter; `leave` leaves."""
        self._clear()
        self._write(f"{view.title}\n")
        prompt = "Enter goes on: " if view.begun else "Enter begins, `leave` stops here: "
        if self._line(prompt).strip() == "leave":
            raise PersonLeaves

    def ask(self, view: PersonView, desk: ToolDesk, deadline_s: float) -> str:
        """Return the person's next action.

        Args: as `PersonScreen.ask`. Returns: the action as JSON text.
        """
        began, self._paused_s = time.monotonic(), 0.0
        self._show(view)
        forms = {form.name: form for form in view.forms}
        action = ""
        while not action:
            action = self._read(view, forms, desk)
        if time.monotonic() - began - self._paused_s > deadline_s:
            raise AgentTimeout(f"the person did not act within {deadline_s:g} s")
        return action

    def _show(self, view: PersonView) -> None:
        """Write the task on a new page, and the last answer."""
        if view.page != self._page:
            self._page = view.page
            self._write(f"{_HELP}\n{view.task}\n")
        if view.text:
            self._write(f"\n{view.text}\n")
        left = f"{view.steps_left} steps left"
        if view.interventions_left is not None:
            left += f", {view.interventions_left} questions to the supervisor left"
        self._write(f"\n[{left}] tools: {', '.join(f.name for f in view.forms)}\n")

    def _read(self, view: PersonView, forms: Mapping[str, ToolForm], desk: ToolDesk) -> str:
        """Return the action of one command, "" where it was none."""
        word, _, rest = self._line("> ").strip().partition(" ")
        if word == "tools":
            self._write("".join(map(_described, view.forms)))
        elif word == "task":
            self._write(f"{view.task}\n")
        elif word == "pause":
            self._pause(view)
        elif word in forms:
            try:
                return self._call(forms[word], rest.strip(), desk)
            except UsageError as error:
                self._write(f"{error}\n")
        elif word:
            self._write(f"No tool on offer is called {word!r}.\n")
        return ""

    def _call(self, form: ToolForm, rest: str, desk: ToolDesk) -> str:
        """Return the action of a tool; UsageError where it cannot be made."""
        if rest:
            try:
                given: dict[str, Any] = msgspec.json.decode(rest, type=dict[str, Any])
            except msgspec.DecodeError as error:
                rule = f"must be a JSON object ({error})"
                raise FieldError(form.name, rest, rule) from error
            return desk.called(form.name, given)
        texts = {field.name: self._line(_prompt(field)) for field in form.fields}
        return desk.filled_in(form.name, texts)

    def _pause(self, view: PersonView) -> None:
        """Show nothing until Enter; the deadline waits."""
        began = time.monotonic()
        self._clear()
        self._line("Paused; Enter goes on: ")
        self._paused_s += time.monotonic() - began
        self._page = 0
        self._show(view)
        self._page = view.page

    def _line(self, prompt: str) -> str:
        """Return the next line; PersonLeaves at the end of the stream."""
        self._write(prompt)
        line = self._answers.readline()
        if not line:
            self._write("\nEnd of input: you leave.\n")
            raise PersonLeaves
        return line.rstrip("\n")

    def _clear(self) -> None:
        if self._screen.isatty():
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        self._screen.write(text)
        self._screen.flush()


def _described(form: ToolForm) -> str:
    """Return a tool with its fields, for reading."""
    lines = [f"{form.name}: {form.about}\n"]
    for field in form.fields:
        must = " (required)" if field.required else ""
        lines.append(f"    {field.name}{must} {_hint(field)} {field.about}\n")
    return "".join(lines)


def _hint(field: ToolField) -> str:
    return "|".join(field.choices) or f"<{field.kind}>"


def _prompt(field: ToolField) -> str:
    must = "" if field.required else ", optional"
    return f"  {field.name} {_hint(field)}{must}: "
