"""The Gymnasium shell around the transition function of a tool suite."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import gymnasium as gym
import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.errors import InstanceError, UsageError
from owa_bench.interfaces import (
    Ending,
    OracleAccess,
    Sink,
    Suite,
    SuiteCard,
    Task,
    TimelineSource,
    ToolSpec,
)
from owa_bench.interfaces import View as ViewName
from owa_bench.records.events import EpisodeStart, Outcome
from owa_bench.records.instance import SEED_LIMIT, Instance, Timeline
from owa_bench.seeding import derive
from owa_bench.shells.calls import CallParser, function_schemas
from owa_bench.shells.episode import Episode, Opening, Start, Terms
from owa_bench.shells.sink import NullSink
from owa_bench.shells.solution import horizon
from owa_bench.shells.standard_tools import tools_of
from owa_bench.shells.views import VectorView, make_view

__all__ = ["Instances", "Opening", "Start", "ToolEnv", "plain_instances"]

Instances = Callable[[int], Instance]
_HORIZONS_KEPT = 4096  # instances whose H_t an env remembers
_OPTIONS = ("instance", "start", "interventions")


def plain_instances(
    card: SuiteCard,
    *,
    tier: int = 1,
    family: str | None = None,
    site: str | None = None,
    repeat: int = 0,
    drift_step: int = 0,
) -> Instances:
    """Return the function from a reset's seed to its instance.

    Without `family` the seed draws one, of those called `site/...` where a site is
    given. Errors: InstanceError if the suite lacks the family, site or tier.
    """
    if tier not in card.tiers:
        tiers = ", ".join(map(str, card.tiers))
        raise InstanceError("tier", tier, f"must be one of {tiers}")
    if family is not None and family not in card.families:
        families = ", ".join(card.families)
        raise InstanceError("family", family, f"must be one of {families}")

    known = card.families
    if site is not None:
        known = tuple(name for name in known if name.startswith(f"{site}/"))
        if not known:
            sites = sorted({name.partition("/")[0] for name in card.families})
            raise InstanceError("site", site, f"must be one of {', '.join(sites)}")

    def instance(seed: int) -> Instance:
        drawn = known[derive(seed, "family") % len(known)]
        return Instance(
            suite=card.name,
            version=card.version,
            family=family or drawn,
            tier=tier,
            seed=seed,
            repeat=repeat,
            drift_step=drift_step,
        )

    return instance


class ToolEnv(gym.Env[Any, Any]):
    """A tool suite as a Gymnasium env; the suite's README says what is in it.

    Description: the agent works on a task by calling tools; each call is a step.
    Action space: "language", "python": `ToolCalls`, JSON text of one tool call.
        "vector": Discrete macros; `action_masks()` says which may be played.
    Observation space: "language": Dict(text, features, action_mask over the tools).
        "python": the text. "vector": Box of features.
    Starting state: `reset(seed=s)` plays the instance of seed s, without a seed one is
        drawn from `np_random`, `options={"instance": Instance}` plays exactly that.
    Rewards: sum to Q, all of it at the last step; with `shaping` solved subgoals are
        paid as they come and taken back at the end (never while recording).
    Episode end: terminated by finish or declare_infeasible, truncated by the limit.
    Information: at reset "tools" (function schemas) and "goal" (JSON); "step",
        "simulated_ms", "interventions_left" (where limited), "action_mask" (vector
        view), "error" (of a malformed
        or refused action) and, at the end, "outcome", "q_state", "quality", "success".
    Arguments: `source` gives the timeline of an instance; `instances` the instance of
        a seed; `wire` serves over loopback; `interventions` limits the supervisor.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        suite: Suite,
        source: TimelineSource,
        view: ViewName = "language",
        *,
        wire: bool = False,
        interventions: int | None = None,
        instances: Instances | None = None,
        sink: Sink | None = None,
        step_limit: int | None = None,
        shaping: bool = False,
    ) -> None:
        if view not in get_args(ViewName):
            names = ", ".join(get_args(ViewName))
            raise UsageError(f"`view` must be one of {names}, got {view!r}.")
        self._suite = suite
        self._source = source
        self._wire = wire
        self._instances = instances or plain_instances(suite.card)
        self._sink: Sink = sink or NullSink()
        self._terms = Terms(
            step_limit=step_limit or suite.card.step_limit,
            interventions=interventions,
            shaping=shaping,
        )
        self.tools = self._find_tools()
        self._parser = CallParser(self.tools)
        self._schemas = msgspec.json.encode(function_schemas(self.tools))
        self._view = make_view(view, suite.card, self.tools)
        self.observation_space = self._view.observation_space
        self.action_space = self._view.action_space
        self._episode: Episode | None = None
        self._horizons: dict[Instance, int] = {}

    def _find_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools, which a session of any instance names."""
        timeline = self._source(self._instances(0))
        session = self._suite.session(timeline, sink=NullSink(), wire=False)
        try:
            return tools_of(session.tools)
        finally:
            session.close()

    # --- Gymnasium --------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of `seed`, or of the options' instance."""
        super().reset(seed=seed)
        given = _known_options(options or {})
        instance = given.get("instance") or self._instance_of(seed)
        start: Start | None = given.get("start")
        terms = self._terms
        if "interventions" in given or (start and terms.shaping):
            terms = Terms(
                step_limit=terms.step_limit,
                interventions=given.get("interventions", terms.interventions),
                shaping=terms.shaping and start is None,
            )
        self._release()
        timeline = self._source(instance)
        self._episode = Episode(
            self._suite,
            timeline,
            parser=self._parser,
            sink=self._sink,
            terms=terms,
            wire=self._wire,
        )
        text = self._episode.begin(None if start is None else self._started(start))
        info = self._info()
        info["tools"] = msgspec.json.decode(self._schemas)
        info["goal"] = msgspec.json.encode(self._episode.task.goal).decode()
        return self._view.observe(text, self._episode), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action; a malformed one costs a step and answers with an error."""
        episode = self._playing
        step = episode.step(self._view.text_of(action, episode))
        info = self._info()
        if step.error is not None:
            info["error"] = step.error
        observation = self._view.observe(step.text, episode)
        return observation, step.reward, step.terminated, step.truncated, info

    def close(self) -> None:
        """Release the session."""
        self._release()
        super().close()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which macros of the vector view may be played now."""
        if not isinstance(self._view, VectorView):
            raise UsageError(
                "Only the vector view has action masks: pass view='vector'."
            )
        return self._view.masks(self._playing)

    # --- for the loop -----------------------------------------------------------

    def attach(self, sink: Sink) -> None:
        """Send the events of the next episode to `sink`."""
        self._sink = sink

    @property
    def task(self) -> Task:
        """What the agent is told."""
        return self._playing.task

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
        """Actions that were malformed or refused, or that a tool answered with no."""
        return self._playing.failed_attempts

    @property
    def ending(self) -> Ending | None:
        """How the episode ended; None while it goes on."""
        return self._playing.ending

    def conclude(self, outcome: Outcome, reason: str) -> Ending:
        """End the episode from outside (timeout, budget, crash); once only."""
        return self._playing.conclude(outcome, reason)

    def oracle_access(self) -> OracleAccess:
        """Return what a suite's own control policy may see."""
        return self._playing.oracle_access()

    # --- inside -----------------------------------------------------------------

    @property
    def _playing(self) -> Episode:
        if self._episode is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._episode

    def _instance_of(self, seed: int | None) -> Instance:
        if seed is None:
            seed = int(self.np_random.integers(SEED_LIMIT))
        return self._instances(seed)

    def _started(self, start: Start) -> EpisodeStart:
        """Return the EpisodeStart that the loop makes of the opening."""
        return start(self._playing.opening(self._horizon(self._playing.timeline)))

    def _horizon(self, timeline: Timeline) -> int:
        """Return H_t, remembered: arms and budgets play the same instance."""
        known = self._horizons.get(timeline.instance)
        if known is None:
            known = horizon(self._suite, timeline, parser=self._parser)
            if len(self._horizons) >= _HORIZONS_KEPT:
                self._horizons.clear()
            self._horizons[timeline.instance] = known
        return known

    def _info(self) -> dict[str, Any]:
        episode = self._playing
        info: dict[str, Any] = {
            "step": episode.steps,
            "simulated_ms": episode.simulated_ms,
        }
        if episode.interventions_left is not None:
            info["interventions_left"] = episode.interventions_left
        if isinstance(self._view, VectorView) and episode.ending is None:
            info["action_mask"] = self._view.masks(episode)
        if episode.ending is not None:
            info["outcome"] = episode.ending.outcome
            info["q_state"] = episode.ending.q_state
            info["quality"] = episode.ending.quality
            info["success"] = episode.ending.success
        return info

    def _release(self) -> None:
        if self._episode is not None:
            self._episode.close()
            self._episode = None


def _known_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in options:
        if name not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise UsageError(f"`options` may hold {known}, got {name!r}.")
    return options
