"""Suite ChangeSurf: reach a goal on a web site that changes, in a real browser."""

from typing import Any

import gymnasium

from owa_bench import interfaces
from owa_bench.envs.changesurf import spaces
from owa_bench.envs.changesurf.browser.host import require
from owa_bench.envs.changesurf.browser.playwright_driver import PlaywrightDriver
from owa_bench.envs.changesurf.detectors import DETECTORS
from owa_bench.envs.changesurf.effective_class import effective_class
from owa_bench.envs.changesurf.env import SurfEnv
from owa_bench.envs.changesurf.generate import (
    FAMILIES,
    HELD_OUT_FAMILIES,
    HONEYPOT_FAMILIES,
    TIERS,
    VERSION,
    generate,
)
from owa_bench.envs.changesurf.oracle.oracle import THETA, ChangeSurfOracle
from owa_bench.envs.changesurf.oracle.walk import horizon
from owa_bench.envs.changesurf.policies import POLICIES
from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.errors import UsageError
from owa_bench.records.instance import Instance, Timeline
from owa_bench.worlds.site import SiteWorld

DRIVERS = ("playwright",)


class ChangeSurf:
    """The suite; see `card` and README.md.

    `executable` names the browser's binary; None finds an installed one.
    """

    card = interfaces.SuiteCard(
        name="changesurf",
        version=VERSION,
        title="ChangeSurf",
        about="Reach a goal on a web site that changes, in a real browser.",
        source="AAI paper section 4.1",
        env_id="owa_bench/ChangeSurf-v2",
        domain="web",
        families=FAMILIES,
        tiers=TIERS,
        theta=THETA,
        horizon=40,
        depth_target=5,
        step_limit=120,
        categories=tuple(sorted({family.partition("/")[0] for family in FAMILIES})),
        proposition_kinds=("unit", "default", "fact"),
        axes=("A", "G", "P", "T", "W", "$"),
        rules=tuple(detector.rule for detector in DETECTORS),
        features=spaces.FEATURES,
        macros=spaces.MACROS,
        honeypots=HONEYPOT_FAMILIES,
        held_out=HELD_OUT_FAMILIES,
        extra="browser",
        episode_s=2.9,
        episode_bytes=(9_500, 77_100),
    )
    oracle: interfaces.Oracle = ChangeSurfOracle()
    policies = POLICIES
    detectors: tuple[interfaces.Detector, ...] = DETECTORS
    effective_class = staticmethod(effective_class)

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable

    def ready(self, families: tuple[str, ...]) -> None:
        """Refuse a machine without a browser, before anything is played.

        Args:
            families: Plays no part.

        Raises:
            MissingPartError: something is missing; with the line that installs it.
        """
        require(self._executable)

    def generate(self, instance: Instance) -> SiteWorld:
        """Return the instance's base world."""
        return generate(instance)

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t without a browser, None where only playing it can tell."""
        return horizon(timeline, self.oracle, limit=self.card.step_limit)

    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        """Return the session of an episode.

        Args:
            timeline: its worlds.
            sink: takes its events.
            setting: of the episode; `wire` serves the site over a socket.
            laboratory: plays no part.

        Returns:
            The session, on the first world.
        """
        driver = PlaywrightDriver(self._executable)
        return ChangeSurfSession(timeline, sink=sink, driver=driver, wire=setting.wire)

    def env(
        self,
        source: interfaces.TimelineSource,
        *,
        view: interfaces.View = "language",
        driver: str = "playwright",
        executable: str | None = None,
        **options: Any,
    ) -> gymnasium.Env[Any, Any]:
        """Return the Gymnasium env over a source of timelines.

        Args:
            source: the timelines.
            view: the agent's view.
            driver: the browser driver.
            executable: the browser's binary, None for the suite's own.
            options: other options of `SurfEnv`.

        Returns:
            The env.

        Raises:
            UsageError: there is no such driver.
        """
        if driver not in DRIVERS:
            raise UsageError(
                f"`driver` must be one of {', '.join(DRIVERS)}, got {driver!r}."
            )
        path = executable or self._executable
        suite = self if path == self._executable else ChangeSurf(path)
        return SurfEnv(suite, source, view, executable=path, **options)


SUITE = ChangeSurf()
