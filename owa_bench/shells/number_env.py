"""The common part of native and embodied envs: one seat, numbers, no tools."""

from abc import ABC, abstractmethod

from owa_bench import interfaces
from owa_bench.errors import UsageError
from owa_bench.records.events import Event
from owa_bench.records.instance import SimulatedClock, Timeline
from owa_bench.shells.episode import EpisodeFacts
from owa_bench.shells.episode_events import NullSink


class NumberEnv(ABC):
    """The part of an env that the loop and replay ask of every suite without tools."""

    tools: tuple[interfaces.ToolSpec, ...] = ()
    seats = ("",)
    timed = False
    memory_bytes = 0

    def __init__(
        self, suite: interfaces.Suite, source: interfaces.TimelineSource, step_limit: int | None
    ) -> None:
        self._suite, self._source = suite, source
        self._limit = step_limit or suite.card.step_limit
        self._sink: interfaces.Sink = NullSink()
        self._timeline: Timeline | None = None
        self._clock = SimulatedClock((0,))

    def attach(self, sink: interfaces.Sink) -> None:
        """Send the events of the next episode to `sink`."""
        self._sink = sink

    def declare(self, event: Event) -> None:  # noqa: B027  it hears nothing
        """Do nothing: neither a native suite's detectors nor a guard read declarations."""

    def task_of(self, _seat: str) -> interfaces.Task:
        """Return the task, of the only seat."""
        return self.task

    @property
    @abstractmethod
    def task(self) -> interfaces.Task:
        """The task that the agent is given."""

    @property
    def offered(self) -> tuple[interfaces.ToolSpec, ...]:
        """The tools, of which there are none."""
        return self.tools

    @property
    def step_limit(self) -> int:
        """The most actions of this episode."""
        return self._limit

    @property
    def timeline(self) -> Timeline:
        """The worlds of this episode."""
        if self._timeline is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._timeline

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""
        return self._clock.now_ms

    def _facts(self) -> EpisodeFacts:
        timeline = self.timeline
        return EpisodeFacts(
            instance=timeline.instance,
            world=timeline.worlds[0].digest(),
            realised=timeline.realised,
            theta=self._suite.card.theta,
            step_limit=self._limit,
        )

    def _emit(self, *events: Event) -> None:
        if self._sink.active:
            for event in events:
                self._sink.emit(event)
