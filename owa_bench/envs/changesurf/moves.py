"""From what is to be done next, in the site's words, to a call on the open page."""

from collections.abc import Mapping
from typing import Any, Protocol

from owa_bench.envs.changesurf.reading import Control

Move = Mapping[str, Any]
DONE_P, INFEASIBLE_P = 1.0, 0.0


class Deed(Protocol):
    """The next right step: what to do, and to which control."""

    @property
    def op(self) -> str:
        """One of fill, select, check, press, goto, wait, done, infeasible."""

    @property
    def ident(self) -> str:
        """The control's id attribute."""

    @property
    def name(self) -> str:
        """The control's accessible name."""

    @property
    def value(self) -> str:
        """What to type or choose, how long to wait, where to go."""


class Shown(Protocol):
    """A state that says which controls the open page has."""

    @property
    def controls(self) -> tuple[Control, ...]:
        """What can be acted on."""


def call(tool: str, **arguments: Any) -> Move:
    """Return a tool call."""
    return {"tool": tool, "arguments": arguments}


def described(control: Control) -> str:
    """Return a control in words: its role and name, and its group where it has one."""
    words = f'{control.role} "{control.name}"'
    return f'{words} in "{control.group}"' if control.group else words


def tool_call(deed: Deed, state: Shown) -> Move:
    """Return the tool call of a deed on the page that is open.

    A control that is not on the page is looked for again on the whole page: reading
    costs a step and changes nothing, so an oracle that needs it fails its tests.
    """
    if deed.op == "done":
        return call("finish", answer="done", p=DONE_P)
    if deed.op == "infeasible":
        return call("declare_infeasible", p=INFEASIBLE_P)
    if deed.op == "goto":
        return call("goto", address=deed.value)
    if deed.op == "wait":
        return call("wait", seconds=int(deed.value) / 1000)
    control = _found(deed, state.controls)
    if control is None:
        return call("read", line=1)
    words = described(control)
    if deed.op == "fill":
        return call("type", ref=control.ref, text=deed.value, element=words)
    if deed.op == "select":
        return call("select", ref=control.ref, option=deed.value, element=words)
    return call("click", ref=control.ref, element=words)


def _found(deed: Deed, controls: tuple[Control, ...]) -> Control | None:
    """Return the control of the deed's id, None if the page shows it to nobody."""
    return next((c for c in controls if deed.ident and c.ident == deed.ident), None)
