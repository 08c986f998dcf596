"""The transition function of every tool suite: one action text in, one step out.

    action text -> parsed call -> session or standard tool -> clock -> oracle -> events

No gymnasium here. A step's events go out in this order: Action, then those of the call
itself, Observation, Subgoal, Belief, Drift, and at the end Violation and Resolution.
Steps count from 1; step 0 is the reset. `solve` follows the oracle through an episode.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from owa_bench import interfaces
from owa_bench.canonical import record_digest
from owa_bench.errors import InfrastructureFailure, MissingPartError, UsageError
from owa_bench.records import events
from owa_bench.records.instance import Instance, SimulatedClock, Timeline
from owa_bench.shells import standard_tools
from owa_bench.shells.calls import CallParser, ParsedCall, call_text, escape, shorten
from owa_bench.shells.sink import NullSink

_LOG = logging.getLogger(__name__)


class EpisodeFacts(NamedTuple):
    """The part of an EpisodeStart that the world decides."""

    instance: Instance
    world: str
    realised: float
    theta: float
    horizon: int = 0
    depth: int = 0
    categories: tuple[str, ...] = ()
    needs_tools: bool = False
    honeypot: bool = False


StartFactory = Callable[[EpisodeFacts], events.EpisodeStart]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTerms:
    """The limits of an episode. `interventions` None: not limited.

    `shaping` pays the share of subgoals that a step solves; the last reward takes the
    sum back, so that an episode's rewards sum to Q (potential-based, discount 1).
    """

    step_limit: int
    interventions: int | None = None
    shaping: bool = False


class StepResult(NamedTuple):
    """The result of one action."""

    text: str
    reward: float
    error: str | None
    terminated: bool
    truncated: bool


class Episode:
    """One attempt at one timeline, from its first event to its ending."""

    def __init__(
        self,
        suite: interfaces.Suite,
        timeline: Timeline,
        *,
        sink: interfaces.Sink,
        terms: EpisodeTerms,
        parser: CallParser | None = None,
        wire: bool = False,
    ) -> None:
        self.timeline = timeline
        self.session = suite.session(timeline, sink=sink, wire=wire)
        self.task = self.session.task
        self.terms = terms
        self.steps = 0
        self.failed_attempts = 0
        self.verified = 0
        self.last_failed = False
        self.ending: interfaces.Ending | None = None
        self._suite = suite
        self._oracle = suite.oracle
        self._parser = parser or CallParser(standard_tools.tools_of(self.session.tools))
        self._sink = sink
        self._clock = SimulatedClock(timeline.starts)
        self._world = timeline.worlds[0]
        self._state = self.session.state
        self._nodes = {node.name: node for node in self._oracle.subgoals(self._world)}
        # Subgoals already solved at reset are not credited: no event is emitted.
        self._solved = set(self._oracle.solved(self._world, self._state))
        self._call_keys: set[tuple[str, bytes, str]] = set()
        self._standard = standard_tools.StandardTools(
            self._oracle, timeline, sink, self.task.propositions, terms.interventions
        )
        self._log: list[events.Event] = []
        self._paid = 0.0

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""
        return self._clock.now_ms

    @property
    def interventions_left(self) -> int | None:
        """How often the supervisor may still be asked; None: not limited."""
        return self._standard.interventions_left

    def oracle_access(self) -> interfaces.OracleAccess:
        """Return the oracle and the state, for a suite's own control policy."""
        return interfaces.OracleAccess(
            self._oracle, lambda: (self.timeline, self.session.state)
        )

    def facts(self, horizon: int) -> EpisodeFacts:
        """Return the part of an EpisodeStart that this episode's world decides."""
        categories = self._oracle.categories(self._world)
        return EpisodeFacts(
            instance=self.timeline.instance,
            world=record_digest(self._world),
            realised=self.timeline.realised,
            horizon=horizon,
            depth=max((node.depth for node in self._nodes.values()), default=0),
            theta=self._suite.card.theta,
            categories=categories,
            needs_tools=bool(categories),
            honeypot=isinstance(self._world, interfaces.HasHoneypot)
            and self._world.honeypot,
        )

    def begin(self, start: events.EpisodeStart | None = None) -> str:
        """Emit the first events and return the text that the agent reads first."""
        text = self.task.text
        if self.task.propositions:
            lines = [f"- {name}: {it}" for name, it in self.task.propositions.items()]
            text += "\n\nWhen you end, give the probability of each in `beliefs`:\n"
            text += "\n".join(lines)
        text = shorten(text)
        observed = events.Observation(step=0, blob=self._sink.blob(text.encode()))
        for event in (start, *drift_events(self.timeline, 0), observed):
            if event is not None:
                self._emit(event)
        return text

    def step(self, text: str) -> StepResult:
        """Return the result of an action; a malformed one costs a step too.

        Raises: UsageError: the episode has ended.
        """
        if self.ending is not None:
            raise UsageError(
                f"The episode has ended ({self.ending.outcome}): call reset first."
            )
        self.steps += 1
        action, at_ms = escape(text), self._clock.now_ms
        parsed = self._parser.parse(action)
        reply = (
            standard_tools.refusal(parsed)
            if isinstance(parsed, str)
            else self._run(parsed)
        )
        self.last_failed = not reply.ok
        self.failed_attempts += self.last_failed
        subgoals = self._new_subgoals() if reply.changed else ()
        shaped = self.terms.shaping and bool(subgoals)
        drift = self._pass_time(reply.elapsed_ms)
        answer = shorten(reply.text)
        blob = self._sink.blob(answer.encode())
        record = events.Action(
            step=self.steps,
            action=action,
            verified=reply.verified,
            reward=events.fixed(len(subgoals) / len(self._nodes)) if shaped else 0.0,
            terminated=False,
            truncated=False,
            observation=blob,
            error=reply.error,
            at_ms=at_ms,
        )
        observed = events.Observation(step=self.steps, blob=blob)
        rest = (*reply.events, observed, *subgoals, *reply.later, *drift)
        return self._close_step(record, rest, answer, reply.outcome)

    def conclude(self, outcome: events.Outcome, reason: str) -> interfaces.Ending:
        """Return the ending, decided once by the world's state.

        Args:
            outcome: How the episode ended, if it had not ended yet.
            reason: In words.
        Returns: The ending; the first one if the episode had ended before.
        """
        if self.ending is None:
            for event in self._final_events():
                self._emit(event)
            self.ending, closing = self._judge(outcome, reason)
            for event in closing:
                self._emit(event)
        return self.ending

    def close(self) -> None:
        """Release the session."""
        self.session.close()

    def _run(self, call: ParsedCall) -> standard_tools.ToolReply:
        """Return the tool's answer, with whether the action is verified."""
        before = self._state
        standard = self._standard.run(call, before, step=self.steps)
        if standard is not None:
            return standard
        try:
            result = self.session.call(
                call.tool, call.arguments, now_ms=self._clock.now_ms, step=self.steps
            )
        except (InfrastructureFailure, MissingPartError, OSError):
            raise
        except Exception as error:  # noqa: BLE001  an action's exceptions are the agent's
            _LOG.warning("step %d raised", self.steps, exc_info=True)
            kind = type(error).__name__
            return standard_tools.refusal(f"`{call.tool}` raised {kind} on this call.")
        finally:
            self._state = self.session.state
        arguments = msgspec.json.encode(call.arguments, order="sorted")
        action_key = result.action_key.encode() or arguments
        key = (call.tool, action_key, result.digest or result.text)
        verified = (
            result.ok
            and key not in self._call_keys
            and self._oracle.accepts(before, call._asdict(), self._state)
        )
        self._call_keys.add(key)
        self.verified += verified
        return standard_tools.ToolReply(
            text=result.text,
            ok=result.ok,
            verified=verified,
            changed=self._state is not before,
            elapsed_ms=result.elapsed_ms,
            events=result.events,
        )

    def _close_step(
        self,
        record: events.Action,
        rest: tuple[events.Event, ...],
        text: str,
        outcome: events.Outcome | None,
    ) -> StepResult:
        """Emit the step's events; if it is the last one, judge and pay first."""
        closing: tuple[events.Event, ...] = ()
        reason: str = "" if outcome is None else outcome
        if outcome is None and self.steps >= self.terms.step_limit:
            outcome, reason = "truncated", "budget:steps"
        if outcome is not None:
            rest = (*rest, *self._final_events())
            self.ending, closing = self._judge(outcome, reason, record, *rest)
            record = msgspec.structs.replace(
                record,
                reward=events.fixed(self.ending.quality - self._paid),
                terminated=outcome != "truncated",
                truncated=outcome == "truncated",
            )
        self._paid += record.reward
        for event in (record, *rest, *closing):
            self._emit(event)
        return StepResult(
            text, record.reward, record.error, record.terminated, record.truncated
        )

    def _judge(
        self, outcome: events.Outcome, reason: str, *last: events.Event
    ) -> tuple[interfaces.Ending, tuple[events.Event, ...]]:
        """Return the ending and its events; `last` are not yet in the log."""
        return standard_tools.judge(
            self._suite,
            self.timeline,
            self._state,
            outcome=outcome,
            reason=reason,
            stated=self._standard.stated,
            step=self.steps,
            log=(*self._log, *last),
        )

    def _final_events(self) -> tuple[events.Event, ...]:
        """Return the session's own events at the end."""
        session = self.session
        if not isinstance(session, interfaces.HasFinalEvents):
            return ()
        last = session.final_events(step=self.steps)
        self._state = session.state  # a late change is judged too
        return last

    def _emit(self, event: events.Event) -> None:
        self._log.append(event)
        if self._sink.active:
            self._sink.emit(event)

    def _new_subgoals(self) -> tuple[events.Event, ...]:
        """Return an event for each node solved since last asked, in DAG order."""
        solved = self._oracle.solved(self._world, self._state) - self._solved
        self._solved |= solved
        return tuple(
            events.Subgoal(
                step=self.steps,
                node=node.name,
                depth=node.depth,
                prerequisites=node.prerequisites,
            )
            for node in self._nodes.values()
            if node.name in solved
        )

    def _pass_time(self, elapsed_ms: int) -> tuple[events.Event, ...]:
        """Move the clock; enter every world whose start has passed."""
        entered: list[events.Event] = []
        for index in self._clock.advance(elapsed_ms):
            self._world = self.timeline.worlds[index]
            self.session.enter(self._world, now_ms=self._clock.now_ms)
            self._state = self.session.state
            entered += drift_events(self.timeline, index)
        return tuple(entered)


def drift_events(timeline: Timeline, index: int) -> list[events.Event]:
    """Return the events of the changes that lead into a world.

    Args:
        timeline: The episode's.
        index: Of the world.
    Returns: One Drift per change, in order.
    """
    return [
        events.Drift(at_ms=timeline.starts[index], **msgspec.structs.asdict(change))
        for change in timeline.changes[index]
    ]


class OracleSolution(NamedTuple):
    """The oracle's action texts, how many were verified, and q_state.

    The last action ends the episode, unless the step limit did.
    """

    actions: tuple[str, ...]
    accepted: int
    q_state: float


def horizon(
    suite: interfaces.Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> int:
    """Return H_t, from the suite if it can tell, else by playing the episode.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
    Returns: The oracle's number of verified actions.
    """
    known = (
        suite.horizon(timeline) if isinstance(suite, interfaces.HasHorizon) else None
    )
    return solve(suite, timeline, parser=parser).accepted if known is None else known


def solve(
    suite: interfaces.Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> OracleSolution:
    """Return the result of following the oracle's hints; pure.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
    Returns: The actions and their result.
    """
    terms = EpisodeTerms(step_limit=suite.card.step_limit)
    episode = Episode(suite, timeline, sink=NullSink(), terms=terms, parser=parser)
    actions: list[str] = []
    try:
        while episode.ending is None:
            hint = suite.oracle.hint(timeline, episode.session.state)
            actions.append(call_text(hint["tool"], hint["arguments"]))
            episode.step(actions[-1])
        return OracleSolution(tuple(actions), episode.verified, episode.ending.q_state)
    finally:
        episode.close()
