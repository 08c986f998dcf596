"""How many verified actions the oracle takes, found without a browser.

The same hints, the same verification and the same simulated clock as in an episode; the
pages are read as HTML. A tenth of a second, where playing it takes one or two.
"""

import asyncio
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from owa_bench.envs.changesurf.hints import Deed, deed
from owa_bench.envs.changesurf.state import SiteState
from owa_bench.envs.changesurf.visit import ACT_MS
from owa_bench.envs.changesurf.walk import REFUSED, Held, Walker
from owa_bench.errors import DriftError
from owa_bench.interfaces import Oracle
from owa_bench.records.instance import Timeline


class _Scene(NamedTuple):
    """What an oracle reads: the site's state, and what its controls hold."""

    site: SiteState
    controls: tuple[Held, ...]


def horizon(timeline: Timeline, oracle: Oracle, *, limit: int) -> int | None:
    """Return H_t, None where only a played episode can tell.

    That is where drift strikes in the middle, or the walk is lost within `limit` deeds.
    """
    if len(timeline.worlds) > 1:
        return None
    # A thread of its own: the caller may stand in a running loop (a notebook's).
    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            walked = _walked(timeline, oracle, limit)
            return thread.submit(asyncio.run, walked).result()
        except DriftError:
            return None


async def _walked(timeline: Timeline, oracle: Oracle, limit: int) -> int | None:
    async with Walker(timeline, act_ms=ACT_MS) as walker:
        await walker.load("GET", walker.server.start_url)
        walker.now_ms = 0  # an episode's clock starts when its first page is there
        scene, count = _scene(walker), 0
        results: set[Hashable] = set()
        for _ in range(limit):
            step = deed(timeline, scene, scene.controls)
            if step.op in ("done", "infeasible"):
                return count
            before, there = scene, walker.url
            await walker.do(step)
            scene = _scene(walker)
            result = _result(step, there, walker, scene)
            ran = walker.status < REFUSED and result not in results
            results.add(result)
            count += ran and oracle.accepts(before, {}, scene)
        return None


def _scene(walker: Walker) -> _Scene:
    return _Scene(walker.server.state, tuple(walker.held()))


def _result(step: Deed, there: str, walker: Walker, scene: _Scene) -> Hashable:
    """Return what tells a repeat with an equal result from news.

    As in the session: what was done, on which page, and the page that it led to.
    """
    return step, there, walker.url, walker.root.text(), scene.controls
