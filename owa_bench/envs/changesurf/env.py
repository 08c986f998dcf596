"""The Gymnasium env of ChangeSurf: the tool shell, holding the process' browser."""

from typing import Any

import gymnasium

from owa_bench.envs.changesurf.browser import Lease
from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.envs.changesurf.sights import Pixels, Sights, pixels
from owa_bench.errors import UsageError
from owa_bench.interfaces import Suite, TimelineSource, View
from owa_bench.shells.tool_env import ToolEnv


class SurfEnv(ToolEnv):
    """A `ToolEnv` that keeps the browser from its first reset until it is closed.

    Every episode has a fresh context. `render` gives the window as an array; `axtree`
    and `screenshot` add what they name to the observations of the language view.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(
        self,
        suite: Suite,
        source: TimelineSource,
        view: View = "language",
        *,
        executable: str | None = None,
        render_mode: str | None = None,
        axtree: bool = False,
        screenshot: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(suite, source, view, **options)
        self._sights = Sights(axtree=axtree, screenshot=screenshot)
        if any(self._sights):
            plain = self.observation_space
            if not isinstance(plain, gymnasium.spaces.Dict):
                raise UsageError(
                    f"The language view alone shows a tree or a picture, got {view!r}."
                )
            self.observation_space = self._sights.space(plain)
        self.render_mode = render_mode
        self._executable = executable
        self._lease: Lease | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in a fresh context of the browser."""
        if self._lease is None or self._lease.host.dead:
            self._let_go()
            self._lease = Lease(self._executable)
        observation, info = super().reset(seed=seed, options=options)
        return self._sights.add(observation, self.session), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one action."""
        observation, *rest = super().step(action)
        return (self._sights.add(observation, self.session), *rest)

    @property
    def session(self) -> ChangeSurfSession:
        """The visit that is going on, for tools that look at it from outside."""
        session = self._playing.session
        if not isinstance(session, ChangeSurfSession):
            raise TypeError(f"This env plays a visit, got {type(session).__name__}.")
        return session

    def picture(self) -> bytes:
        """Return a JPEG of the window."""
        return self.session.picture()

    def render(self) -> Pixels:
        """Return the window's pixels."""
        return pixels(self.picture())

    def close(self) -> None:
        """Release the session and give the browser back."""
        super().close()
        self._let_go()

    def _let_go(self) -> None:
        if self._lease is not None:
            self._lease.give_back()
            self._lease = None
