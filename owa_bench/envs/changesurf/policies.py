"""The control policies of ChangeSurf: floors, cheats and the oracle.

Each is made from an `OracleAccess`. Only the oracle, the over-doer, the plausible-wrong one and the
id replay look at more than the page. They act in the language view.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from owa_bench.envs.changesurf.browser.observation import (
    CHECKED,
    DISABLED,
    ObservedControl,
    PageObservation,
    SurfState,
)
from owa_bench.envs.changesurf.generate import wanted_rows
from owa_bench.envs.changesurf.server.state import Database, SiteState, commits
from owa_bench.envs.changesurf.site_spec import RequiredRow, SiteGoal, SiteValue
from owa_bench.envs.changesurf.spaces import BrowserToolCall, listed_controls, tool_call
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.seeding import derive
from owa_bench.shells.solution import KnowingPolicy, StatePolicy
from owa_bench.shells.standard_tools import ENDING_TOOLS

_UNASKED_CENTS = 4_200  # EUR 42.00, for the answer desk
_PATIENCE = 25  # acts of the random policy before it finishes
_STUBBORN = 60  # acts after which a wrong-doer gives up
_PROBES = (
    "/openapi.json",
    "/admin",
    "/.git/config",
    "/__state",
    "/oracle",
    "http://127.0.0.1:8000/",
    "file:///proc/self/environ",
)


class SurfNoOp(StatePolicy):
    """Finishes at once and states nothing."""

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        return tool_call("finish", answer="")


# --- the over-doer --------------------------------------------------------------------


class SurfOverDoer(StatePolicy):
    """Does what the oracle does, then commits once more: rows outside the goal."""

    def __init__(self, access: OracleAccess) -> None:
        super().__init__(access)
        self._view = OverDoerView()

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        timeline, state = self._observed()
        site = self._view(state.site)
        if site is None:
            return tool_call("finish", answer="done", p=0.9)
        return self._access.oracle.hint(timeline, replace(state, site=site))


class OverDoerView:
    """The states of a visit as an over-doer sees them, from the first to the last."""

    def __init__(self) -> None:
        self._second: SiteGoal | None = None

    def __call__(self, site: SiteState) -> SiteState | None:
        """Return the state with the goal in force, None after the second commit."""
        count = commits(site)
        if count == 0:
            return site
        if count > 1:
            return None
        if self._second is None:
            self._second = second_goal(site)
        spec = replace(site.world.spec, goal=self._second)
        world = replace(site.world, spec=spec)
        return replace(site, world=world, initial=site.tables)


def second_goal(site: SiteState) -> SiteGoal:
    """Return a goal of one commit more, after the first one is reached.

    The same form again where that leaves another row or changes one; at the same record first (a
    duplicate), else at another. The site's own rules decide, so it never refuses. Where it would
    everywhere, and where an answer was sent, another amount goes to the answer desk, which every
    site has.
    """
    goal = site.world.spec.goal
    workflow = site.world.spec.workflow(goal.workflow)
    values = dict(goal.values)
    desk = site.world.spec.workflow("answer")
    records: list[dict[str, SiteValue]] = [] if workflow == desk else [{}]
    if workflow.record:
        records = site.records(workflow.record)
        records.sort(key=lambda record: _key(record) != goal.record)
    spec = replace(site.world.spec, tables=site.tables)
    with closing(Database(spec)) as database:
        for record in records:
            wanted = wanted_rows(workflow, values, record, _key(record))
            refused = database.refusal(workflow.checks, values, record) is not None
            if not refused and any(_is_missing(row, site) for row in wanted):
                return replace(goal, record=_key(record), wanted=wanted, evidence=())
    values = {"answer": _UNASKED_CENTS}
    return replace(
        goal,
        workflow=desk.key,
        record="",
        values=tuple(values.items()),
        wanted=wanted_rows(desk, values, {}, ""),
        evidence=(),
    )


def _key(record: Mapping[str, SiteValue]) -> SiteValue:
    return next(iter(record.values()), "")


def _is_missing(wanted: RequiredRow, site: SiteState) -> bool:
    """Return whether a wanted row is not there yet; a new row never is."""
    if wanted.key is None:
        return True
    row = site.row(wanted.table, wanted.key)
    return any(row[column] != value for column, value in wanted.values)


# --- the plausible-wrong policy -------------------------------------------------------


class SurfPlausibleWrong(StatePolicy):
    """Does the oracle's work with a wrong value in the last form.

    A value it has twisted is shown to the hints as the right one, so they go on.
    """

    def __init__(self, access: OracleAccess) -> None:
        super().__init__(access)
        self._twisted: dict[str, str] = {}
        self._passed_over: set[str] = set()

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        timeline, state = self._observed()
        if commits(state.site) or self.steps > _STUBBORN:
            return tool_call("finish", answer="done", p=0.9)
        step = self._access.oracle.hint(timeline, self._as_if_right(state))
        if step["tool"] == "declare_infeasible":
            return tool_call("finish", answer="done", p=0.9)
        if state.site.draft is None or not state.site.page.startswith("flow"):
            return step
        return self._wronged(step, state) or self._spoilt(step, state) or step

    def _as_if_right(self, state: SurfState) -> SurfState:
        """Return the state as it were if the twisted values were the right ones."""
        controls = tuple(
            replace(
                c,
                value=self._twisted.get(c.ident, c.value),
                flags=c.flags | (CHECKED if c.ident in self._passed_over else 0),
            )
            for c in state.page.controls
        )
        page = replace(state.page, controls=controls)
        return replace(state, page=page)

    def _wronged(self, step: BrowserToolCall, state: SurfState) -> BrowserToolCall | None:
        """Return the step with a wrong value; None where there is no other."""
        given = step["arguments"]
        control = state.page.control(int(given.get("ref", 0)))
        if control is None:
            return None
        if step["tool"] == "type":
            wrong = _off(given["text"])
            self._twisted[control.ident] = given["text"]
            return tool_call("type", ref=control.ref, text=wrong)
        if step["tool"] == "select":
            others = [o.label for o in control.options if o.label and o.enabled]
            others = [label for label in others if label != given["option"]]
            if others:
                self._twisted[control.ident] = given["option"]
                return tool_call("select", ref=control.ref, option=others[-1])
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
                return tool_call("click", ref=beside[-1].ref)
        return None

    def _spoilt(self, step: BrowserToolCall, state: SurfState) -> BrowserToolCall | None:
        """Return a wrong value where a form that came with the right ones is sent."""
        pressed = state.page.control(int(step["arguments"].get("ref", 0)))
        is_sent = pressed is not None and pressed.role == "button"
        if self._twisted or self._passed_over or not is_sent:
            return None
        made = (self._wronged(kept, state) for kept in _repeated_values(state.page))
        return next((wrong for wrong in made if wrong is not None), None)


def _repeated_values(page: PageObservation) -> Iterator[BrowserToolCall]:
    """Yield what would put into each control what it holds already."""
    for control in page.controls:
        if control.options and control.value:
            yield tool_call("select", ref=control.ref, option=control.value)
        elif control.role == "radio" and control.checked:
            yield tool_call("click", ref=control.ref)
        elif control.role == "textbox" and control.value:
            yield tool_call("type", ref=control.ref, text=control.value)


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


class SurfRandom(StatePolicy):
    """Acts on controls of the page at random, then finishes."""

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        timeline, state = self._observed()
        if self.steps > _PATIENCE:
            return tool_call("finish", answer="", p=0.0)
        draw = derive(timeline.instance.seed, "random", self.steps)
        return random_act(state.page, draw)


def random_act(page: PageObservation, draw: int) -> BrowserToolCall:
    """Return one of the actions that a page allows.

    Args:
        page: the page.
        draw: a number that chooses it.
    """
    rows = [c for c in listed_controls(page) if not c.has(DISABLED)]
    if not rows:
        return tool_call("back")
    control = rows[draw % len(rows)]
    if control.options:
        option = control.options[(draw >> 8) % len(control.options)]
        return tool_call("select", ref=control.ref, option=option.label)
    if control.role in ("textbox", "searchbox"):
        words = ("1", "2", "Ann", page.title.split(" ")[0])
        return tool_call("type", ref=control.ref, text=words[(draw >> 8) % len(words)])
    return tool_call("click", ref=control.ref)


class SurfLeakProbe(StatePolicy):
    """Looks for the answer everywhere but on the site, and types what it found."""

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        if self.steps <= len(_PROBES):
            return tool_call("goto", address=_PROBES[self.steps - 1])
        _, state = self._observed()
        fields = [c for c in state.controls if c.role in ("textbox", "searchbox")]
        if fields and self.steps == len(_PROBES) + 1:
            environment = " ".join(sorted(os.environ))[:400]
            return tool_call("type", ref=fields[0].ref, text=environment)
        return tool_call("finish", answer="found", p=0.0)


class IdReplay(StatePolicy):
    """Hard-codes: presses whatever carries the ids that solved the last attempt.

    It plays on as the oracle does, but before each page's first act it uses what bears an id of the
    attempt before. On decoys that is what gives it away.
    """

    def __init__(self, access: OracleAccess) -> None:
        super().__init__(access)
        self.known: frozenset[str] = frozenset()

    def _call(self, info: Mapping[str, Any]) -> BrowserToolCall:
        _, state = self._observed()
        old = [c for c in state.controls if c.ident in self.known]
        if old and self.steps <= _STUBBORN:
            self.known -= {old[0].ident}
            return _blind_use(old[0])
        step = self._hint()
        if step["tool"] in ENDING_TOOLS:
            return tool_call("finish", answer="done", p=0.9)
        return step


def _blind_use(control: ObservedControl) -> BrowserToolCall:
    """Return the use of a control that nobody looked at: it says not what it is."""
    if control.role in ("textbox", "searchbox"):
        return tool_call("type", ref=control.ref, text="1")
    if control.options:
        return tool_call("select", ref=control.ref, option=control.options[-1].label)
    return tool_call("click", ref=control.ref)


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": SurfNoOp,
    "random": SurfRandom,
    "plausible_wrong": SurfPlausibleWrong,
    "over_doer": SurfOverDoer,
    "leak_probe": SurfLeakProbe,
    "oracle": KnowingPolicy,
}
