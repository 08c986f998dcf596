"""The transition function of every tool suite: one action text in, one step out.

    action text -> parsed call -> session or standard tool -> clock -> oracle -> events

No gymnasium here. A step's events go out in this order: Action, then those of the call
itself, Observation, Subgoal, Belief, Drift, and at the end Violation and Resolution.
Steps count from 1; step 0 is the reset.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from owa_bench.canonical import record_digest
from owa_bench.errors import UsageError
from owa_bench.interfaces import (
    Ending,
    HasFinalEvents,
    HasHoneypot,
    OracleAccess,
    Sink,
    Suite,
    Task,
)
from owa_bench.records.events import (
    Action,
    Drift,
    EpisodeStart,
    Event,
    Observation,
    Outcome,
    Subgoal,
    fixed,
)
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import Call, CallParser, escape, shorten
from owa_bench.shells.clock import SimulatedClock
from owa_bench.shells.ending import Finding, judge
from owa_bench.shells.standard_tools import Reply, StandardTools, refusal, tools_of


class Opening(NamedTuple):
    """What the env knows of an episode before its first event."""

    instance: Instance
    world: str
    realised: float
    horizon: int
    depth: int
    theta: float
    categories: tuple[str, ...]
    needs_tools: bool
    honeypot: bool


Start = Callable[[Opening], EpisodeStart]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of an episode. `interventions` None: not limited.

    `shaping` pays the share of subgoals that a step solves; the last reward takes the
    sum back, so that an episode's rewards sum to Q (potential-based, discount 1).
    """

    step_limit: int
    interventions: int | None = None
    shaping: bool = False


class Step(NamedTuple):
    """What one action came to."""

    text: str
    reward: float
    error: str | None
    terminated: bool
    truncated: bool


class Episode:
    """One attempt at one timeline, from its first event to its ending."""

    def __init__(
        self,
        suite: Suite,
        timeline: Timeline,
        *,
        sink: Sink,
        terms: Terms,
        parser: CallParser | None = None,
        wire: bool = False,
    ) -> None:
        self.timeline = timeline
        self.session = suite.session(timeline, sink=sink, wire=wire)
        self.task: Task = self.session.task
        self.terms = terms
        self.steps = 0
        self.failed_attempts = 0
        self.verified = 0
        self.last_failed = False
        self.ending: Ending | None = None
        self._suite = suite
        self._oracle = suite.oracle
        self._parser = parser or CallParser(tools_of(self.session.tools))
        self._sink = sink
        self._clock = SimulatedClock(timeline.starts)
        self._world = timeline.worlds[0]
        self._state = self.session.state
        self._nodes = {node.name: node for node in self._oracle.subgoals(self._world)}
        # What stands solved at reset is nobody's merit and makes no event.
        self._solved = set(self._oracle.solved(self._world, self._state))
        self._seen: set[tuple[str, bytes, str]] = set()
        self._standard = StandardTools(
            self._oracle,
            timeline,
            sink,
            listed=self.task.propositions,
            interventions=terms.interventions,
        )
        self._log: list[Event] = []
        self._paid = 0.0

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""
        return self._clock.now_ms

    @property
    def interventions_left(self) -> int | None:
        """How often the supervisor may still be asked; None: not limited."""
        return self._standard.interventions_left

    def oracle_access(self) -> OracleAccess:
        """Return what a suite's own control policy may see."""
        return OracleAccess(
            oracle=self._oracle, observe=lambda: (self.timeline, self.session.state)
        )

    def opening(self, horizon: int) -> Opening:
        """Return what an EpisodeStart says of this episode's world."""
        categories = self._oracle.categories(self._world)
        return Opening(
            instance=self.timeline.instance,
            world=record_digest(self._world),
            realised=self.timeline.realised,
            horizon=horizon,
            depth=max((node.depth for node in self._nodes.values()), default=0),
            theta=self._suite.card.theta,
            categories=categories,
            needs_tools=bool(categories),
            honeypot=isinstance(self._world, HasHoneypot) and self._world.honeypot,
        )

    def begin(self, start: EpisodeStart | None = None) -> str:
        """Emit the first events and return the text that the agent reads first."""
        text = self.task.text
        if self.task.propositions:
            lines = [f"- {name}: {it}" for name, it in self.task.propositions.items()]
            text += "\n\nWhen you end, give the probability of each in `beliefs`:\n"
            text += "\n".join(lines)
        text = shorten(text)
        observed = Observation(step=0, blob=self._sink.blob(text.encode()))
        for event in (start, *self._drift_events(0), observed):
            if event is not None:
                self._emit(event)
        return text

    def step(self, text: str) -> Step:
        """Return what the action came to; a malformed one costs a step too.

        Errors: UsageError if the episode has ended.
        """
        if self.ending is not None:
            raise UsageError(
                f"The episode has ended ({self.ending.outcome}): call reset first."
            )
        self.steps += 1
        action, at_ms = escape(text), self._clock.now_ms
        parsed = self._parser.parse(action)
        reply = refusal(parsed) if isinstance(parsed, str) else self._run(parsed)
        self.last_failed = not reply.ok
        self.failed_attempts += self.last_failed
        subgoals = self._new_subgoals() if reply.changed else ()
        drift = self._pass_time(reply.elapsed_ms)
        seen = shorten(reply.text)
        blob = self._sink.blob(seen.encode())
        record = Action(
            step=self.steps,
            action=action,
            verified=reply.verified,
            reward=self._shaped(len(subgoals)),
            terminated=False,
            truncated=False,
            observation=blob,
            error=reply.error,
            at_ms=at_ms,
        )
        observed = Observation(step=self.steps, blob=blob)
        rest = (*reply.events, observed, *subgoals, *reply.later, *drift)
        return self._close_step(record, rest, seen, reply.outcome)

    def conclude(self, outcome: Outcome, reason: str) -> Ending:
        """Return the ending, decided once by what the world's state is worth."""
        if self.ending is None:
            for event in self._parted():
                self._emit(event)
            finding = self._judge(outcome, reason)
            self.ending = finding.ending
            for event in finding.events:
                self._emit(event)
        return self.ending

    def close(self) -> None:
        """Release the session."""
        self.session.close()

    def _run(self, call: Call) -> Reply:
        """Return what the tool answered, with whether the action is verified."""
        before = self._state
        standard = self._standard.run(call, before, step=self.steps)
        if standard is not None:
            return standard
        result = self.session.call(
            call.tool, call.arguments, now_ms=self._clock.now_ms, step=self.steps
        )
        self._state = self.session.state
        arguments = msgspec.json.encode(call.arguments, order="sorted")
        action_key = result.action_key.encode() or arguments
        key = (call.tool, action_key, result.digest or result.text)
        verified = (
            result.ok
            and key not in self._seen
            and self._oracle.accepts(before, call._asdict(), self._state)
        )
        self._seen.add(key)
        self.verified += verified
        return Reply(
            text=result.text,
            ok=result.ok,
            verified=verified,
            changed=self._state is not before,
            elapsed_ms=result.elapsed_ms,
            events=result.events,
        )

    def _close_step(
        self,
        record: Action,
        rest: tuple[Event, ...],
        text: str,
        outcome: Outcome | None,
    ) -> Step:
        """Emit the step's events; if it is the last one, judge and pay first."""
        closing: tuple[Event, ...] = ()
        reason: str = "" if outcome is None else outcome
        if outcome is None and self.steps >= self.terms.step_limit:
            outcome, reason = "truncated", "budget:steps"
        if outcome is not None:
            rest = (*rest, *self._parted())
            self.ending, closing = self._judge(outcome, reason, record, *rest)
            record = msgspec.structs.replace(
                record,
                reward=fixed(self.ending.quality - self._paid),
                terminated=outcome != "truncated",
                truncated=outcome == "truncated",
            )
        self._paid += record.reward
        for event in (record, *rest, *closing):
            self._emit(event)
        return Step(
            text, record.reward, record.error, record.terminated, record.truncated
        )

    def _judge(self, outcome: Outcome, reason: str, *last: Event) -> Finding:
        """Return the ending and its events; `last` are not yet in the log."""
        return judge(
            self._suite,
            self.timeline,
            self._state,
            outcome=outcome,
            reason=reason,
            stated=self._standard.stated,
            step=self.steps,
            log=(*self._log, *last),
        )

    def _parted(self) -> tuple[Event, ...]:
        """Return what the session leaves behind at the end."""
        session = self.session
        if not isinstance(session, HasFinalEvents):
            return ()
        left = session.final_events(step=self.steps)
        self._state = session.state  # what came late is judged too
        return left

    def _emit(self, event: Event) -> None:
        self._log.append(event)
        if self._sink.active:
            self._sink.emit(event)

    def _shaped(self, solved: int) -> float:
        """Return what newly solved subgoals pay."""
        return (
            fixed(solved / len(self._nodes)) if self.terms.shaping and solved else 0.0
        )

    def _new_subgoals(self) -> tuple[Event, ...]:
        """Return an event for each node solved since last asked, in DAG order."""
        solved = self._oracle.solved(self._world, self._state) - self._solved
        self._solved |= solved
        return tuple(
            Subgoal(
                step=self.steps,
                node=node.name,
                depth=node.depth,
                prerequisites=node.prerequisites,
            )
            for node in self._nodes.values()
            if node.name in solved
        )

    def _pass_time(self, elapsed_ms: int) -> tuple[Event, ...]:
        """Move the clock; enter every world whose start has passed."""
        events: list[Event] = []
        for index in self._clock.advance(elapsed_ms):
            self._world = self.timeline.worlds[index]
            self.session.enter(self._world, now_ms=self._clock.now_ms)
            self._state = self.session.state
            events += self._drift_events(index)
        return tuple(events)

    def _drift_events(self, index: int) -> list[Any]:
        start = self.timeline.starts[index]
        return [
            Drift(at_ms=start, **msgspec.structs.asdict(change))
            for change in self.timeline.changes[index]
        ]
