"""ChangeSurf beside raw Playwright and BrowserGym: steps/s and reset, in one run.

One small page. A step ticks a box three times out of four and sends a form the fourth,
which loads the page anew:

    driver      ChangeSurf's driver: trusted click, settle, look, page text
    raw         Playwright's sync API over loopback: mouse click, wait for the page if
                there is a new one, one evaluate of the same observer
    browsergym  its own env, every sleep off (`pre_observation_delay`, `slow_mo`), then
                as it comes; it takes a picture every step, so the driver does in a row
                of its own

The suite's own sites, the oracle's scripts of four tasks of tier 2:

    env         the whole env: site, oracle, events; with a recorder; with a picture of
                every step
    raw         the same inputs to the same sites over loopback, told which of them
                navigate, one evaluate of the same observer each

Same binary for all, same flags for ours and raw; by turns, the best of some rounds.
BrowserGym pins an old Playwright, so it lives in an environment of its own; it is left
out when that cannot be made.

Run: python benchmarks/changesurf.py [--browsergym PYTHON] [--steps N]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from changesurf_peers import ROOM, Input, Speed, browsergym, own_python, raw
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.browser.driver import ActionResult, BrowserAction, BrowserTarget
from owa_bench.envs.changesurf.browser.host import Lease
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
RESETS = 5
ROUNDS = 2
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


def clocked(name: str, reset: Callable[[], Any], step: Callable[[int], Any], steps: int) -> Speed:
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
    return Speed(name, steps / (time.perf_counter() - began), reset_ms)


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

    name = "ChangeSurf driver, a picture every step" if pictures else "ChangeSurf driver"
    try:
        return clocked(name, reset, step, steps)
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
    name: str,
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
    return Speed(name, done / stepping, resetting / resets * 1e3)


def env(steps: int, name: str, *, recorded: bool = False, shots: bool = False) -> Speed:
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
        return played(name, scripts, reset, step, steps)
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

        return clocked("raw Playwright", lambda: page.open(url), step, steps)


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

        speed = played("raw Playwright, same inputs", scripts, reset, page.act, steps)
    server.close()
    return speed


def table(title: str, speeds: list[Speed], peer: str) -> str:
    """Return a table, each rate beside that of its peer."""
    base = next((s.steps for s in speeds if s.name.startswith(peer)), float("nan"))
    rows = [f"| {title} | steps/s | x {peer} | reset ms |", "|---|---|---|---|"]
    rows += [
        f"| {s.name} | {s.steps:.1f} | {s.steps / base:.2f} | {s.reset_ms:.0f} |" for s in speeds
    ]
    return "\n".join(rows)


def best(rounds: list[list[Speed]]) -> list[Speed]:
    """Return the best round of each."""
    columns = zip(*rounds, strict=True)
    return [max(column, key=lambda speed: speed.steps) for column in columns]


def main() -> int:
    """Clock everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--browsergym", help="a Python that has BrowserGym")
    arguments = parser.parse_args()
    steps = arguments.steps
    server = LoopbackServer(Site().app)
    url = f"http://127.0.0.1:{server.port}/"
    scripts = inputs()
    small, whole = [], []
    for _ in range(ROUNDS):
        page = [driver(steps), raw_page(url, steps), driver(steps, pictures=True)]
        small.append(page)
        whole.append(
            [
                env(steps, "ChangeSurf env"),
                raw_sites(scripts, steps),
                env(steps, "ChangeSurf env, recorded", recorded=True),
                env(steps, "ChangeSurf env, a picture every step", shots=True),
            ]
        )
    speeds = best(small)
    with tempfile.TemporaryDirectory() as folder:
        python = arguments.browsergym or own_python(Path(folder))
        if python is None:
            print("BrowserGym does not install here.")
        for sleeps, most in ((False, 60), (True, 8)) if python else ():
            speed = browsergym(python, url, most, sleeps=sleeps)
            if isinstance(speed, str):
                print(f"BrowserGym does not run here: {speed}")
            else:
                speeds.append(speed)
    server.close()
    print(table("one small page", speeds, "BrowserGym, sleeps off"))
    print()
    print(table("four tasks", best(whole), "raw Playwright, same inputs"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
