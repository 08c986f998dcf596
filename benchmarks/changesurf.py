"""ChangeSurf beside raw Playwright and BrowserGym: steps/s and reset, in one run.

    driver      ChangeSurf's driver alone on a small page: trusted click, settle, look
    env         the whole env on its own sites: the oracle's script with every event
    playwright  Playwright's sync API on the same page over loopback: mouse click, wait
                for the navigation where there is one, the same observer evaluated
    browsergym  its own env on the same page, its sleeps off, then with its defaults

A step ticks a box three times out of four and sends a form the fourth, which loads the
page anew. Same binary for all, same flags for the first three; by turns, the best of
some rounds. BrowserGym pins an old Playwright, so it lives in an environment of its
own; it is left out when that cannot be made.

Run: python benchmarks/changesurf.py [--browsergym PYTHON] [--steps N]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.envs.changesurf.browser import FLAGS, Lease, find_browser
from owa_bench.envs.changesurf.driver import Act, Place
from owa_bench.envs.changesurf.loopback import Loopback
from owa_bench.envs.changesurf.playwright_driver import PlaywrightDriver
from owa_bench.envs.changesurf.reading import page_text
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.records.instance import Instance
from owa_bench.run import assembly
from owa_bench.shells.solution import solve

HOST = "bench.test"
RESETS = 5
ROUNDS = 3
ROWS = "".join(
    f"<tr><td>Room {i}</td><td>{60 + i}</td>"
    f"<td><a href='/?r={i}'>Show {i}</a></td></tr>"
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

    name: str
    steps: float
    reset_ms: float


class Site:
    """A page with a form that counts how often it was sent."""

    def __init__(self) -> None:
        self.count = 0
        self.app = Starlette(
            routes=[
                Route("/", self._home),
                Route("/send", self._send, methods=["POST"]),
            ]
        )

    async def _home(self, request: Request) -> Response:
        return HTMLResponse(PAGE.format(count=self.count))

    async def _send(self, request: Request) -> Response:
        self.count += 1
        return RedirectResponse("/", 303)


def clocked(
    name: str, reset: Callable[[], Any], step: Callable[[int], Any], steps: int
) -> Speed:
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


def driver(steps: int) -> Speed:
    """Clock the driver alone."""
    site, lease, driving = Site(), Lease(), PlaywrightDriver()
    place = Place(site.app, frozenset({HOST}), f"https://{HOST}/")
    seen: list[Any] = [None]

    def reset() -> None:
        seen[0] = driving.open(place)

    def step(i: int) -> None:
        name = "Send" if i % 4 == 3 else "I agree"
        ref = next(c.ref for c in seen[0].page.controls if c.name == name)
        seen[0] = driving.act(Act("click", ref))
        page_text(seen[0].page, room=3_900)

    try:
        return clocked("ChangeSurf driver", reset, step, steps)
    finally:
        driving.close()
        lease.give_back()


def env(steps: int) -> Speed:
    """Clock the whole env: the oracle's scripts of four tasks, again and again."""
    source = assembly.source("changesurf")
    playing = SUITE.env(source)
    families = ("stay/book", "ledger/transfer", "permit/apply", "depot/buy")
    tasks = [
        Instance(suite="changesurf", version=1, family=family, tier=2, seed=1)
        for family in families
    ]
    playing.reset(options={"instance": tasks[0]})
    scripts = [solve(SUITE, source(task)).actions for task in tasks]
    done, stepping, resetting, resets = 0, 0.0, 0.0, 0
    while done < steps:
        for task, script in zip(tasks, scripts, strict=True):
            began = time.perf_counter()
            playing.reset(options={"instance": task})
            begun = time.perf_counter()
            for action in script:
                playing.step(action)
            stepping += time.perf_counter() - begun
            resetting += begun - began
            resets += 1
            done += len(script)
    playing.close()
    return Speed("ChangeSurf env, oracle", done / stepping, resetting / resets * 1e3)


def playwright(url: str, steps: int) -> Speed:
    """Clock raw Playwright with the same input and the same look."""
    source = resources.files("owa_bench.envs.changesurf") / "observer.js"
    observer = source.read_text(encoding="utf-8")
    flags = [flag for flag in FLAGS if "resolver" not in flag]
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=find_browser(), args=flags)
        context: list[Any] = [None]
        page: list[Any] = [None]

        def look() -> list[Any]:
            return list(json.loads(page[0].evaluate("owa.observe(0)")))

        def reset() -> None:
            if context[0] is not None:
                context[0].close()
            context[0] = browser.new_context(viewport={"width": 1280, "height": 720})
            page[0] = context[0].new_page()
            page[0].add_init_script(observer)
            page[0].goto(url, wait_until="domcontentloaded")
            seen[0] = look()

        def step(i: int) -> None:
            name = "Send" if i % 4 == 3 else "I agree"
            control = next(c for c in seen[0][3] if c[2] == name)
            x, y = control[5] + control[7] / 2, control[6] + control[8] / 2
            if name == "Send":
                with page[0].expect_navigation(wait_until="domcontentloaded"):
                    page[0].mouse.click(x, y)
            else:
                page[0].mouse.click(x, y)
            seen[0] = look()

        seen: list[Any] = [None]
        speed = clocked("raw Playwright", reset, step, steps)
        browser.close()
    return speed


# Runs under BrowserGym's own Python; prints one JSON list.
_GYM = """
import json, sys, time
import gymnasium as gym, browsergym.core
from playwright.sync_api import BrowserType
url, binary, delay, steps = json.loads(sys.argv[1])
launch = BrowserType.launch  # its chat window is a second browser without a setting
BrowserType.launch = lambda self, **k: launch(self, **{**k, "executable_path": binary})
more = {} if delay is None else {"pre_observation_delay": delay}
env = gym.make("browsergym/openended", task_kwargs={"start_url": url}, headless=True,
    wait_for_user_message=False, disable_env_checker=True, **more)
def bid(obs, name):
    for node in obs["axtree_object"]["nodes"]:
        if node.get("name", {}).get("value") == name and "browsergym_id" in node:
            if node["role"]["value"] in ("checkbox", "button"):
                return node["browsergym_id"]
    raise KeyError(name)
began = time.perf_counter()
obs, _ = env.reset()
reset = time.perf_counter() - began
for i in range(-4, steps):
    if i == 0:
        began = time.perf_counter()
    name = "Send" if i % 4 == 3 else "I agree"
    obs, *_ = env.step(f'click("{bid(obs, name)}")')
    assert not obs["last_action_error"], obs["last_action_error"]
print(json.dumps([steps / (time.perf_counter() - began), reset * 1e3]))
env.close()
"""


def browsergym(python: str, url: str, delay: float | None, steps: int) -> Speed | str:
    """Clock BrowserGym in its own environment, or say why not."""
    given = json.dumps([url, find_browser(), delay, steps])
    done = subprocess.run(
        [python, "-W", "ignore", "-c", _GYM, given],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return last[-1] if last else "no reason given"
    rate, reset_ms = json.loads(done.stdout.strip().splitlines()[-1])
    name = "BrowserGym, as it comes" if delay is None else "BrowserGym, sleeps off"
    return Speed(name, rate, reset_ms)


def own_python(folder: Path) -> str | None:
    """Return a Python with BrowserGym in `folder`, None where it does not install."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "browsergym-core"]
    done = subprocess.run(install, capture_output=True, check=False, timeout=900)
    return None if done.returncode else python


def table(speeds: list[Speed]) -> str:
    """Return the table, each rate beside that of the driver."""
    first = speeds[0].steps
    rows = ["| what | steps/s | of the driver | reset ms |", "|---|---|---|---|"]
    rows += [
        f"| {s.name} | {s.steps:.1f} | {s.steps / first:.3f} | {s.reset_ms:.0f} |"
        for s in speeds
    ]
    return "\n".join(rows)


def main() -> int:
    """Clock everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--browsergym", help="a Python that has BrowserGym")
    arguments = parser.parse_args()
    steps = arguments.steps
    server = Loopback(Site().app)
    url = f"http://127.0.0.1:{server.port}/"
    rounds = [
        (driver(steps), playwright(url, steps), env(steps)) for _ in range(ROUNDS)
    ]
    speeds = [
        max(runs, key=lambda run: run.steps) for runs in zip(*rounds, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        python = arguments.browsergym or own_python(Path(folder))
        if python is None:
            print("BrowserGym does not install here.")
        for delay, most in ((0.0, 60), (None, 20)) if python else ():
            speed = browsergym(python, url, delay, most)
            if isinstance(speed, str):
                print(f"BrowserGym does not run here: {speed}")
            else:
                speeds.append(speed)
    server.close()
    print(table(speeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
