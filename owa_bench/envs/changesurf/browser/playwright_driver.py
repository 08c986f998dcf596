"""The driver over Playwright: one hop to the browser's loop an act.

Whether a control can be acted on was seen by the last look, in the same in-page call that gave its
place; only what was out of view or covered is scrolled to and looked at once more before the input.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from starlette.types import ASGIApp

from owa_bench.envs.changesurf.browser import observation
from owa_bench.envs.changesurf.browser.driver import (
    ActionResult,
    BrowserAction,
    BrowserExchange,
    BrowserTarget,
    Refusal,
)
from owa_bench.envs.changesurf.browser.host import Lease
from owa_bench.envs.changesurf.browser.tab import KEYS, Tab
from owa_bench.errors import InfrastructureFailure, UsageError

T = TypeVar("T")
SCROLL = 0.8  # of the window's height
_TEXTUAL = frozenset({"textbox", "searchbox", "spinbutton", "combobox"})


class InputRefusal(NamedTuple):
    """Why nothing was done."""

    refusal: Refusal
    reason: str


class PlaywrightDriver:
    """Drives one page of the process' browser; works in any thread."""

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable
        self._lease: Lease | None = None
        self._tab: Tab | None = None
        self._target: BrowserTarget | None = None
        self._first = 0

    # --- the protocol -----------------------------------------------------------------

    def open(self, target: BrowserTarget) -> ActionResult:
        """Open a fresh context on a site and go to its start."""
        self.close()
        self._lease = Lease(self._executable)
        self._target = target
        self._tab = Tab(self._lease.host, target)
        try:
            return self._lease.host.run(self._open_start(self._tab, target.start))
        except BaseException:
            self.close()
            raise

    def serve(self, app: ASGIApp) -> None:
        """Answer by another app from now on."""
        self._open_tab.interceptor.app = app

    def act(self, action: BrowserAction) -> ActionResult:
        """Do one input and return the page once it has settled."""
        tab = self._open_tab
        if self._lease is None or self._lease.host.dead:
            raise InfrastructureFailure("the browser was killed")
        return self._lease.host.run(self._perform(tab, action))

    def exchanges(self) -> Sequence[BrowserExchange]:
        """Return every request since `open`, in order."""
        return self._open_tab.interceptor.exchanges

    def picture(self) -> bytes:
        """Return a JPEG of the window."""
        return self._ask(self._open_tab.picture())

    def snapshot(self) -> bytes:
        """Return the DOM as canonical JSON."""
        return self._ask(self._open_tab.snapshot())

    def tree(self) -> bytes:
        """Return the accessibility tree as canonical JSON."""
        return self._ask(self._open_tab.tree())

    def facts(self) -> Mapping[str, Any]:
        """Return what drives: binary, version, flags."""
        return {} if self._lease is None else self._lease.host.facts()

    def close(self) -> None:
        """Close the context and give the browser back; may be called twice."""
        tab, lease = self._tab, self._lease
        self._tab = self._lease = None
        if lease is None:
            return
        try:
            if tab is not None and not lease.host.dead:
                lease.host.run(tab.close())
        except InfrastructureFailure:
            pass  # it is being closed because the browser failed
        finally:
            lease.give_back()

    # --- inside -----------------------------------------------------------------------

    @property
    def _open_tab(self) -> Tab:
        if self._tab is None:
            raise UsageError("No page is open: call open first.")
        return self._tab

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        if self._lease is None:
            raise UsageError("No page is open: call open first.")
        return self._lease.host.run(work)

    async def _open_start(self, tab: Tab, start: str) -> ActionResult:
        await tab.open()
        await tab.go(start)
        page = await tab.observe()
        self._first = tab.navigations
        return ActionResult(page, navigated=True)

    async def _perform(self, tab: Tab, action: BrowserAction) -> ActionResult:
        """Do one input, settle, look."""
        before = tab.navigations
        tab.begin()
        refused = await self._input(tab, action)
        if refused is not None and refused.refusal in ("gone", "disabled", "unfit"):
            return ActionResult(tab.page, *refused)
        intended = action.ref if action.op == "click" and refused is None else 0
        page = await tab.observe(intended)
        note, tab.interceptor.note = tab.interceptor.note, ""
        untrusted, tab.untrusted = tab.untrusted, 0
        refusal, reason = refused or ("", "")
        left = tab.navigations != before
        return ActionResult(page, refusal, reason, left, note, untrusted)

    async def _input(self, tab: Tab, action: BrowserAction) -> InputRefusal | None:
        """Send the input of an act; return why not if it was not sent."""
        if action.op in ("click", "type", "select"):
            return await self._on_control(tab, action)
        if action.op == "press":
            if action.text not in KEYS:
                return InputRefusal("unfit", f"`key` must be one of {', '.join(KEYS)}.")
            await tab.press(action.text)
        elif action.op == "scroll":
            sign = -1 if action.text == "up" else 1
            await tab.scroll(sign * int(SCROLL * tab.page.window.height))
        elif action.op == "back":
            if tab.navigations <= self._first or not await tab.back():
                return InputRefusal("unfit", "there is no page to go back to.")
        elif action.op == "goto":
            return await self._go(tab, action.text)
        return None

    async def _go(self, tab: Tab, address: str) -> InputRefusal | None:
        """Go to an address of the sandbox."""
        hosts = frozenset() if self._target is None else self._target.hosts
        url = _sandbox_url(tab.page.url, address, hosts)
        if url is None:
            reason = f"{address} is no address of this site: refused."
            return InputRefusal("outside", reason)
        await tab.go(url)
        return None

    async def _on_control(self, tab: Tab, action: BrowserAction) -> InputRefusal | None:
        control = tab.page.control(action.ref)
        refused = _control_refusal(tab.page, control, action)
        if refused is not None or control is None:
            return refused
        if action.op == "select":
            return await self._select(tab, control, action.text)
        point = await self._point(tab, control)
        if isinstance(point, InputRefusal):
            return point
        await tab.click(*point)
        if action.op == "type" and (action.text or control.value):
            await tab.write(action.text)
        return None

    async def _point(
        self, tab: Tab, control: observation.ObservedControl
    ) -> tuple[float, float] | InputRefusal:
        """Return where to click: seen by the last look, or after scrolling there."""
        if control.has(observation.IN_VIEW) and not control.cover:
            return control.x + control.width / 2, control.y + control.height / 2
        place = await tab.ask(f"owa.reveal({control.ref})")
        if place is None:
            return InputRefusal("gone", f"[{control.ref}] is no longer on the page.")
        x, y, width, height, cover = place
        if width <= 0 or height <= 0:
            return InputRefusal("hidden", f"[{control.ref}] takes no room on the page.")
        if cover:
            return InputRefusal("covered", f"[{control.ref}] is covered by {cover}.")
        return x + width / 2, y + height / 2

    async def _select(
        self, tab: Tab, control: observation.ObservedControl, label: str
    ) -> InputRefusal | None:
        """Choose the option of this label or value."""
        for place, option in enumerate(control.options):
            if label in (option.label, option.value):
                if not option.enabled:
                    reason = f"the option {label!r} is disabled."
                    return InputRefusal("disabled", reason)
                done = await tab.ask(f"owa.choose({control.ref}, {place})")
                gone = f"[{control.ref}] is no longer on the page."
                return InputRefusal("gone", gone) if done is None else None
        known = ", ".join(repr(option.label) for option in control.options[:24])
        reason = f"[{control.ref}] has no option {label!r}; it has {known}."
        return InputRefusal("unfit", reason)


def _sandbox_url(base: str, address: str, hosts: frozenset[str]) -> str | None:
    """Return an address of the sandbox in full, None if it lies outside.

    Scheme and host must be the sandbox's to the letter: other schemes run scripts or load what no
    site served, and a port or a user name is nothing that a site has.
    """
    try:
        url = urljoin(base, address)
        parts = urlsplit(url)
    except ValueError:  # no address at all, such as an open bracket
        return None
    inside = parts.scheme == "https" and parts.netloc.lower() in hosts
    return url if inside else None


def _control_refusal(
    page: observation.PageObservation,
    control: observation.ObservedControl | None,
    action: BrowserAction,
) -> InputRefusal | None:
    """Return why a control cannot take an act, as the last look saw it."""
    if control is None:
        known = len(page.controls)
        there = f"the page shows {known} controls" if known else "the page has none"
        return InputRefusal("gone", f"[{action.ref}] is not on the page; {there}.")
    if control.has(observation.DISABLED):
        return InputRefusal("disabled", f"[{action.ref}] {control.role} is disabled.")
    is_list, unfit = control.tag == "select", ""
    if action.op == "type":
        editable = control.role in _TEXTUAL and not control.has(observation.READ_ONLY)
        unfit = "" if editable and not is_list else "{} and takes no text."
    elif action.op == "select" and not control.options:
        unfit = "{} without options."
    elif action.op == "click" and is_list:
        unfit = "list: use select with a label."
    reason = f"[{action.ref}] is a {unfit.format(control.role)}"
    return InputRefusal("unfit", reason) if unfit else None
