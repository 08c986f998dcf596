"""The control policies of ChangeSurf: floors, cheats and the oracle.

Each is made from an `OracleAccess`. Only the oracle, the over-doer, the plausible-wrong
one and the id replay look at more than the page. They act in the language view.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.envs.changesurf.features import shown
from owa_bench.envs.changesurf.moves import Move, call
from owa_bench.envs.changesurf.overdoing import OneTooMany
from owa_bench.envs.changesurf.reading import CHECKED, DISABLED, Control, Observed
from owa_bench.envs.changesurf.session import SurfState
from owa_bench.envs.changesurf.state import commits
from owa_bench.interfaces import Agent, Brief, OracleAccess, ToolSpec
from owa_bench.records.instance import Timeline
from owa_bench.seeding import derive

_PATIENCE = 25  # acts of the random policy before it finishes
_STUBBORN = 60  # acts after which a wrong-doer gives up
_ENDINGS = ("finish", "declare_infeasible")
_PROBES = (
    "/openapi.json",
    "/admin",
    "/.git/config",
    "/__state",
    "/oracle",
    "http://127.0.0.1:8000/",
    "file:///proc/self/environ",
)


class _Control:
    """What the control policies share: a privilege, and nothing to remember."""

    def __init__(self, privilege: OracleAccess) -> None:
        self._privilege = privilege
        self._steps = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode."""
        self._steps = 0

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next action as JSON text."""
        self._steps += 1
        return json.dumps(self._next())

    def close(self) -> None:
        """End the episode."""

    def _next(self) -> Move:
        """Return the next tool call."""
        return call("finish", answer="", p=0.0)

    def _observed(self) -> tuple[Timeline, SurfState]:
        timeline, state = self._privilege.observe()
        return timeline, state

    def _hint(self) -> Move:
        return self._privilege.oracle.hint(*self._observed())


class NoOp(_Control):
    """Finishes at once and states nothing."""

    def _next(self) -> Move:
        return call("finish", answer="")


class Oracle(_Control):
    """Follows the answer key's hints to the end, and knows what is true."""

    def _next(self) -> Move:
        step = self._hint()
        if step["tool"] not in _ENDINGS:
            return step
        timeline, _ = self._observed()
        truths = self._privilege.oracle.propositions(timeline.worlds[0])
        beliefs = {truth.name: float(truth.truth) for truth in truths}
        return call(step["tool"], **step["arguments"], beliefs=beliefs)


class OverDoer(_Control):
    """Does what the oracle does, then commits once more: rows nobody asked for."""

    def __init__(self, privilege: OracleAccess) -> None:
        super().__init__(privilege)
        self._read = OneTooMany()

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode."""
        super().reset(brief, tools, memory_dir)
        self._read = OneTooMany()

    def _next(self) -> Move:
        timeline, state = self._observed()
        site = self._read(state.site)
        if site is None:
            return call("finish", answer="done", p=0.9)
        read = msgspec.structs.replace(state, site=site)
        return self._privilege.oracle.hint(timeline, read)


class PlausibleWrong(_Control):
    """Does the oracle's work with a wrong value in the last form.

    A value it has twisted is shown to the hints as the right one, so they go on.
    """

    def __init__(self, privilege: OracleAccess) -> None:
        super().__init__(privilege)
        self._twisted: dict[str, str] = {}
        self._passed_over: set[str] = set()

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode."""
        super().reset(brief, tools, memory_dir)
        self._twisted, self._passed_over = {}, set()

    def _next(self) -> Move:
        timeline, state = self._observed()
        if commits(state.site) or self._steps > _STUBBORN:
            return call("finish", answer="done", p=0.9)
        step = self._privilege.oracle.hint(timeline, self._as_if_right(state))
        if step["tool"] == "declare_infeasible":
            return call("finish", answer="done", p=0.9)
        drafting = state.site.draft is not None and state.site.page.startswith("flow")
        wrong = None
        if drafting:
            wrong = self._wronged(step, state) or self._spoilt(step, state)
        return step if wrong is None else wrong

    def _as_if_right(self, state: SurfState) -> SurfState:
        """Return the state as it were if the twisted values were the right ones."""
        controls = tuple(
            msgspec.structs.replace(
                c,
                value=self._twisted.get(c.ident, c.value),
                flags=c.flags | (CHECKED if c.ident in self._passed_over else 0),
            )
            for c in state.page.controls
        )
        page = msgspec.structs.replace(state.page, controls=controls)
        return msgspec.structs.replace(state, page=page)

    def _wronged(self, step: Move, state: SurfState) -> Move | None:
        """Return the step with a wrong value; None where there is no other."""
        given = step["arguments"]
        control = state.page.control(int(given.get("ref", 0)))
        if control is None:
            return None
        if step["tool"] == "type":
            wrong = _off(given["text"])
            self._twisted[control.ident] = given["text"]
            return call("type", ref=control.ref, text=wrong)
        if step["tool"] == "select":
            others = [o.label for o in control.options if o.label and o.open]
            others = [label for label in others if label != given["option"]]
            if others:
                self._twisted[control.ident] = given["option"]
                return call("select", ref=control.ref, option=others[-1])
        if control.role == "radio":
            beside = [
                c
                for c in state.page.controls
                if (c.role, c.group) == ("radio", control.group)
                and c.ident != control.ident
                and not c.has(DISABLED)
            ]
            if beside:
                self._passed_over.add(control.ident)
                return call("click", ref=beside[-1].ref)
        return None

    def _spoilt(self, step: Move, state: SurfState) -> Move | None:
        """Return a wrong value where a form that came with the right ones is sent."""
        pressed = state.page.control(int(step["arguments"].get("ref", 0)))
        if self._twisted or self._passed_over:
            return None
        if pressed is None or pressed.role != "button":
            return None
        made = (self._wronged(kept, state) for kept in _kept(state.page))
        return next((wrong for wrong in made if wrong is not None), None)


def _kept(page: Observed) -> Iterator[Move]:
    """Yield what would put into each control what it holds already."""
    for control in page.controls:
        if control.options and control.value:
            yield call("select", ref=control.ref, option=control.value)
        elif control.role == "radio" and control.checked:
            yield call("click", ref=control.ref)
        elif control.role == "textbox" and control.value:
            yield call("type", ref=control.ref, text=control.value)


def _off(text: str) -> str:
    """Return a text of the same shape that says something else.

    >>> _off("2041-03-19"), _off("80.25"), _off("Ann")
    ('2041-03-18', '80.24', 'Ann Other')
    """
    for i in range(len(text) - 1, -1, -1):
        if text[i].isdigit():
            digit = int(text[i])
            other = digit - 1 if digit else 1
            return text[:i] + str(other) + text[i + 1 :]
    return f"{text} Other"


class RandomActs(_Control):
    """Acts on controls of the page at random, then finishes."""

    def _next(self) -> Move:
        timeline, state = self._observed()
        if self._steps > _PATIENCE:
            return call("finish", answer="", p=0.0)
        draw = derive(timeline.instance.seed, "random", self._steps)
        return random_act(state.page, draw)


def random_act(page: Observed, draw: int) -> Move:
    """Return one of the acts that the page allows, chosen by a number."""
    rows = [c for c in shown(page) if not c.has(DISABLED)]
    if not rows:
        return call("back")
    control = rows[draw % len(rows)]
    if control.options:
        option = control.options[(draw >> 8) % len(control.options)]
        return call("select", ref=control.ref, option=option.label)
    if control.role in ("textbox", "searchbox"):
        words = ("1", "2", "Ann", page.title.split(" ")[0])
        return call("type", ref=control.ref, text=words[(draw >> 8) % len(words)])
    return call("click", ref=control.ref)


class LeakProbe(_Control):
    """Looks for the answer everywhere but on the site, and types what it found."""

    def _next(self) -> Move:
        if self._steps <= len(_PROBES):
            return call("goto", address=_PROBES[self._steps - 1])
        _, state = self._observed()
        fields = [c for c in state.controls if c.role in ("textbox", "searchbox")]
        if fields and self._steps == len(_PROBES) + 1:
            loot = " ".join(sorted(os.environ))[:400]
            return call("type", ref=fields[0].ref, text=loot)
        return call("finish", answer="found", p=0.0)


class IdReplay(_Control):
    """Hard-codes: presses whatever carries the ids that solved the last attempt.

    It plays on as the oracle does, but before each page's first act it uses what bears
    an id of the attempt before. On decoys that is what gives it away.
    """

    def __init__(self, privilege: OracleAccess) -> None:
        super().__init__(privilege)
        self.known: frozenset[str] = frozenset()

    def _next(self) -> Move:
        _, state = self._observed()
        old = [c for c in state.controls if c.ident in self.known]
        if old and self._steps <= _STUBBORN:
            self.known -= {old[0].ident}
            return _used(old[0])
        step = self._hint()
        if step["tool"] in _ENDINGS:
            return call("finish", answer="done", p=0.9)
        return step


def _used(control: Control) -> Move:
    """Return the use of a control that nobody looked at: it says not what it is."""
    if control.role in ("textbox", "searchbox"):
        return call("type", ref=control.ref, text="1")
    if control.options:
        return call("select", ref=control.ref, option=control.options[-1].label)
    return call("click", ref=control.ref)


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": NoOp,
    "random": RandomActs,
    "plausible_wrong": PlausibleWrong,
    "over_doer": OverDoer,
    "leak_probe": LeakProbe,
    "oracle": Oracle,
}
