"""Raw Playwright, with which ChangeSurf's speed is compared.

`Raw` does what the driver does with Playwright's public calls alone, and is told in
advance which input leaves the page.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
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
