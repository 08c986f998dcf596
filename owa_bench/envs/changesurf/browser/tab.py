"""One page in a context of its own: trusted input, settling, and one look.

No step sleeps. Input goes through the browser's input domain at the centre that the last look gave;
the acknowledgement of the last input is awaited; then one in-page call waits for the page to settle
and returns what it shows. It returns nothing if the page is being left: then the next document's
isolated world is awaited and asked instead.
"""

import asyncio
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from owa_bench.canonical import canonical_json
from owa_bench.envs.changesurf.browser import observation
from owa_bench.envs.changesurf.browser.driver import BrowserTarget, Channel, Interceptor
from owa_bench.envs.changesurf.browser.host import BrowserHost
from owa_bench.errors import InfrastructureFailure

WORLD = "owa"
UNTRUSTED_BINDING = "owaUntrusted"
_SETTLE_S = 20.0
_JPEG_QUALITY = 60
_GONE = (
    "context was destroyed",
    "Inspected target navigated",
    "Cannot find context",
    "Target closed",
    "uniqueContextId",
)
_KEYS: Mapping[str, tuple[str, int, str]] = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "Backspace": ("Backspace", 8, ""),
    "Space": ("Space", 32, " "),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "PageDown": ("PageDown", 34, ""),
    "PageUp": ("PageUp", 33, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
}
KEYS = tuple(_KEYS)
_SOURCE = (resources.files(__package__) / "observer.js").read_text(encoding="utf-8")


class Tab:
    """A page while it is driven. Every method is a coroutine of the host's loop."""

    def __init__(self, host: BrowserHost, target: BrowserTarget) -> None:
        self._host = host
        self._target = target
        self._context: Any = None
        self._page: Any = None
        self._cdp: Any = None
        self._frame = ""
        self._world = ""
        self._stayed = 0  # of the interceptor's count, when the last input was begun
        self._changed = asyncio.Event()
        self._answering: set[asyncio.Task[None]] = set()
        self.interceptor: Interceptor
        self.page: observation.PageObservation = observation.BLANK_PAGE
        self.navigations = 0
        self.untrusted = 0

    async def open(self) -> None:
        """Open the context and the page, with observer and interceptor in place."""
        self._context = await self._host.browser.new_context(
            viewport={"width": self._target.width, "height": self._target.height},
            locale="en-GB",
            timezone_id="UTC",
            color_scheme="light",
            reduced_motion="reduce",
            service_workers="block",
            accept_downloads=False,
        )
        self._page = await self._context.new_page()
        self._page.on("crash", lambda *_: self._changed.set())
        self._context.on("page", self._refuse_popup)
        self._cdp = await self._context.new_cdp_session(self._page)
        self.interceptor = Interceptor(self._cdp, self._target)
        self._cdp.on("Fetch.requestPaused", self._on_request)
        self._cdp.on("Runtime.executionContextCreated", self._on_context)
        self._cdp.on("Runtime.bindingCalled", self._on_untrusted)
        self._cdp.on("Page.navigatedWithinDocument", self._on_moved)
        # One round trip: the browser takes the commands of a session in their order.
        tree, *_ = await asyncio.gather(
            self._cdp.send("Page.getFrameTree"),
            self._cdp.send("Page.enable"),
            self._cdp.send(
                "Runtime.addBinding", {"name": UNTRUSTED_BINDING, "executionContextName": WORLD}
            ),
            self.interceptor.start(),
            self._cdp.send(
                "Page.addScriptToEvaluateOnNewDocument",
                {"source": _SOURCE, "worldName": WORLD, "runImmediately": True},
            ),
        )
        self._frame = tree["frameTree"]["frame"]["id"]
        await self._cdp.send("Runtime.enable")

    async def close(self) -> None:
        """Close the context; what is still being answered is dropped."""
        for task in self._answering:
            task.cancel()
        if self._context is not None and not self._host.dead:
            await self._context.close()

    # --- what the browser tells -------------------------------------------------------

    def _on_request(self, event: Mapping[str, Any]) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, event: Mapping[str, Any]) -> None:
        from playwright.async_api import Error

        stayed = self.interceptor.stayed
        try:
            await self.interceptor.answer(event)
        except Error:  # the request was cancelled, or the page is gone
            return
        if self.interceptor.stayed != stayed:
            self._changed.set()

    def _on_context(self, event: Mapping[str, Any]) -> None:
        context = event["context"]
        own = context.get("auxData", {}).get("frameId") == self._frame
        if own and context["name"] == WORLD:
            self._world = context["uniqueId"]
            self.navigations += 1
            self._changed.set()

    def _on_untrusted(self, event: Mapping[str, Any]) -> None:
        self.untrusted += event["name"] == UNTRUSTED_BINDING

    def _on_moved(self, event: Mapping[str, Any]) -> None:
        if event["frameId"] == self._frame:
            self._changed.set()

    def _refuse_popup(self, page: Any) -> None:
        if page is not self._page:
            self.interceptor.note = "A new window was refused."
            task = asyncio.ensure_future(page.close())
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    # --- looking ----------------------------------------------------------------------

    async def observe(self, intended: int = 0) -> observation.PageObservation:
        """Return the page once it has settled.

        Raises: InfrastructureFailure: it does not settle, or the app failed.
        """
        try:
            text = await asyncio.wait_for(self._settled_text(intended), _SETTLE_S)
        except TimeoutError as error:
            raise InfrastructureFailure(
                f"the page did not settle within {_SETTLE_S:g} s"
            ) from error
        if self.interceptor.fault is not None:
            raise InfrastructureFailure(
                f"the site failed: {self.interceptor.fault!r}"
            ) from self.interceptor.fault
        self.page = observation.read_observation(text)
        return self.page

    async def _settled_text(self, intended: int) -> str:
        world, stayed = self._world, self._stayed
        while True:
            text = await self._call(f"owa.observe({intended})", world)
            if text:
                return text
            intended = 0  # another document: its numbers are its own
            while self._world == world and self.interceptor.stayed == stayed:
                await self._change()
            if self._world == world:
                await self._call("owa.stay()", world)
            world, stayed = self._world, self.interceptor.stayed

    async def _call(self, expression: str, world: str) -> str:
        """Return what an expression gives in an isolated world, "" if that is gone."""
        from playwright.async_api import Error

        try:
            reply = await self._cdp.send(
                "Runtime.evaluate",
                {
                    "expression": expression,
                    "uniqueContextId": world,
                    "awaitPromise": True,
                    "returnByValue": True,
                },
            )
        except Error as error:
            if self._world == world and not any(w in str(error) for w in _GONE):
                raise
            return ""
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            words = details.get("exception", {}).get("description", details["text"])
            raise InfrastructureFailure(f"the in-page observer raised: {words}")
        return str(reply["result"].get("value", ""))

    async def _change(self) -> None:
        """Wait until the browser has told of something."""
        if self._host.dead or self._page.is_closed():
            raise InfrastructureFailure("the browser was killed")
        self._changed.clear()
        await asyncio.wait_for(self._changed.wait(), _SETTLE_S)

    async def ask(self, expression: str) -> Any:
        """Return the JSON that an expression of the observer gives."""
        text = await self._call(expression, self._world)
        return json.loads(text) if text else None

    # --- input ------------------------------------------------------------------------

    def begin(self) -> None:
        """An input is about to be sent: what the browser tells from here on is its."""
        self._stayed = self.interceptor.stayed
        self.interceptor.returning = False

    async def click(self, x: float, y: float) -> None:
        """Press and release the mouse; both acknowledged."""
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        await asyncio.gather(
            self._cdp.send("Input.dispatchMouseEvent", {"type": "mousePressed", **at}),
            self._cdp.send("Input.dispatchMouseEvent", {"type": "mouseReleased", **at}),
        )

    async def write(self, text: str) -> None:
        """Put text into the focused control in the place of what it holds.

        Keys and text go through one queue, so they need not wait for each other; the click that
        gave the focus is hit-tested first and must be acknowledged before.
        """
        press = {
            "type": "rawKeyDown",
            "key": "a",
            "code": "KeyA",
            "windowsVirtualKeyCode": 65,
            "modifiers": 2,
            "commands": ["selectAll"],
        }
        await asyncio.gather(
            self._cdp.send("Input.dispatchKeyEvent", press),
            self._cdp.send("Input.dispatchKeyEvent", {**press, "type": "keyUp"}),
            self._insert_text(text),
        )

    async def _insert_text(self, text: str) -> None:
        """Insert text where the selection is; nothing is put in by deleting it."""
        if text:
            await self._cdp.send("Input.insertText", {"text": text})
        else:
            await self.press("Backspace")

    async def press(self, key: str) -> None:
        """Press and release a key."""
        code, number, text = _KEYS[key]
        stroke = {"key": " " if key == "Space" else key, "code": code}
        stroke["windowsVirtualKeyCode"] = number  # type: ignore[assignment]
        down = {**stroke, "type": "keyDown" if text else "rawKeyDown"}
        if text:
            down["text"] = text
        await asyncio.gather(
            self._cdp.send("Input.dispatchKeyEvent", down),
            self._cdp.send("Input.dispatchKeyEvent", {**stroke, "type": "keyUp"}),
        )

    async def scroll(self, pixels: int) -> None:
        """Scroll the window at once."""
        await self._call(f"scrollBy({{top: {pixels}, behavior: 'instant'}}); '1'", self._world)

    async def go(self, url: str) -> None:
        """Navigate to an address and wait until its document is there."""
        world, stayed = self._world, self.interceptor.stayed
        reply = await self._cdp.send("Page.navigate", {"url": url})
        if reply.get("errorText") or "loaderId" not in reply:
            return  # nothing was replaced
        while self._world == world and self.interceptor.stayed == stayed:
            await self._change()

    async def back(self) -> bool:
        """Go one entry back; False if there is none."""
        history = await self._cdp.send("Page.getNavigationHistory")
        index = history["currentIndex"] - 1
        if index < 1:  # entry 0 is the blank page the tab began with
            return False
        world, stayed = self._world, self.interceptor.stayed
        self._changed.clear()
        entry = history["entries"][index]["id"]
        self.interceptor.returning = True
        await self._cdp.send("Page.navigateToHistoryEntry", {"entryId": entry})
        if self._world == world and self.interceptor.stayed == stayed:
            await asyncio.wait_for(self._changed.wait(), _SETTLE_S)
        return True

    # --- evidence ---------------------------------------------------------------------

    async def picture(self) -> bytes:
        """Return a JPEG of the window."""
        shot: bytes = await self._page.screenshot(type="jpeg", quality=_JPEG_QUALITY)
        return shot

    async def snapshot(self) -> bytes:
        """Return the DOM as the browser holds it, without what names this process."""
        shot = await self._cdp.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
        for document in shot["documents"]:
            document.pop("frameId", None)
            document["nodes"].pop("backendNodeId", None)
            document.pop("layout", None)
            document.pop("textBoxes", None)
        kept = {"documents": shot["documents"], "strings": _nameless(shot["strings"])}
        return canonical_json(kept)

    async def tree(self) -> bytes:
        """Return the accessibility tree: role, name, and the places of the children."""
        return canonical_json(await accessible_nodes(self._cdp))


def _nameless(strings: list[str]) -> list[str]:
    """Return the string table without frame ids: 32 hex digits that no two share."""
    digits = set("0123456789ABCDEF")
    return ["" if len(text) == 32 and set(text) <= digits else text for text in strings]


Nodes = list[list[Any]]  # [role, name, places of the children]


async def accessible_nodes(channel: Channel) -> Nodes:
    """Return the nodes of the open page; a frame's are below the node of its element.

    A node that the browser ignores has no role; it stays, since its children may count. Space in
    names is single and within: browsers differ in what they add around it.
    """
    shown = await channel.send("Page.getFrameTree", {})
    return await _nodes(channel, shown["frameTree"])


async def _nodes(channel: Channel, frame: Mapping[str, Any]) -> Nodes:
    asked = {"frameId": frame["frame"]["id"]}
    reply = await channel.send("Accessibility.getFullAXTree", asked)
    places = {node["nodeId"]: i for i, node in enumerate(reply["nodes"])}
    nodes: Nodes = [
        [
            "" if node.get("ignored") else node.get("role", {}).get("value", ""),
            " ".join(node.get("name", {}).get("value", "").split()),
            [places[c] for c in node.get("childIds", ()) if c in places],
        ]
        for node in reply["nodes"]
    ]
    elements = {n.get("backendDOMNodeId"): i for i, n in enumerate(reply["nodes"])}
    for inner in frame.get("childFrames", ()):
        asked = {"frameId": inner["frame"]["id"]}
        owner = await channel.send("DOM.getFrameOwner", asked)
        below, first = await _nodes(channel, inner), len(nodes)
        holder = elements.get(owner["backendNodeId"])
        if holder is not None:
            nodes[holder][2].append(first)
        nodes += [[role, name, [first + c for c in kids]] for role, name, kids in below]
    return nodes
