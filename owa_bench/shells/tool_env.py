"""The Gymnasium shell of the tool suites."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, get_args

import gymnasium as gym
import msgspec
import numpy as np
import numpy.typing as npt
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.errors import UsageError
from owa_bench.records.events import Event, Outcome
from owa_bench.records.instance import SEED_LIMIT, Instance, Timeline
from owa_bench.shells.calls import CallParser
from owa_bench.shells.env_copies import EpisodeHistory, refuse_copy
from owa_bench.shells.episode import Episode, EpisodeTerms, StartFactory
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.instances import Instances, plain_instances
from owa_bench.shells.solution import horizon
from owa_bench.shells.standard_tools import tools_of
from owa_bench.shells.views import VectorView, make_view, text_picture

_HORIZON_CACHE = 4096  # instances whose H_t an env remembers
_OPTIONS = ("instance", "start", "interventions", "setting")
_NOT_COPIED = ("_sink", "_parser", "_horizon_of", "_episode")
_ENDING_INFO = ("outcome", "q_state", "quality", "success")


class LaboratoryFactory(Protocol):
    """Makes the laboratories of an env's episodes, one after the other."""

    def of(self, instance: Instance) -> interfaces.Laboratory:
        """Return the laboratory of an instance's next episode."""

    def close(self) -> None:
        """Release what it holds."""


class ToolEnv(gym.Env[Any, Any]):
    """A tool suite as a Gymnasium env; the suite's README says what is in it.

    Description: the agent works on a task by calling tools; each call is a step.
    Action space: "language", "python": `ToolCalls`, JSON text of one tool call.
        "vector": Discrete macros; `action_masks()` says which may be played.
    Observation space: "language": Dict(text, action_mask over the tools).
        "python": the text. "vector": Box of features.
    Starting state: `reset(seed=s)` plays the instance of seed s, without a seed one is
        drawn from `np_random`, `options={"instance": Instance}` plays exactly that.
    Rewards: sum to Q, all of it at the last step; with `shaping` solved subgoals
        (without any: a rise of q_state) are paid as they come and taken back at the
        end (never while recording).
    Episode end: terminated by finish or declare_infeasible, truncated by the limit.
    Information: at reset "tools" (function schemas) and "goal" (JSON); "step",
        "simulated_ms", "interventions_left" (where limited), "action_mask" (vector
        view), "offer" (names of the tools that may be called, where not all may),
        "seat" and "sitting" (of the seat that acts next, where there are several),
        "error" (of a malformed or refused action) and, at the end, "outcome",
        "q_state", "quality", "success".
    Render modes: "ansi" is the text that was answered last, whatever the view, and
        "rgb_array" a picture of it.
    Arguments: `source` gives the timeline of an instance; `instances` the instance of
        a seed; `wire` serves over loopback; `interventions` limits the supervisor;
        `laboratories` makes the laboratory of an episode; `one_reader` says that one
        player reads what all seats are shown.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}

    def __init__(
        self,
        suite: interfaces.Suite,
        source: interfaces.TimelineSource,
        view: interfaces.View = "language",
        *,
        wire: bool = False,
        interventions: int | None = None,
        instances: Instances | None = None,
        sink: interfaces.Sink | None = None,
        step_limit: int | None = None,
        shaping: bool = False,
        laboratories: LaboratoryFactory | None = None,
        one_reader: bool = False,
        render_mode: str | None = None,
    ) -> None:
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            raise UsageError(
                f"`render_mode` must be one of {', '.join(modes)}, got {render_mode!r}."
            )
        if view not in get_args(interfaces.View):
            names = ", ".join(get_args(interfaces.View))
            raise UsageError(f"`view` must be one of {names}, got {view!r}.")
        self.render_mode = render_mode
        self._shown = ""
        self._suite = suite
        self._laboratories = laboratories
        self._source = source
        self._setting = interfaces.Setting(wire=wire, one_reader=one_reader)
        self._instances = instances or plain_instances(suite.card)
        self._sink: interfaces.Sink = sink or NullSink()
        self._terms = EpisodeTerms(
            step_limit=step_limit, interventions=interventions, shaping=shaping
        )
        self.tools = self._session_tools()
        self._schemas = msgspec.json.encode([tool.function for tool in self.tools])
        self._view = make_view(view, suite.card, self.tools)
        self.observation_space = self._view.observation_space
        self.action_space = self._view.action_space
        self._history: EpisodeHistory | None = None
        self._prepare()

    def _prepare(self) -> None:
        """Make what no copy holds: the checks of the tools, and a cache of horizons."""
        self._episode: Episode | None = None
        self._parser = CallParser(self.tools)
        suite, source, parser = self._suite, self._source, self._parser
        # Arms and budgets play the same instance.
        self._horizon_of = lru_cache(_HORIZON_CACHE)(
            lambda instance: horizon(suite, source(instance), parser=parser)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from.

        Raises: UsageError: the env holds a process.
        """
        if self._episode is not None:
            held = self._episode.session.process
            apart = self._laboratories is not None
            refuse_copy("the process of a laboratory" if apart else held)
        return {n: it for n, it in self.__dict__.items() if n not in _NOT_COPIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._sink = NullSink()
        self._prepare()
        if self._history is not None:
            self._episode, _ = self._history.play(self._episode_of)

    def _episode_of(self, history: EpisodeHistory) -> Episode:
        """Return the episode of a history, before it begins."""
        instance, laboratories = history.instance, self._laboratories
        return Episode(
            self._suite,
            self._source(instance),
            parser=self._parser,
            sink=self._sink,
            terms=history.terms,
            setting=history.setting,
            laboratory=laboratories.of(instance) if laboratories else None,
        )

    def _session_tools(self) -> tuple[interfaces.ToolSpec, ...]:
        """Return the tools, which a session of any instance names."""
        timeline = self._source(self._instances(0))
        session = self._suite.session(timeline, NullSink(), interfaces.Setting())
        try:
            return tools_of(session.tools)
        finally:
            session.close()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Chooses the instance; None: one is drawn.
            options: "instance" instead of a seed, "interventions" (or a function of H_t that
                returns them) and "setting" (but for its `wire`) instead of the env's, "start" makes
                the EpisodeStart of a recorded episode.
        Returns: The first observation and the info.
        Raises: UsageError: an option has another name.
        """
        super().reset(seed=seed)
        chosen = options or {}
        for name in chosen:
            if name not in _OPTIONS:
                known = ", ".join(_OPTIONS)
                raise UsageError(f"`options` may hold {known}, got {name!r}.")
        instance = chosen.get("instance")
        if instance is None and seed is None:
            seed = int(self.np_random.integers(SEED_LIMIT))
        instance = instance or self._instances(seed or 0)
        start: StartFactory | None = chosen.get("start")
        allowed = chosen.get("interventions", self._terms.interventions)
        if callable(allowed):
            allowed = allowed(self._horizon_of(instance))
        self._release()
        self._history = EpisodeHistory(
            instance=instance,
            terms=EpisodeTerms(
                step_limit=self._terms.step_limit,
                interventions=allowed,
                shaping=self._terms.shaping and start is None,
            ),
            setting=replace(chosen.get("setting", self._setting), wire=self._setting.wire),
        )
        self._episode = episode = self._episode_of(self._history)
        text = episode.begin(start and start(episode.facts(self._horizon_of(instance))))
        self._shown = text
        info = self._info()
        info["tools"] = msgspec.json.decode(self._schemas)
        info["goal"] = msgspec.json.encode(episode.task.goal).decode()
        return self._view.observe(text, episode), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; a malformed one costs a step and answers with an error."""
        episode = self._playing
        text = self._view.text_of(action, episode)
        step = episode.step(text)
        self._note(text)
        self._shown = step.text
        info = self._info()
        if step.error is not None:
            info["error"] = step.error
        observation = self._view.observe(step.text, episode)
        return observation, step.reward, step.terminated, step.truncated, info

    def render(self) -> Any:
        """Return the text that was answered last, or a picture of it."""
        if self.render_mode == "rgb_array":
            return text_picture(self._shown)
        return self._shown if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Release the session and the laboratory."""
        self._release()
        if self._laboratories is not None:
            self._laboratories.close()
        super().close()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which macros of the vector view may be played now, for sb3-contrib."""
        if not isinstance(self._view, VectorView):
            raise UsageError("Only the vector view has action masks: pass view='vector'.")
        return self._view.masks(self._playing).astype(np.bool_)

    def attach(self, sink: interfaces.Sink) -> None:
        """Send the events of the next episode to `sink`."""
        self._sink = sink

    @property
    def episode(self) -> Episode:
        """The running episode."""
        return self._playing

    @property
    def task(self) -> interfaces.Task:
        """The task that the agent is given."""
        return self._playing.task

    def task_of(self, seat: str) -> interfaces.Task:
        """Return the task that a seat is told, "" for the only one."""
        return self._playing.seating.task_of(seat)

    @property
    def seats(self) -> tuple[str, ...]:
        """The seats that play this episode, ("",) where there is one."""
        return self._playing.seating.seats or ("",)

    @property
    def step_limit(self) -> int:
        """The most actions of this episode."""
        return self._playing.step_limit

    @property
    def memory_bytes(self) -> int:
        """What `memory_dir` may hold when a sitting begins; 0: not limited."""
        return self._playing.rules.memory_bytes

    @property
    def timed(self) -> bool:
        """Whether a limit of wall or CPU time decided a result."""
        return self._playing.timed

    @property
    def offered(self) -> tuple[interfaces.ToolSpec, ...]:
        """The tools that may be called now."""
        names = self._playing.seating.offered
        return tuple(tool for tool in self.tools if tool.name in names)

    @property
    def timeline(self) -> Timeline:
        """The worlds of this episode."""
        return self._playing.timeline

    @property
    def simulated_ms(self) -> int:
        """Simulated milliseconds since reset."""
        return self._playing.simulated_ms

    @property
    def steps(self) -> int:
        """Actions so far."""
        return self._playing.steps

    @property
    def failed_attempts(self) -> int:
        """Actions that were malformed or refused, or whose tool call failed."""
        return self._playing.failed_attempts

    @property
    def ending(self) -> interfaces.Ending | None:
        """How the episode ended; None while it goes on."""
        return self._playing.ending

    def conclude(self, outcome: Outcome, reason: str) -> interfaces.Ending:
        """End the episode from outside (timeout, budget, crash).

        Args:
            outcome: How it ended.
            reason: In words.
        Returns: The ending; the first one if the episode had ended before.
        """
        ending = self._playing.conclude(outcome, reason)
        self._note((outcome, reason))
        return ending

    def declare(self, event: Event) -> None:
        """Show detectors what the agent says of itself; the sink has it already."""
        self._playing.declare(event)
        self._note(event)

    def oracle_access(self) -> interfaces.OracleAccess:
        """Return the oracle and the state, for a suite's own control policy."""
        return self._playing.oracle_access()

    @property
    def _playing(self) -> Episode:
        if self._episode is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._episode

    def _info(self) -> dict[str, Any]:
        episode = self._playing
        info: dict[str, Any] = {}
        info["step"], info["simulated_ms"] = episode.steps, episode.simulated_ms
        seating = episode.seating
        if len(seating.offered) < len(self.tools):
            info["offer"] = list(seating.offered)
        if seating.crew is not None:
            info["seat"], info["sitting"] = seating.seat, seating.sitting
        if episode.interventions_left is not None:
            info["interventions_left"] = episode.interventions_left
        if isinstance(self._view, VectorView) and episode.ending is None:
            info["action_mask"] = self._view.masks(episode)
        if episode.session.attachment:
            info["attachment"] = episode.session.attachment
        if episode.ending is not None:
            ending = episode.ending._asdict()
            info |= {name: ending[name] for name in _ENDING_INFO}
        return info

    def _note(self, entry: str | tuple[Outcome, str] | Event) -> None:
        """Note what was done, for copies of this env."""
        if self._history is not None:
            self._history.entries.append(entry)

    def _release(self) -> None:
        if self._episode is not None:
            self._episode.close()
            self._episode = self._history = None


class ToolSuite(interfaces.Suite):
    """Base of the tool suites: `ToolEnv` is their env."""

    @override
    def env(
        self,
        source: interfaces.TimelineSource,
        *,
        view: interfaces.View = "language",
        **options: Any,
    ) -> gym.Env[Any, Any]:
        """Return the Gymnasium env over `source`."""
        return ToolEnv(self, source, view, **options)
