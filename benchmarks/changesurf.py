"""ChangeSurf beside raw Playwright and BrowserGym: steps/s and reset, in one run.

One small page in a real Chromium. A step ticks a box three times out of four and sends a
form the fourth, which loads the page anew:

    driver      ChangeSurf's driver: trusted click, settle, look, page text
    raw         Playwright's sync API over loopback: mouse click, wait for the page if
                there is a new one, one evaluate of the same observer
    browsergym  its own env, every sleep off (`pre_observation_delay`, `slow_mo`), then
                as it comes; it takes a picture, a DOM snapshot and the accessibility tree
                every step, so the driver takes a picture in a row of its own. Where it
                looked before the new page was there, it looks again; the time counts

The suite's own sites, the oracle's scripts of four tasks of tier 2:

    env         the whole env: site, oracle, events; with a recorder; with a picture of
                every step
    raw         the same inputs to the same sites over loopback, told which of them
                navigate, one evaluate of the same observer each

Same binary for all, same flags for ours and raw. BrowserGym pins an old Playwright, so it
lives in an environment of its own. A picture waits for frames; frames on demand
(BeginFrame) are not built. The recorder's share is one picture and one tree a POST and a
DOM snapshot a page. A reset is a new context with its renderer process.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import speed
from changesurf_peers import ROOM, Input, raw
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.browser.driver import ActionResult, BrowserAction, BrowserTarget
from owa_bench.envs.changesurf.browser.host import Lease, find_browser
from owa_bench.envs.changesurf.browser.loopback import LocalhostApp
from owa_bench.envs.changesurf.browser.observation import page_text
from owa_bench.envs.changesurf.browser.playwright_driver import PlaywrightDriver
from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.records.instance import Instance
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.loopback import LoopbackServer
from owa_bench.shells.solution import solve

HOST = "bench.test"
RESETS, SLOW_STEPS = 5, 4
FAMILIES = ("stay/book", "ledger/transfer", "permit/apply", "depot/buy")
ROWS = "".join(
    f"<tr><td>Room {i}</td><td>{60 + i}</td><td><a href='/?r={i}'>Show {i}</a></td></tr>"
    for i in range(12)
)
PAGE = (
    "<!doctype html><title>Bench</title><h1>Rooms</h1><p>Sent {count} times.</p>"
    "<form method=post action=/send>"
    "<label><input type=checkbox name=ok> I agree</label>"
    "<label>Name <input name=who></label>"
    "<label>Guests <select name=n><option>1<option>2</select></label>"
    "<button>Send</button></form><table><tr><th>Room<th>Price<th></tr>"
    f"{ROWS}</table>"
)


class Speed(NamedTuple):
    """Steps per second and milliseconds per reset."""

    steps: float
    reset_ms: float


class Site:
    """A page with a form that counts how often it was sent."""

    def __init__(self) -> None:
        self.count = 0
        self.app = Starlette(
            routes=[Route("/", self._home), Route("/send", self._send, methods=["POST"])]
        )

    async def _home(self, request: Request) -> Response:
        return HTMLResponse(PAGE.format(count=self.count))

    async def _send(self, request: Request) -> Response:
        self.count += 1
        return RedirectResponse("/", 303)


def clocked(reset: Callable[[], Any], step: Callable[[int], Any], steps: int) -> Speed:
    """Return how fast something resets and steps."""
    reset()
    began = time.perf_counter()
    for _ in range(RESETS):
        reset()
    reset_ms = (time.perf_counter() - began) / RESETS * 1e3
    for i in range(8):
        step(i)
    began = time.perf_counter()
    for i in range(steps):
        step(i)
    return Speed(steps / (time.perf_counter() - began), reset_ms)


def driver(steps: int, *, pictures: bool = False) -> Speed:
    """Clock the driver on the small page."""
    site, lease, driving = Site(), Lease(), PlaywrightDriver()
    place = BrowserTarget(site.app, frozenset({HOST}), f"https://{HOST}/")
    seen: list[Any] = [None]

    def reset() -> None:
        seen[0] = driving.open(place)

    def step(i: int) -> None:
        name = "Send" if i % 4 == 3 else "I agree"
        ref = next(c.ref for c in seen[0].page.controls if c.name == name)
        seen[0] = driving.act(BrowserAction("click", ref))
        page_text(seen[0].page, room=ROOM)
        if pictures:
            driving.picture()

    try:
        return clocked(reset, step, steps)
    finally:
        driving.close()
        lease.give_back()


# --- the suite's own sites ------------------------------------------------------------


def tasks() -> list[Instance]:
    """Return the tasks that are played."""
    return [
        Instance(suite="changesurf", version=3, family=family, tier=2, seed=1)
        for family in FAMILIES
    ]


def inputs() -> dict[Instance, list[Input]]:
    """Return what the oracle's scripts put into the browser, played once."""
    made: list[Input] = []
    act = PlaywrightDriver.act

    def noted(self: PlaywrightDriver, given: BrowserAction) -> ActionResult:
        seen = act(self, given)
        made.append(Input(given, seen.navigated))
        return seen

    source = timelines.source("changesurf")
    playing = SUITE.env(source)
    PlaywrightDriver.act = noted  # type: ignore[method-assign]
    found = {}
    for task in tasks():
        actions = solve(SUITE, source(task)).actions
        playing.reset(options={"instance": task})
        made.clear()  # solving plays too
        for action in actions:
            *_, info = playing.step(action)
        if info["q_state"] != 1.0:
            message = f"the script of {task.family} reached {info['q_state']}"
            raise RuntimeError(message)
        found[task] = list(made)
    PlaywrightDriver.act = act  # type: ignore[method-assign]
    playing.close()
    return found


def played(
    scripts: dict[Instance, list[Any]],
    reset: Callable[[Instance], Any],
    step: Callable[[Any], Any],
    steps: int,
) -> Speed:
    """Return how fast scripts are played; only inputs to the browser count as steps."""
    done, stepping, resetting, resets = 0, 0.0, 0.0, 0
    reset(next(iter(scripts)))
    while done < steps:
        for task, script in scripts.items():
            began = time.perf_counter()
            reset(task)
            begun = time.perf_counter()
            for each in script:
                step(each)
            stepping += time.perf_counter() - begun
            resetting += begun - began
            resets += 1
            done += len(script)
    return Speed(done / stepping, resetting / resets * 1e3)


def env(steps: int, *, recorded: bool = False, shots: bool = False) -> Speed:
    """Clock the whole env on the oracle's scripts, without their last word."""
    source = timelines.source("changesurf")
    playing = SUITE.env(source)
    scripts = {task: list(solve(SUITE, source(task)).actions[:-1]) for task in tasks()}

    def reset(task: Instance) -> None:
        if recorded:
            playing.unwrapped.attach(ListSink())
        playing.reset(options={"instance": task})

    def step(action: str) -> None:
        playing.step(action)
        if shots:
            playing.unwrapped.session.picture()

    try:
        return played(scripts, reset, step, steps)
    finally:
        playing.close()


# --- raw Playwright -------------------------------------------------------------------


def raw_page(url: str, steps: int) -> Speed:
    """Clock raw Playwright on the small page."""
    with raw() as page:

        def step(i: int) -> None:
            name = "Send" if i % 4 == 3 else "I agree"
            ref = next(c.ref for c in page.seen.controls if c.name == name)
            page.act(Input(BrowserAction("click", ref), name == "Send"))

        return clocked(lambda: page.open(url), step, steps)


def raw_sites(scripts: dict[Instance, list[Input]], steps: int) -> Speed:
    """Clock raw Playwright on the suite's sites, served over loopback."""
    source = timelines.source("changesurf")
    server = LoopbackServer(Site().app)
    with raw() as page:

        def reset(task: Instance) -> None:
            site = SiteServer(source(task).worlds[0], instance=task)
            people = LocalhostApp(site.app, server.port)
            server.app = people
            page.open(people.address(site.start_url))

        found = played(scripts, reset, page.act, steps)
    server.close()
    return found


# --- tables ---------------------------------------------------------------------------

DRIVER, PICTURES = "ChangeSurf driver", "ChangeSurf driver, a picture every step"
RAW = "raw Playwright"
GYM, SLOW_GYM = "peer: BrowserGym, sleeps off", "peer: BrowserGym, as it comes"
BESIDE_GYM, BESIDE_RAW = "x BrowserGym, sleeps off", "x raw Playwright"


def rows(
    found: dict[str, list[Speed]], beside: dict[str, str], aims: dict[str, speed.Aim]
) -> list[speed.Row]:
    """Return the best of each; its ratio to each peer that was measured."""
    made = []
    for name, rounds in found.items():
        rates = [each.steps for each in rounds]
        figures = {"steps/s": max(rates), "reset ms": min(each.reset_ms for each in rounds)}
        for column, peer in beside.items():
            if peer in found:
                figures[column] = speed.ratio(rates, (each.steps for each in found[peer]))
        made.append(speed.Row(name, figures, [aims[name]] if name in aims else ()))
    return made


def page_table(steps: int, gym_steps: int, rounds: int) -> speed.Table:
    """Return the driver beside both peers on the small page."""
    server = LoopbackServer(Site().app)
    url = f"http://127.0.0.1:{server.port}/"
    ways = {
        DRIVER: partial(driver, steps),
        RAW: partial(raw_page, url, steps),
        PICTURES: partial(driver, steps, pictures=True),
    }
    with speed.peer("browsergym-core", "browser_page.py") as (ask, fault):

        def gym(count: int, *, sleeps: bool) -> Speed:
            given = {"url": url, "binary": find_browser(), "sleeps": sleeps, "steps": count}
            return Speed(**ask(**given))

        if not fault:
            ways[GYM] = partial(gym, gym_steps, sleeps=False)
        if not fault and gym_steps > SLOW_STEPS:
            ways[SLOW_GYM] = partial(gym, SLOW_STEPS, sleeps=True)
        found = speed.in_turns(ways, rounds)
    server.close()
    aims = {DRIVER: speed.Aim(BESIDE_GYM, ">=", 10)}
    made = rows(found, {BESIDE_GYM: GYM, BESIDE_RAW: RAW}, aims)
    return speed.Table("one small page", [*made, *([speed.Row(GYM, note=fault)] if fault else [])])


def sites_table(steps: int, rounds: int) -> speed.Table:
    """Return the env beside raw Playwright on the suite's sites."""
    scripts = inputs()
    ways = {
        "ChangeSurf env": partial(env, steps),
        RAW: partial(raw_sites, scripts, steps),
        "ChangeSurf env, recorded": partial(env, steps, recorded=True),
        "ChangeSurf env, a picture every step": partial(env, steps, shots=True),
    }
    aims = {"ChangeSurf env": speed.Aim(BESIDE_RAW, ">=", round(1 / 1.5, 2))}
    found = speed.in_turns(ways, rounds)
    return speed.Table("four tasks", rows(found, {BESIDE_RAW: RAW}, aims))


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield both tables."""
    yield page_table(*((4, 4, 1) if given.small else (160, 40, 3)))
    yield sites_table(*((4, 1) if given.small else (160, 3)))


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
