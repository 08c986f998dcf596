"""One browser process per Python process, on an event loop of a thread of its own.

Sessions lease it: the first lease starts it, the last one given back closes it and makes sure by
process id that nothing is left. Scale by one process per core: many contexts in one browser were
measured to be no faster.
"""

import asyncio
import atexit
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import TimeoutError as LateError
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from owa_bench.errors import FieldError, InfrastructureFailure, MissingPartError, extra

T = TypeVar("T")

INSTALL = (
    "apt-get install chromium-headless-shell  (Debian), or: "
    "playwright install --only-shell chromium; "
    "or name one that is here with OWA_CHROMIUM=/path/to/chromium"
)
SETTING = "OWA_CHROMIUM"  # names the browser's binary, before any on the PATH
# The shell first: half the memory and up to 2.8 times the rate of the whole browser.
NAMES = (
    *("chromium-headless-shell", "chrome-headless-shell", "chromium"),
    *("chromium-browser", "google-chrome-stable", "google-chrome"),
)
# A later --disable-features replaces Playwright's own list, so this is the union of
# Playwright 1.65's and the seven that cost steps per second here (measured).
_DISABLED = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,"
    "HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    "SpareRendererForSitePerProcess,RenderDocument,BackForwardCache,Translate,"
    "DeferRendererTasksAfterInput,PrioritizeCompositingAfterInput"
)
FLAGS = (
    "--disable-back-forward-cache",
    "--disable-ipc-flooding-protection",
    f"--disable-features={_DISABLED}",
    # Nothing but the interceptor answers: no name and no address resolves.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--hide-scrollbars",
    "--font-render-hinting=none",
)
_LIBRARY = re.compile(r"lib[\w+.-]+\.so[.\d]*")
_PACKAGES = {"libatomic.so.1": "libatomic1", "libstdc++.so.6": "libstdc++6"}
_PATIENCE_S = 60.0
_REAP_S = 5.0


def find_browser() -> str | None:
    """Return the path of an installed browser, None if Playwright must have its own.

    Raises: FieldError: the setting names nothing that runs.
    """
    named = os.environ.get(SETTING)
    if named:
        found = shutil.which(named)
        if found is None:
            raise FieldError(SETTING, named, "must name a Chromium that can be run")
        return found
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def require(executable: str | None = None) -> None:
    """Refuse a machine that lacks Playwright, a browser or what Playwright runs on.

    Raises: MissingPartError: a part is missing; with the line that installs it.
    """
    if importlib.util.find_spec("playwright") is None:
        raise MissingPartError("Playwright", extra("browser"))
    if not (executable or find_browser() or _has_own()):
        raise MissingPartError("A Chromium browser", INSTALL)
    _require_node()


def _require_node() -> None:
    """Refuse a machine on which the node that Playwright brings does not start."""
    try:
        from playwright._impl._driver import compute_driver_executable
        from playwright._impl._errors import Error
    except ImportError:
        return  # another Playwright: launching it says what is wrong
    try:
        node = str(compute_driver_executable()[0])
        done = subprocess.run(  # noqa: S603  Playwright's own program
            [node, "--version"], capture_output=True, check=False, text=True
        )
        words = done.stderr.strip() or f"exit code {done.returncode}"
        if not done.returncode:
            return
    except (Error, OSError) as error:
        words = str(error)
    library = _LIBRARY.search(words)
    if library is None:
        way = "pip install --force-reinstall playwright"
        part = f"A node that Playwright can start ({words.splitlines()[0]})"
        raise MissingPartError(part, way)
    name = library[0]
    package = _PACKAGES.get(name, f"the package that holds {name}")
    part = f"{name}, which the node of Playwright needs,"
    raise MissingPartError(part, f"apt-get install {package}  (Debian)")


def _has_own() -> bool:
    """Return whether Playwright has installed a Chromium for itself."""
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    folder = Path(named) if named else Path.home() / ".cache" / "ms-playwright"
    return any(folder.glob("chromium*/INSTALLATION_COMPLETE"))


class BrowserHost:
    """A running browser. `run` plays a coroutine on its loop from any thread."""

    def __init__(self, executable: str | None = None) -> None:
        try:
            import playwright  # noqa: F401
        except ImportError as error:
            part, line = "Playwright", extra("browser")
            raise MissingPartError(part, line) from error
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="owa-browser", daemon=True
        )
        self._thread.start()
        self._started: Any = None
        self.executable = executable or find_browser()
        self.browser: Any = None
        self.pid = 0
        self.version = ""
        self.dead = False
        self._hangs = False  # given up while its process may run
        try:
            self.run(self._launch())
        except BaseException:
            self._stop_loop()
            raise

    def run(self, work: Coroutine[Any, Any, T], patience_s: float = 0.0) -> T:
        """Run a coroutine on the browser's loop.

        A browser that does not answer in time is given up: the next lease starts a new one, and
        closing this one ends its process.

        Args:
            work: the coroutine.
            patience_s: how long to wait, in seconds; 0 for the default.
        Returns: Its result.
        Raises: InfrastructureFailure: the browser died or did not answer in time.
        """
        patience_s = patience_s or _PATIENCE_S
        from playwright.async_api import Error

        if self._loop.is_closed():
            work.close()
            raise InfrastructureFailure("the browser has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(patience_s)
        except LateError as error:
            future.cancel()
            self.dead = self._hangs = True
            raise InfrastructureFailure(
                f"the browser did not answer within {patience_s:g} s"
            ) from error
        except Error as error:
            words = str(error).splitlines()[0]
            raise InfrastructureFailure(f"the browser failed: {words}") from error

    def close(self) -> None:
        """Close the browser and see it gone; may be called twice."""
        if self._loop.is_closed():
            return
        if self._hangs and self.pid:  # Playwright would wait for it to close by itself
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(InfrastructureFailure):
            self.run(self._shut(), _REAP_S)
        self._stop_loop()
        _reap(self.pid)

    def facts(self) -> Mapping[str, Any]:
        """Return which browser this is."""
        return {
            "binary": os.path.basename(self.executable or "playwright's own"),
            "version": self.version,
            "playwright": version("playwright"),
            "flags": list(FLAGS),
        }

    async def _launch(self) -> None:
        from playwright.async_api import Error, async_playwright

        try:
            self._started = await async_playwright().start()
        except Exception:
            _require_node()  # says what is missing, where that is why
            raise
        try:
            self.browser = await self._started.chromium.launch(
                executable_path=self.executable,
                headless=True,
                args=list(FLAGS),
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as error:
            await self._started.stop()
            if self.executable is None:
                raise MissingPartError("A Chromium browser", INSTALL) from error
            raise
        self.version = self.browser.version
        self.browser.on("disconnected", self._on_death)
        session = await self.browser.new_browser_cdp_session()
        listing = await session.send("SystemInfo.getProcessInfo")
        self.pid = next(
            int(entry["id"]) for entry in listing["processInfo"] if entry["type"] == "browser"
        )
        await session.detach()

    def _on_death(self, *_: Any) -> None:
        self.dead, self._hangs = True, False

    async def _shut(self) -> None:
        if self.browser is not None and not self.dead:
            await self.browser.close()
        await self._started.stop()

    def _stop_loop(self) -> None:
        async def drain() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)

        with contextlib.suppress(LateError):
            asyncio.run_coroutine_threadsafe(drain(), self._loop).result(_REAP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_REAP_S)
        self._loop.close()


def _reap(pid: int) -> None:
    """Wait until a process is gone; kill it if it does not go."""
    deadline = time.monotonic() + _REAP_S
    while pid and _is_alive(pid):
        if time.monotonic() > deadline:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.005)


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; one that waits to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class Lease:
    """The right to use this process' browser until it is given back."""

    _lock = threading.RLock()
    _host: BrowserHost | None = None
    _owner = 0  # the process that started it: a fork must not use its parent's
    _count = 0

    def __init__(self, executable: str | None = None) -> None:
        with Lease._lock:
            if Lease._owner != os.getpid():
                Lease._host, Lease._count, Lease._owner = None, 0, os.getpid()
            old = Lease._host
            if old is not None and old.dead:
                old.close()
                Lease._host = None
            if Lease._host is None:
                Lease._host = BrowserHost(executable)
            Lease._count += 1
            self.host: BrowserHost = Lease._host
            self._held = True

    def give_back(self) -> None:
        """Give the browser back; the last one to do so closes it."""
        with Lease._lock:
            if not self._held or Lease._owner != os.getpid():
                return
            self._held = False
            Lease._count -= 1
            if Lease._count <= 0 and Lease._host is not None:
                Lease._host.close()
                Lease._host, Lease._count = None, 0

    @classmethod
    def close_all(cls) -> None:
        """Close the browser whoever holds it: the process ends."""
        with cls._lock:
            if cls._host is not None and cls._owner == os.getpid():
                cls._host.close()
                cls._host, cls._count = None, 0


atexit.register(Lease.close_all)
