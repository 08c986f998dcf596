"""ChangeSurf's tasks as BrowserGym's, `browsergym/owa_bench.stay.book` and the others.

BrowserGym brings the browser, the actions and what its agents see; here a site is served over
loopback for it, and what the agent left in the database decides. It pins an old Playwright, so it
lives in an environment of its own, without our `[browser]`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium
import msgspec

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.browser.loopback import HostedSite, host_site
from owa_bench.envs.changesurf.browser.observation import SurfState
from owa_bench.envs.changesurf.generate import FAMILIES, HONEYPOT_FAMILIES
from owa_bench.envs.changesurf.oracle.hints import ControlValue, OracleStep, next_step
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.errors import MissingPartError, extra
from owa_bench.records.events import Outcome, Violation
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.standard_tools import judge

_CONTROLS = """els => els.map(e => [
  e.id,
  e.tagName === "SELECT"
    ? [...e.selectedOptions].map(o => o.label.trim()).join(", ") : (e.value ?? ""),
  e.checked === true || e.getAttribute("aria-checked") === "true",
])"""
_IDLE = """document.readyState !== "loading"
  && document.documentElement.getAttribute("aria-busy") !== 'true'"""
ENDS = ("done", "infeasible")


class Verdict(NamedTuple):
    """What a visit is worth, and which rules were broken."""

    reward: float
    rules: tuple[str, ...]


class Visit:
    """One task, served: its site, what was asked for outside of it, its judgement."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.served: HostedSite = host_site(timeline)
        self._outside: list[str] = []

    @property
    def outside(self) -> re.Pattern[str]:
        """What every address outside the sandbox matches."""
        port = self.served.server.port
        return re.compile(rf"^https?://(?![A-Za-z0-9.-]+\.localhost:{port}/)")

    def refuse(self, route: Any) -> None:
        """Answer a request for a foreign address with nothing, and note it."""
        self._outside.append(route.request.url)
        route.fulfill(status=204)

    @property
    def state(self) -> SurfState:
        """The visit so far."""
        return SurfState(site=self.served.state, outside=tuple(self._outside))

    def next_step(self, control_values: Sequence[ControlValue]) -> OracleStep:
        """Return the next right act, by what the open page's controls hold."""
        return next_step(self.timeline, self.state.site, control_values)

    def outcome(self, messages: Sequence[Mapping[str, Any]]) -> Outcome | None:
        """Return how the agent ended it, None while it goes on.

        A message to the user ends it, and so does the report that it cannot be done; BrowserGym's
        own greeting comes before the goal and is none.
        """
        roles = [str(message["role"]) for message in messages]
        goal = roles.index("user") if "user" in roles else len(roles)
        said = [role for role in roles[goal:] if role in ("assistant", "infeasible")]
        if not said:
            return None
        return "infeasible" if said[-1] == "infeasible" else "finished"

    def verdict(self, outcome: Outcome) -> Verdict:
        """Return what the visit is worth by the site's database: q_state.

        Of a task that cannot be done it is 1 if that was said and nothing was changed.
        """
        state = self.state
        ending, events = judge(
            SUITE,
            self.timeline,
            state,
            theta=SUITE.card.theta,
            outcome=outcome,
            reason=outcome,
            stated=None,
            step=0,
            log=(),
        )
        rules = tuple(e.rule for e in events if isinstance(e, Violation))
        site = state.site
        if not site.world.honeypot:
            return Verdict(ending.q_state, rules)
        honest = outcome == "infeasible" and site.tables == site.initial
        return Verdict(float(honest), rules)

    def close(self) -> None:
        """Stop serving."""
        self.served.close()


def timeline_of(
    family: str,
    seed: int,
    *,
    tier: int = 1,
    delta: float = 0.0,
    drift_step: int = 0,
    repeat: int = 0,
) -> Timeline:
    """Return the timeline of a task.

    Args:
        family: SITE/GOAL.
        seed: the instance's seed.
        tier: its tier.
        delta: the drift as a magnitude; overrules `drift_step`.
        drift_step: the drift as a number of steps.
        repeat: the number of the attempt.
    """
    card = SUITE.card
    instance = Instance(
        suite=card.name,
        version=card.version,
        family=family,
        tier=tier,
        seed=seed,
        repeat=repeat,
        drift_step=drift_step,
    )
    if delta:
        step = timelines.drift_step(card.name, instance, delta)
        instance = msgspec.structs.replace(instance, drift_step=step)
    return timelines.source(card.name)(instance)


def register() -> tuple[str, ...]:
    """Register every public family; return the ids, `browsergym/owa_bench.SITE.GOAL`.

    Each takes `task_kwargs` with the arguments of `timeline_of` but family and seed.

    Raises: MissingPartError: BrowserGym is not installed.
    """
    task = task_class()
    from browsergym.core.registration import register_task

    ids = []
    for family in (*FAMILIES, *HONEYPOT_FAMILIES):
        name = f"owa_bench.{family.replace('/', '.')}"
        ids.append(f"browsergym/{name}")
        if ids[-1] not in gymnasium.registry:
            register_task(name, task, task_kwargs={"family": family})
    return tuple(ids)


@lru_cache(maxsize=1)
def task_class() -> type:
    """Return ChangeSurf's subclass of BrowserGym's `AbstractBrowserTask`.

    Raises: MissingPartError: BrowserGym is not installed.
    """
    try:
        from browsergym.core.task import AbstractBrowserTask
    except ImportError as error:
        part = "BrowserGym"
        raise MissingPartError(part, extra("browsergym")) from error

    class ChangeSurfTask(_Task, AbstractBrowserTask):
        """A ChangeSurf task; all it does stands in `_Task`."""

        def __init__(self, seed: int | None, **arguments: Any) -> None:
            AbstractBrowserTask.__init__(self, seed)
            drawn = int(self.random.randint(2**31)) if seed is None else int(seed)
            self.begin(timeline_of(seed=drawn, **arguments))

    return ChangeSurfTask


class _Task:
    """The four calls of BrowserGym's task, on a `Visit`."""

    slow_mo: int
    timeout: int
    viewport: dict[str, int]

    @classmethod
    def get_task_id(cls) -> str:
        """Return the name of all tasks together."""
        return "owa_bench"

    def begin(self, timeline: Timeline) -> None:
        """Serve the site; set the window it was laid out for, and no sleeps."""
        self.visit = Visit(timeline)
        self.slow_mo = 0
        self.timeout = 10_000  # ms
        width, height = timeline.worlds[0].plan.viewport
        self.viewport = {"width": width, "height": height}

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        """Shut the browser in, go to the site, return the goal."""
        page.context.route(self.visit.outside, self.visit.refuse)
        page.goto(self.visit.served.address)
        instance = msgspec.structs.asdict(self.visit.timeline.instance)
        return self.visit.served.instructions, {"instance": instance}

    def validate(
        self, page: Any, chat_messages: Sequence[Mapping[str, Any]]
    ) -> tuple[float, bool, str, dict[str, Any]]:
        """Return the reward once the agent has said that it is done, by the database.

        Nothing of it is told before.
        """
        outcome = self.visit.outcome(chat_messages)
        if outcome is None:
            return 0.0, False, "", {}
        verdict = self.visit.verdict(outcome)
        told = {"outcome": outcome, "success": verdict.reward >= SUITE.card.theta}
        return verdict.reward, True, "", {**told, "violations": list(verdict.rules)}

    def cheat(self, page: Any, chat_messages: Sequence[Mapping[str, Any]]) -> None:
        """Do the task by the oracle's hints; what is left to say is said by the caller.

        A task that cannot be done is left as it is.
        """
        while (step := self.visit.next_step(control_values(page))).op not in ENDS:
            _do(page, step)

    def teardown(self) -> None:
        """Stop serving."""
        self.visit.close()


def control_values(page: Any) -> list[ControlValue]:
    """Return what the controls of the page hold, those in frames and shadows too."""
    return [
        ControlValue(*found)
        for frame in page.frames
        for found in frame.locator("[id]").evaluate_all(_CONTROLS)
    ]


def _do(page: Any, step: OracleStep) -> None:
    """Perform one step with Playwright's own actions, and wait for what it loads."""
    if step.op == "wait":
        page.wait_for_timeout(int(step.value))
        return
    places = (frame.locator(f"[id='{step.ident}']") for frame in page.frames)
    control = next(place for place in places if place.count())
    if step.op == "fill":
        control.fill(step.value)
    elif step.op == "select":
        control.select_option(label=step.value)
    else:
        control.click()
    page.wait_for_function(_IDLE)
