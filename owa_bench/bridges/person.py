"""Persons as agents: the episode loop asks, a screen shows and takes the answer.

A screen is a terminal (`person_terminal.py`) or a page in a browser (`person_page.py`). What a
sitting showed is forgotten when the next one begins, as an agent of that suite is started anew.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from owa_bench import discovery
from owa_bench.bridges.outside_seats import OfferedTools, OutsideSeats, refuse_other_agents
from owa_bench.bridges.tool_forms import ToolForm, call_of, checked_call, form_of
from owa_bench.errors import FieldError
from owa_bench.hosting import protocol
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import PERSON, SCRIPTED_PERSON
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Progress, Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.batch import RunSummary
from owa_bench.runs.play.loop import RunStopped

_SITTING = "The next sitting of the same episode begins."


class PersonLeaves(Exception):
    """The person leaves; raised by a screen."""


class Exchange(msgspec.Struct, frozen=True):
    """An action of this sitting and the answer to it."""

    action: str
    answer: str
    refused: bool = False


class PersonView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a person may see now.

    `page` is another one for every sitting, `seat` "" where there is one seat. `task` is the brief
    and what the sitting began with, `text` what was answered last, "" before the first action.
    `forms` are those of the tools on offer; who leaves an episode that has `begun` has failed it.
    """

    page: int
    title: str
    task: str = ""
    text: str = ""
    seat: str = ""
    begun: bool = False
    forms: tuple[ToolForm, ...] = ()
    steps_left: int = 0
    interventions_left: int | None = None
    exchanges: tuple[Exchange, ...] = ()


class PersonScreen(Protocol):
    """Shows a person the episode and takes the answers; may raise PersonLeaves."""

    def begin(self, view: PersonView) -> None:
        """Forget all that was shown, and wait until the person wants to begin."""

    def ask(self, view: PersonView, desk: "ToolDesk", deadline_s: float) -> str:
        """Return the person's next action.

        Args:
            view: What to show.
            desk: Makes the action of a filled-in form.
            deadline_s: Seconds the person has, pauses not counted.
        Returns: The action as JSON text.
        Raises: AgentTimeout: none came in time.
        """


class ToolDesk:
    """The tools on offer: makes the action of a form, or of arguments."""

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def filled_in(self, tool: str, texts: Mapping[str, str]) -> str:
        """Return the action of a filled-in form.

        Args:
            tool: Name of the tool.
            texts: What was filled in, by the name of the field.
        Returns: The action as JSON text.
        Raises: UsageError: the tool is not on offer, or a field is not filled in right.
        """
        return call_of(self._tool(tool), texts)

    def called(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the action of a tool call.

        Args:
            tool: Name of the tool.
            arguments: By name.
        Returns: The action as JSON text.
        Raises: UsageError: the tool is not on offer, or its schema refuses them.
        """
        return checked_call(self._tool(tool), arguments)

    def _tool(self, name: str) -> ToolSpec:
        if name not in self._tools:
            raise FieldError("tool", name, f"must be one of {', '.join(self._tools)}")
        return self._tools[name]


class PersonSeats(OutsideSeats):
    """The seats of one run's person: a transport for every sitting of every seat."""

    def __init__(self, screen: PersonScreen, layout: RunLayout) -> None:
        super().__init__(layout, "person", (PersonLeaves, KeyboardInterrupt))
        self.screen = screen
        self._pages = 0
        self._complete: int | None = None

    def transport(self) -> "PersonTransport":
        """Return the loop's connection for one sitting."""
        return PersonTransport(self)

    def on_progress(self, progress: Progress) -> None:
        """Note that an episode has ended."""
        super().on_progress(progress)
        self._complete = progress.done

    def begin(self, brief: Brief) -> PersonView:
        """Begin a sitting; return its empty view.

        Raises:
            RunStopped: the person leaves, or has left, between two episodes.
            AgentRaised: the person leaves within one.
        """
        self._pages += 1
        title = _SITTING if brief.session else self._title()
        seat = "" if brief.role == "agent" else brief.role
        view = PersonView(page=self._pages, title=title, seat=seat, begun=self.acting)
        with self.present():
            self.screen.begin(view)
        return view

    def _title(self) -> str:
        held = batch.summary(self.layout)
        if self._complete is None:
            self._complete = held.complete
        suites = {suite.name for suite in read_plan(self.layout).suites}
        games = " and ".join(discovery.get("suites", name).card.title for name in sorted(suites))
        return f"{games}: episode {self._complete + 1} of {held.entries}"


class PersonTransport:
    """The loop's connection to a person, for one sitting of one seat."""

    def __init__(self, seats: PersonSeats) -> None:
        self._seats = seats
        self._tools = OfferedTools(seats, ())
        self._brief = Brief(text="", goal={})
        self._view = PersonView(page=0, title="")
        self._action = ""

    def ask(self, request: protocol.AgentRequest, deadline_s: float) -> protocol.AgentReply:
        """Return the reply: the action that the person chose.

        Args:
            request: The loop's.
            deadline_s: Seconds for an action; a person may take any time to begin.
        Returns: The reply; it declares nothing beside the action.
        """
        if request.reset is not None:
            self._tools = OfferedTools(self._seats, request.reset.tools)
            self._brief = request.reset.brief
            self._view = self._seats.begin(self._brief)
        elif request.act is not None:
            action = self._next_action(request.act, deadline_s)
            return protocol.AgentReply(action=action)
        return protocol.AgentReply()

    def _next_action(self, request: protocol.ActRequest, deadline_s: float) -> str:
        """Show what was answered and return the next action."""
        text, info = str(request.observation["text"]), request.info
        task, exchanges = self._view.task, self._view.exchanges
        if self._action:
            exchanges += (Exchange(self._action, text, "error" in info),)
        else:
            brief, task, text = self._brief.text, text, ""
            task = task if task.startswith(brief) else f"{brief}\n\n{task}"
        tools = self._tools.named(info.get("offer"))
        forms = tuple(form_of(tool, self._brief.propositions) for tool in tools)
        steps = int(self._brief.budgets.get("steps", 0))
        self._view = msgspec.structs.replace(
            self._view,
            task=task,
            text=text,
            forms=forms,
            steps_left=steps - int(info["step"]),
            interventions_left=info.get("interventions_left"),
            exchanges=exchanges,
        )
        self._seats.acting = True
        with self._seats.present():
            self._action = self._seats.screen.ask(self._view, ToolDesk(tools), deadline_s)
        return self._action

    def end(self) -> float:
        """End nothing: the person stays for the next episode."""
        return 0.0


def play_person(
    request: Request | None, out: Path, options: RunOptions, screen: PersonScreen
) -> RunSummary:
    """Let a person play the episodes of a run until all are played or they leave.

    Args:
        request: The run, whose one agent is the person; None continues the one in `out`.
        out: The run directory.
        options: Of the run.
        screen: Shows the person what an agent is shown.
    Returns: What the run directory holds.
    Raises: UsageError: Those of `batch.play`, or the run to go on with is no person's.
    """
    layout = RunLayout(out)
    if request is None:
        refuse_other_agents(layout, (PERSON, SCRIPTED_PERSON))
    seats = PersonSeats(screen, layout)
    options = replace(options, client=seats.transport, progress=seats.on_progress)
    with contextlib.suppress(RunStopped):
        if request is None:
            batch.resume(out, options)
        else:
            batch.play(request, out, options)
    return batch.summary(layout)
