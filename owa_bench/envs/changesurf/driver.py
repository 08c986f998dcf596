"""What a driver of pages is: one act in, what the page shows then out.

    open       a fresh browser context on a site
    act        one input, then settle and observe: one look, no sleeping
    picture, snapshot, tree    evidence of the page as it stands
    close      leave nothing behind

`PlaywrightDriver` (playwright_driver.py) is the one there is. A second one must give
equal observation digests.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from starlette.types import ASGIApp

from owa_bench.envs.changesurf.reading import Observed

Op = Literal["click", "type", "select", "press", "scroll", "back", "goto", "look"]
Refusal = Literal["", "gone", "hidden", "covered", "disabled", "unfit", "outside"]


class Act(NamedTuple):
    """One input. `text` is what to type, choose, press, or the address to go to."""

    op: Op
    ref: int = 0
    text: str = ""


class Seen(NamedTuple):
    """What came of an act: the page then, and why nothing was done if so.

    `navigated` tells that a new document was loaded, `note` what else happened (a
    download, an address that was refused), `untrusted` how many clicks and submits no
    input made.
    """

    page: Observed
    refusal: Refusal = ""
    reason: str = ""
    navigated: bool = False
    note: str = ""
    untrusted: int = 0


class Exchange(NamedTuple):
    """One request of the browser and its answer, as the interceptor saw them."""

    method: str
    url: str
    kind: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    denied: bool = False


class Place(NamedTuple):
    """What a driver opens: the app, its hosts, where to begin, and the window."""

    app: ASGIApp
    hosts: frozenset[str]
    start: str
    width: int = 1280
    height: int = 720


class Driver(Protocol):
    """Drives one page at a time."""

    def open(self, place: Place) -> Seen:
        """Open a fresh context on a site and go to its start."""

    def serve(self, app: ASGIApp) -> None:
        """Answer by another app from now on."""

    def act(self, act: Act) -> Seen:
        """Do one input and return the page once it has settled."""

    def exchanges(self) -> Sequence[Exchange]:
        """Return every request since `open`, in order."""

    def picture(self) -> bytes:
        """Return a JPEG of the window."""

    def snapshot(self) -> bytes:
        """Return the DOM with its layout-free attributes, as canonical JSON."""

    def tree(self) -> bytes:
        """Return the accessibility tree, roles and names, as canonical JSON."""

    def facts(self) -> Mapping[str, Any]:
        """Return what drives: binary, version, flags."""

    def close(self) -> None:
        """Close the context; may be called twice."""
