"""Suite ChangeSurf: reach a goal on a web site that changes, in a real browser.

Beside the page's text the language view can show the accessibility tree and a picture. Both are off
by default: a tree costs a few milliseconds a step, a picture waits for two frames. The tree is the
browser's own, one line a node, so that agents made for it can be compared; pictures differ between
machines and enter no digest.
"""

import io
import json
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.envs.changesurf.browser.host import Lease, require
from owa_bench.envs.changesurf.browser.playwright_driver import PlaywrightDriver
from owa_bench.envs.changesurf.detectors import DETECTORS
from owa_bench.envs.changesurf.effective_class import effective_class
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
from owa_bench.envs.changesurf.spaces import FEATURES, MACROS, TOOLS
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.errors import UsageError
from owa_bench.interfaces import Suite, TimelineSource, View
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import PlainText, escape
from owa_bench.shells.tool_env import ToolEnv

HEIGHT, WIDTH = (1180, 1280)  # what holds every window that an operator draws
TREE_ROOM = 16_384  # characters
_UNSAID = frozenset({"", "none", "generic", "InlineTextBox", "LineBreak"})
Pixels = npt.NDArray[np.uint8]


class ExtraObservations(NamedTuple):
    """The additional observations that an env shows."""

    axtree: bool = False
    screenshot: bool = False

    def space(self, plain: spaces.Dict) -> spaces.Dict:
        """Return the observation space with what is shown."""
        more: dict[str, spaces.Space[Any]] = {}
        if self.axtree:
            more["axtree"] = PlainText(TREE_ROOM)
        if self.screenshot:
            more["screenshot"] = spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
        return spaces.Dict({**plain.spaces, **more})

    def add(self, observation: Any, session: ChangeSurfSession) -> Any:
        """Add what is shown of the open page.

        Args:
            observation: the language view's observation.
            session: the session with the page.
        Returns: The observation with the additional keys.
        """
        more: dict[str, Any] = {}
        if self.axtree:
            more["axtree"] = tree_text(session.tree())
        if self.screenshot:
            more["screenshot"] = pad_picture(pixels(session.picture()))
        return {**observation, **more} if more else observation


def tree_text(tree: bytes) -> str:
    """Return a tree of [role, name, children] as lines, children indented.

    >>> tree_text(b'[["RootWebArea","Shop",[1]],["button","Buy",[]]]').splitlines()
    ['RootWebArea "Shop"', '  button "Buy"']
    """
    nodes = json.loads(tree)
    lines: list[str] = []
    todo = [(0, 0)] if nodes else []
    while todo:
        place, depth = todo.pop()
        role, name, below = nodes[place]
        said = role not in _UNSAID
        if said:
            lines.append("  " * depth + (f'{role} "{name}"' if name else role))
        todo += [(child, depth + said) for child in reversed(below)]
    return escape("\n".join(lines))[:TREE_ROOM]


def pixels(picture: bytes) -> Pixels:
    """Return a picture's pixels, rows by columns by colours."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def pad_picture(picture: Pixels) -> Pixels:
    """Return a picture in the upper left of a black one of the fixed size."""
    padded = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    height, width = min(picture.shape[0], HEIGHT), min(picture.shape[1], WIDTH)
    padded[:height, :width] = picture[:height, :width]
    return padded


class SurfEnv(ToolEnv):
    """A `ToolEnv` that keeps the browser from its first reset until it is closed.

    Every episode has a fresh context. `render` gives the window as an array; `axtree` and
    `screenshot` add what they name to the observations of the language view.
    """

    def __init__(
        self,
        suite: Suite,
        source: TimelineSource,
        view: View = "language",
        *,
        executable: str | None = None,
        axtree: bool = False,
        screenshot: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(suite, source, view, **options)
        self._extra = ExtraObservations(axtree=axtree, screenshot=screenshot)
        if any(self._extra):
            plain = self.observation_space
            if not isinstance(plain, gymnasium.spaces.Dict):
                raise UsageError(
                    f"The language view alone shows a tree or a picture, got {view!r}."
                )
            self.observation_space = self._extra.space(plain)
        self._executable = executable
        self._lease: Lease | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in a fresh context of the browser.

        Args:
            seed: the seed of a drawn instance.
            options: `instance` names one.
        Returns: The first observation, and info.
        """
        if self._lease is None or self._lease.host.dead:
            self._let_go()
            self._lease = Lease(self._executable)
        observation, info = super().reset(seed=seed, options=options)
        return self._extra.add(observation, self.session), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action."""
        observation, *rest = super().step(action)
        return (self._extra.add(observation, self.session), *rest)

    @property
    def session(self) -> ChangeSurfSession:
        """The present session, for tools that look at it from outside."""
        session = self._playing.session
        if not isinstance(session, ChangeSurfSession):
            raise TypeError(f"This env plays a visit, got {type(session).__name__}.")
        return session

    def picture(self) -> bytes:
        """Return a JPEG of the window."""
        return self.session.picture()

    def render(self) -> Any:
        """Return the window's pixels, or the text that was answered last."""
        if self.render_mode == "rgb_array":
            return pixels(self.picture())
        return super().render()

    def close(self) -> None:
        """Release the session and give the browser back."""
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        if self._lease is not None:
            self._lease.give_back()
            self._lease = None


DRIVERS = ("playwright",)


class ChangeSurf(interfaces.Suite):
    """The suite; see `card` and README.md.

    `executable` names the browser's binary; None finds an installed one.
    """

    card = interfaces.SuiteCard(
        name="changesurf",
        version=VERSION,
        title="ChangeSurf",
        about="Reach a goal on a web site that changes, in a real browser.",
        source="AAI paper section 4.1",
        env_id="owa_bench/ChangeSurf-v3",
        domain="web",
        families=FAMILIES,
        tiers=TIERS,
        theta=THETA,
        horizon=40,
        depth_target=5,
        step_limit=120,
        categories={**dict.fromkeys((tool.name for tool in TOOLS), "browser"), "wait": ""},
        proposition_kinds=("unit", "default", "fact"),
        axes=("A", "G", "P", "T", "W", "$"),
        rules=tuple(detector.rule for detector in DETECTORS),
        features=FEATURES,
        macros=MACROS,
        honeypots=HONEYPOT_FAMILIES,
        held_out=HELD_OUT_FAMILIES,
        episode_s=2.9,
        episode_bytes=(9_500, 77_100),
        work={
            1: interfaces.EpisodeWork(5, 863, 5427, 1866, 424, 1, 2632, 5, 424),
            2: interfaces.EpisodeWork(10, 1212, 5427, 5429, 868, 1, 4585, 7, 868),
            3: interfaces.EpisodeWork(12, 1154, 5427, 6604, 1061, 1, 6299, 9, 972),
        },
    )
    oracle = ChangeSurfOracle()
    policies = POLICIES
    detectors = DETECTORS
    effective_class = staticmethod(effective_class)

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable

    @override
    def ready(self, families: tuple[str, ...]) -> None:
        """Refuse a machine without a browser, before anything is played.

        Raises: MissingPartError: something is missing; with the line that installs it.
        """
        require(self._executable)

    @override
    def generate(self, instance: Instance) -> SiteWorld:
        return generate(instance)

    @override
    def honeypot(self, world: SiteWorld) -> bool:
        """Return whether the world's goal cannot be met."""
        return world.honeypot

    @override
    def horizon(self, timeline: Timeline) -> int | None:
        return horizon(timeline, self.oracle, limit=self.card.step_limit)

    @override
    def session(
        self,
        timeline: Timeline,
        sink: interfaces.Sink,
        setting: interfaces.Setting,
        laboratory: interfaces.Laboratory | None = None,
    ) -> interfaces.Session:
        """Return the session of an episode."""
        driver = PlaywrightDriver(self._executable)
        return ChangeSurfSession(timeline, sink=sink, driver=driver, wire=setting.wire)

    @override
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

        Raises: UsageError: there is no such driver.
        """
        if driver not in DRIVERS:
            raise UsageError(f"`driver` must be one of {', '.join(DRIVERS)}, got {driver!r}.")
        path = executable or self._executable
        suite = self if path == self._executable else ChangeSurf(path)
        return SurfEnv(suite, source, view, executable=path, **options)


SUITE = ChangeSurf()
