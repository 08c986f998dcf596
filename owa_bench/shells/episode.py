"""The transition function of every tool suite: one action text in, one step out.

    action text -> parsed call -> session or standard tool -> clock -> oracle -> events

No gymnasium here. A step's events go out in this order: Action, those of the call itself, Subgoal,
Belief, Drift, Sitting, Tools, Observation, and at the end Violation and Resolution. Steps count
from 1; step 0 is the reset. An action is that of the session's present seat; the text that a step
returns is for the seat that acts next. `seating` says whose turn it is.
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
from owa_bench.shells.calls import REPLY_LIMIT, CallParser, ParsedCall, escape, shorten
from owa_bench.shells.episode_events import NodeProgress, depth_of, drift_events
from owa_bench.shells.seating import Seating, by_seat

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
    read: int = 0
    decisions: int = 0
    written: int = 0
    needs_tools: bool = False
    honeypot: bool = False
    step_limit: int = 0
    horizon_cap: int = 0
    depth_cap: int = 0
    seats: tuple[str, ...] = ()
    meters: tuple[events.WitnessedMeter, ...] = ()
    crew_bound: float | None = None
    no_lift: str = ""


_PLAIN = interfaces.Setting()
StartFactory = Callable[[EpisodeFacts], events.EpisodeStart]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTerms:
    """The limits of an episode. `interventions` None: not limited.

    `step_limit` None: the suite's own. `shaping` pays the share of subgoals that a step solves, of
    a task without subgoals the rise of q_state; the last reward takes the sum back, so that an
    episode's rewards sum to Q (potential-based, discount 1).
    """

    step_limit: int | None = None
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
        setting: interfaces.Setting = _PLAIN,
        laboratory: interfaces.Laboratory | None = None,
    ) -> None:
        self.timeline = timeline
        self.session = suite.session(timeline, sink, setting, laboratory)
        if rule := suite.card.unmapped(self.session.tools):
            self.session.close()
            raise UsageError(f"Suite `{suite.card.name}`: {rule}.")
        self.task = self.session.task
        self.terms = terms
        self.rules = suite.terms(timeline.instance)
        self.timed = False
        self.steps = 0
        self.spent = 0  # steps that count against the limit: all but as many waits
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
        self._progress = NodeProgress(self._oracle, self._world, self._state)
        self._call_keys: set[tuple[str, bytes, str]] = set()
        listed = self.task.propositions
        self._standard = standard_tools.StandardTools(
            self._oracle, timeline, sink, listed, terms.interventions, self.session
        )
        self.log: list[events.Event] = []
        self._remark = ""  # goes before the next answer
        self._paid = 0.0
        keeps = suite.card.keep_notes
        self.seating = Seating(
            self.session,
            tools=self.rules.tools,
            tools_off=setting.tools_off,
            forget=(lambda _: None) if keeps else self._standard.forget,
        )

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""
        return self._clock.now_ms

    @property
    def step_limit(self) -> int:
        """The most actions of this episode."""
        return self.terms.step_limit or self.rules.step_limit

    @property
    def interventions_left(self) -> int | None:
        """How often the supervisor may still be asked; None: not limited."""
        return self._standard.interventions_left

    def oracle_access(self) -> interfaces.OracleAccess:
        """Return the oracle and the state, for a suite's own control policy."""
        return interfaces.OracleAccess(self._oracle, lambda: (self.timeline, self.session.state))

    def facts(self, horizon: int) -> EpisodeFacts:
        """Return the part of an EpisodeStart that this episode's world decides."""
        categories = self._oracle.categories(self._world)
        crew = self.seating.crew
        bound = crew.crew_bound if crew else None
        work = self._suite.card.work.get(self.timeline.instance.tier)
        return EpisodeFacts(
            crew_bound=None if bound is None else events.fixed(bound),
            no_lift=crew.no_lift if crew else "",
            instance=self.timeline.instance,
            world=record_digest(self._world),
            realised=self.timeline.realised,
            horizon=horizon,
            depth=min(depth_of(self._oracle, w) for w in self.timeline.worlds),
            theta=self.rules.theta,
            step_limit=self.step_limit,
            horizon_cap=self.rules.horizon or self._suite.card.horizon,
            depth_cap=self._suite.card.depth_target,
            seats=self.seating.seats,
            meters=self._suite.card.meters,
            categories=categories,
            read=work.read if work else 0,
            decisions=work.decisions if work else 0,
            written=work.written if work else 0,
            needs_tools=bool(categories),
            honeypot=self._suite.honeypot(self._world),
        )

    def begin(self, start: events.EpisodeStart | None = None) -> str:
        """Emit the first events and return the text that the agent reads first."""
        text, opening = self.seating.turn(0, self._sink.blob)
        graph = self._progress.graph() if self._sink.active else ()
        for event in (start, *drift_events(self.timeline, 0), *graph, *opening):
            if event is not None:
                self._emit(event)
        return text

    def step(self, text: str) -> StepResult:
        """Return the result of an action; a malformed one costs a step too.

        Raises: UsageError: the episode has ended.
        """
        if self.ending is not None:
            raise UsageError(f"The episode has ended ({self.ending.outcome}): call reset first.")
        self.steps += 1
        seat, at_ms, action = self.seating.seat, self._clock.now_ms, escape(text)
        parsed, category = self._parser.parse(action), ""
        if not isinstance(parsed, str):
            category = self._suite.card.categories.get(parsed.tool, "")
        if isinstance(parsed, str):
            reply = standard_tools.refusal(parsed)
        elif refused := self.seating.refusal(parsed.tool):
            reply = standard_tools.refusal(refused)
        else:
            reply = self._run(parsed, seat)
        self.last_failed = not reply.ok
        self.failed_attempts += self.last_failed
        waits = self.steps - 1 - self.spent
        self.spent += not reply.waiting or waits >= self.step_limit
        subgoals: tuple[events.Subgoal, ...] = ()
        if reply.changed:
            subgoals = self._progress.solve(self._world, self._state, self.steps)
        pay = self._pay(len(subgoals)) if reply.changed and self.terms.shaping else 0.0
        drift = self._pass_time(reply.elapsed_ms)
        remark, self._remark = self._remark, ""
        whole = f"{remark}\n\n{reply.text}" if remark else reply.text
        answer = shorten(whole, self.session.reply_limit or REPLY_LIMIT)
        blob = self._sink.blob(answer.encode())
        self.seating.keep(seat, answer, blob)
        record = events.Action(
            step=self.steps,
            action=action,
            verified=reply.verified,
            novel=reply.novel,
            reward=pay,
            terminated=False,
            truncated=False,
            observation=blob,
            error=reply.error,
            at_ms=at_ms,
            waiting=reply.waiting,
            category=category if reply.ok else "",
            role=seat,
        )
        rest: tuple[events.Event, ...]
        rest = (*reply.events, *subgoals, *reply.later, *drift)
        if seat and rest:
            rest = tuple(by_seat(event, seat) for event in rest)
        return self._close_step(record, rest, answer, reply.outcome, reply.reason)

    def declare(self, event: events.Event) -> None:
        """Take what an agent says of itself; the next reply may speak of it.

        Args: event: the statement.
        """
        self.log.append(event)
        self._remark = self.session.hear(event) or self._remark

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

    def _run(self, call: ParsedCall, seat: str) -> standard_tools.ToolReply:
        """Return the tool's answer, with whether the action is verified."""
        before = self._state
        if self.seating.retires(call.tool):
            self._state = self.session.state
            changed = self._state is not before
            return standard_tools.ToolReply("You have no further turn.", changed=changed)
        standard = self._standard.run(
            call, before, step=self.steps, at_ms=self._clock.now_ms, seat=seat
        )
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
        if not isinstance(result, interfaces.ToolResult):
            raise standard_tools.wrong_result(self.session, call.tool, result)
        arguments = msgspec.json.encode(call.arguments, order="sorted")
        action_key = result.action_key.encode() or arguments
        key = (call.tool, action_key, result.digest or result.text)
        novel = result.ok and key not in self._call_keys
        self._call_keys.add(key)
        verified = False
        if result.ok and self._state is not before:
            gained = self._oracle.gained(before, call._asdict(), self._state)
            verified = self._progress.gain(gained)
        self.verified += verified
        self.timed |= result.timed
        return standard_tools.ToolReply(
            text=result.text,
            ok=result.ok,
            verified=verified,
            novel=novel,
            changed=self._state is not before,
            elapsed_ms=result.elapsed_ms,
            events=result.events,
            outcome="finished" if result.over else None,
            reason=result.over,
            waiting=result.waiting,
        )

    def _close_step(
        self,
        record: events.Action,
        rest: tuple[events.Event, ...],
        text: str,
        outcome: events.Outcome | None,
        reason: str,
    ) -> StepResult:
        """Emit the step's events; if it is the last one, judge and pay first."""
        closing: tuple[events.Event, ...] = ()
        if outcome is None and self.spent >= self.step_limit:
            outcome, reason = "truncated", "budget:steps"
        if outcome is None:
            text, turn = self.seating.turn(self.steps, self._sink.blob)
            rest = (*rest, *turn)
        else:
            observed = events.Observation(
                step=self.steps, blob=record.observation, role=record.role
            )
            reason = reason or outcome
            rest = (*rest, observed, *self._final_events())
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
        return StepResult(text, record.reward, record.error, record.terminated, record.truncated)

    def _judge(
        self, outcome: events.Outcome, reason: str, *last: events.Event
    ) -> tuple[interfaces.Ending, tuple[events.Event, ...]]:
        """Return the ending and its events; `last` are not yet in the log."""
        return standard_tools.judge(
            self._suite,
            self.timeline,
            self._state,
            theta=self.rules.theta,
            outcome=outcome,
            reason=reason,
            stated=self._standard.stated,
            step=self.steps,
            log=(*self.log, *last),
        )

    def _pay(self, solved: int) -> float:
        """Return the share of subgoals solved; without any, the rise of q_state."""
        if nodes := len(self._progress.nodes):
            return events.fixed(solved / nodes)
        q_state = self._oracle.quality(self.timeline, self._state)
        return events.fixed(q_state - self._paid)

    def _final_events(self) -> tuple[events.Event, ...]:
        """Return the session's own events at the end."""
        last = self.session.final_events(step=self.steps)
        self._state = self.session.state  # a late change is judged too
        return last

    def _emit(self, event: events.Event) -> None:
        self.log.append(event)
        if self._sink.active:
            self._sink.emit(event)

    def _pass_time(self, elapsed_ms: int) -> tuple[events.Event, ...]:
        """Move the clock; enter every world whose start has passed."""
        entered: list[events.Event] = []
        for index in self._clock.advance(elapsed_ms):
            self._world = self.timeline.worlds[index]
            self.session.enter(self._world, now_ms=self._clock.now_ms)
            self._state = self.session.state
            entered += drift_events(self.timeline, index)
        return tuple(entered)
