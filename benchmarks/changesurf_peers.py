"""What ChangeSurf's speed is compared with: raw Playwright, and BrowserGym.

`Raw` does what the driver does with Playwright's public calls alone, and is told in
advance which input leaves the page. BrowserGym runs under a Python of its own.
"""

import json
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from owa_bench.envs.changesurf.browser.driver import BrowserAction
from owa_bench.envs.changesurf.browser.host import FLAGS, find_browser
from owa_bench.envs.changesurf.browser.observation import (
    IN_VIEW,
    PageObservation,
    page_text,
    read_observation,
)

ROOM = 3_900  # characters of page text, as in the env


class Speed(NamedTuple):
    """Steps per second and milliseconds per reset."""

    name: str
    steps: float
    reset_ms: float


class Input(NamedTuple):
    """An input of a script, and whether it leaves the page."""

    act: BrowserAction
    leaves: bool


class Raw:
    """A page driven by Playwright's public calls alone."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        source = resources.files("owa_bench.envs.changesurf.browser") / "observer.js"
        self._observer = source.read_text(encoding="utf-8")
        self._context: Any = None
        self._page: Any = None
        self.seen: PageObservation

    def open(self, url: str) -> None:
        """Open a fresh context at an address and look."""
        if self._context is not None:
            self._context.close()
        self._context = self._browser.new_context(viewport={"width": 1280, "height": 720})
        self._page = self._context.new_page()
        self._page.add_init_script(self._observer)
        self._page.goto(url, wait_until="domcontentloaded")
        self._look()

    def act(self, given: Input) -> None:
        """Do one input, wait for the page it leads to, look."""
        if given.leaves:
            with self._page.expect_navigation(wait_until="domcontentloaded"):
                self._input(given.act)
        else:
            self._input(given.act)
        self._look()
        page_text(self.seen, room=ROOM)

    def _look(self) -> None:
        self.seen = read_observation(self._page.evaluate("owa.observe(0)"))

    def _input(self, act: BrowserAction) -> None:
        control = self.seen.control(act.ref)
        if control is None:
            message = f"{act} has no control on {self.seen.url}"
            raise RuntimeError(message)
        if act.op == "select":
            labels = [o.label for o in control.options]
            place = labels.index(act.text)
            self._page.evaluate(f"owa.choose({act.ref}, {place})")
            return
        x, y, width, height = control.x, control.y, control.width, control.height
        if not control.has(IN_VIEW) or control.cover:
            place = self._page.evaluate(f"owa.reveal({act.ref})")
            x, y, width, height, _ = json.loads(place)
        self._page.mouse.click(x + width / 2, y + height / 2)
        if act.op == "type":
            self._page.keyboard.press("Control+A")
            self._page.keyboard.insert_text(act.text)


@contextmanager
def raw() -> Iterator[Raw]:
    """Give a page of a browser that Playwright started with ChangeSurf's flags."""
    flags = [flag for flag in FLAGS if "resolver" not in flag]
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=find_browser(), args=flags)
        yield Raw(browser)
        browser.close()


_GYM = """
import json, sys, time
import gymnasium as gym, browsergym.core
from playwright.sync_api import BrowserType
url, binary, sleeps, steps = json.loads(sys.argv[1])
launch = BrowserType.launch  # its chat window is a second browser without a setting
BrowserType.launch = lambda self, **k: launch(self, **{**k, "executable_path": binary})
more = {} if sleeps else {"pre_observation_delay": 0.0, "slow_mo": 0}
env = gym.make("browsergym/openended", task_kwargs={"start_url": url}, headless=True,
    wait_for_user_message=False, disable_env_checker=True, **more)
def bid(obs, name):
    for node in obs["axtree_object"]["nodes"]:
        if node.get("name", {}).get("value") == name and "browsergym_id" in node:
            if node["role"]["value"] in ("checkbox", "button"):
                return node["browsergym_id"]
    raise KeyError(name)
obs, _ = env.reset()
resets = 1 if sleeps else 3
began = time.perf_counter()
for _ in range(resets):
    obs, _ = env.reset()
reset = (time.perf_counter() - began) / resets
late = 0
for i in range(-4, steps):
    if i == 0:
        began = time.perf_counter()
    name = "Send" if i % 4 == 3 else "I agree"
    obs, *_ = env.step(f'click("{bid(obs, name)}")')
    late += bool(obs["last_action_error"])  # its clicks give up after half a second
print(json.dumps([steps / (time.perf_counter() - began), reset * 1e3, late]))
env.close()
"""


def browsergym(python: str, url: str, steps: int, *, sleeps: bool) -> Speed | str:
    """Clock BrowserGym in its own environment, or say why not."""
    given = json.dumps([url, find_browser(), sleeps, steps])
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
    rate, reset_ms, late = json.loads(done.stdout.strip().splitlines()[-1])
    name = "BrowserGym, as it comes" if sleeps else "BrowserGym, sleeps off"
    return Speed(f"{name}, {late} clicks late" if late else name, rate, reset_ms)


def own_python(folder: Path) -> str | None:
    """Return a Python with BrowserGym in `folder`, None where it does not install."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "browsergym-core"]
    done = subprocess.run(install, capture_output=True, check=False, timeout=900)
    return None if done.returncode else python
