"""A running project with real code: repository, tracker, integration, days.

Source: docs/projforge.md#tools
"""

import shutil
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from owa_bench.envs.projforge import forge_state as rules
from owa_bench.envs.projforge.forge_actions import ForgeActions
from owa_bench.envs.projforge.forge_state import MOCK, TOOLS, task_text
from owa_bench.envs.projforge.scores import (
    POSTMORTEM_DAYS,
    WEEK,
    day_closed,
    day_event,
    proposition_texts,
)
from owa_bench.envs.projforge.world import DAY_MS, ProjectWorld
from owa_bench.envs.projforge.world_code import PIPELINE, harness_test, lock_file, pipeline_file
from owa_bench.envs.projforge.world_rules import feature_prose, incident_text
from owa_bench.interfaces import Seated, Sink, Task, ToolResult
from owa_bench.records.events import Artifact, Event, Evidence
from owa_bench.records.instance import Timeline
from owa_bench.repositories.repository import MAIN, WorktreeFault

SEAT = "developer"
_FINISH = "The project is over: call finish with p."


class ForgeSession(ForgeActions, Seated):
    """One project: a worktree that the agent edits, and what runs it."""

    tools = TOOLS
    seats = (SEAT,)
    seat = SEAT
    process = "a sandbox with a git repository"

    def __init__(self, timeline: Timeline, sink: Sink) -> None:
        super().__init__(timeline)
        self._sink = sink
        self._begin_project()

    @override
    def task_of(self, seat: str) -> Task:
        world = self.state.world
        goal = {
            "domain": world.domain,
            "days": world.days,
            "libraries": [library.name for library in world.libraries],
        }
        propositions = proposition_texts(world)
        return Task(task_text(world, self._daily), goal, propositions)

    @property
    @override
    def sitting(self) -> int:
        """The number of the week."""
        return min(self.state.day, self.state.world.days - 1) // WEEK

    @override
    def look(self) -> str:
        """Return the day, the steps left, and the last bulletins."""
        state = self.state
        if state.over:
            return _FINISH
        left = f"Day {state.day}, {self._daily - state.spent} steps left."
        return "\n".join([left, *(f"bulletin: {b}" for b in state.world.bulletins[-2:])])

    @override
    def enter(self, world: ProjectWorld, *, now_ms: int) -> None:
        """Go on in the world of a further day."""
        renewed = world.protocol != self.state.world.protocol
        self.state = replace(self.state, world=world)
        self._begin_day(renewed=renewed)

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        state = self.state
        self.attachment = ""
        if state.over:
            return ToolResult(_FINISH, False)
        if tool == "next_day":
            return self._end_day(step)
        if state.spent >= self._daily:
            return ToolResult("No steps are left today: call next_day.", False)
        self.state = replace(state, spent=state.spent + 1)
        try:
            result: ToolResult = getattr(self, f"_{tool}")(step=step, **arguments)
        except WorktreeFault as fault:
            return ToolResult(f"git cannot take the worktree as it is: {fault}", False)
        return result

    @override
    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return the project's history as a bundle, and its tracker and scores."""
        bundle = self._repository.bundle(self._folder / "history.bundle")
        media = "application/x-git-bundle"
        rows = self._tracker.execute("select * from issue order by day, name").fetchall()
        scores = self.state.scores
        record = {
            "head": self.state.head,
            "issues": rows,
            "acceptance": [None if s != s else round(s, 6) for s in scores.acceptance],
            "service": [None if s != s else round(s, 6) for s in scores.service],
            "releases": list(scores.releases),
            "postmortems": dict(scores.postmortems),
            "regressions": scores.regressions,
        }
        return (
            Evidence(step=step, name="history.bundle", media=media, blob=self._sink.blob(bundle)),
            Artifact(
                step=step,
                name="project.json",
                media="application/json",
                blob=self._sink.blob(msgspec.json.encode(record)),
            ),
        )

    @override
    def close(self) -> None:
        """End the sandbox and remove every file."""
        self._workshop.close()
        self._tracker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- days -------------------------------------------------------------------------

    def _begin_project(self) -> None:
        world = self.state.world
        first = {
            "app/__init__.py": "",
            "README.md": task_text(world, self._daily) + "\n",
            PIPELINE: pipeline_file(world),
            world.lock: lock_file(world, 0),
        }
        for path, text in first.items():
            self._files.put(path, text)
        self._repository.commit("Begin", "platform", 0)
        self._begin_day(renewed=False)

    def _begin_day(self, *, renewed: bool) -> None:
        """Publish the index, file the day's issues and deliver their tests."""
        world, day = self.state.world, self.state.day
        self._workshop.publish(world, day)
        delivered: dict[str, str] = {}
        for wish in world.wishes:
            if wish.day <= day:
                self._file("wish", wish.name, wish.day, 0, feature_prose(world, wish))
        for feature in world.issued(day):
            prose = feature_prose(world, feature)
            days = feature.day, feature.due
            new = self._file("feature", feature.name, *days, prose)
            if new or renewed:
                path = f"{rules.HARNESS}/test_{feature.name}.py"
                text = harness_test(world, self._examiner.examples(world, feature))
                delivered[path] = text
                self._harness[path] = rules.blob_hash(text)
        if delivered:
            self._repository.deliver(delivered, "Tests", day)
            if self._repository.branch == MAIN:
                for path, text in delivered.items():
                    self._files.put(path, text)
        self.state = replace(self.state, head=self._repository.head())
        self._look_at_work()

    def _start_incident(self) -> None:
        """Stop production where an incident is on the day that begins."""
        day = self.state.day
        for incident in self.state.world.incidents:
            if incident.day == day:
                due = day + POSTMORTEM_DAYS - 1
                self._file("incident", incident.name, day, due, incident_text(incident))
                self.state = replace(self.state, deployed="", stopped=incident.cause)

    def _file(self, kind: str, name: str, day: int, due: int, text: str) -> bool:
        """File an issue; return whether it is new."""
        query = "insert or ignore into issue (kind, name, day, due, text)"
        row = (kind, name, day, due, text)
        done = self._tracker.execute(f"{query} values (?, ?, ?, ?, ?)", row)
        return bool(done.rowcount)

    def _end_day(self, step: int) -> ToolResult:
        state = self.state
        world, day = state.world, state.day
        verdict = self._examiner.examine(world, day, state.head)
        told = ""
        for breach in verdict.breaches:
            seen = f"day {day}: {breach.evidence}"
            self._note(breach._replace(evidence=seen))
            told += f"\n{MOCK.warning}" if breach.rule == MOCK.name else ""
        served, timed = frozenset[str](), verdict.timed
        if state.deployed:
            served, late = self._examiner.served_features(world, day, state.deployed)
            timed = timed or late
        scores = day_closed(
            state.scores,
            world,
            day,
            accepted=verdict.accepted,
            served=served,
            green=state.ran == (state.head, True),
        )
        self.state = replace(self.state, scores=scores, day=day + 1, spent=0, minutes=0)
        if not self.state.over:
            self._begin_day(renewed=False)
            self._start_incident()
        event = day_event(world, state.scores, scores, step=step, minutes=state.minutes)
        return ToolResult(f"Day {day} is over.{told}", True, DAY_MS, events=(event,), timed=timed)
