"""Server of a live run's site: each new list is made when somebody asks for one."""

import shutil
import tempfile
import time
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.records.layout import RunLayout
from owa_bench.reports.page.site import INDEX, write_site

_KEPT = 2  # editions: a page that is open goes on reading its own
_REST = 3.0  # times as long as the last edition took, before the next


class SiteEditions:
    """Editions of a run's site in one folder; a new one where the run has grown.

    Args:
        run_dir: The run directory.
        folder: Of the editions.
    """

    def __init__(self, run_dir: Path, folder: Path) -> None:
        self._layout = RunLayout(run_dir)
        self._folder = folder
        self._stamp: tuple[int, ...] = ()
        self._number = 0
        self._next = 0.0

    def newest(self) -> int:
        """Return the number of the newest edition, made now if it is due."""
        paths = sorted(self._layout.shards.glob("*.jsonl.zst"))
        stamp = (len(paths), *(path.stat().st_size for path in paths))
        began = time.perf_counter()
        if self._number and (stamp == self._stamp or began < self._next):
            return self._number
        write_site(self._layout.root, self._folder / str(self._number + 1), live=True)
        self._number, self._stamp = self._number + 1, stamp
        self._next = time.perf_counter() + _REST * (time.perf_counter() - began)
        self._drop(self._number - _KEPT)
        return self._number

    def file(self, path: str) -> Path | None:
        """Return a file of an edition, None for what is none."""
        target = (self._folder / path).resolve()
        inside = target.is_relative_to(self._folder.resolve())
        return target if inside and target.is_file() else None

    def _drop(self, number: int) -> None:
        shutil.rmtree(self._folder / str(number), ignore_errors=True)


def site_app(editions: SiteEditions) -> Starlette:
    """Return the application: `/` leads to the newest edition, the rest are files."""

    def newest(_: HttpRequest) -> Response:
        return RedirectResponse(f"/{editions.newest()}/{INDEX}")

    def file(request: HttpRequest) -> Response:
        path = editions.file(request.path_params["path"])
        if path is None:
            return Response("There is no such file.", status_code=404)
        return FileResponse(path, headers={"X-Content-Type-Options": "nosniff"})

    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    routes = [Route("/", newest), Route("/{path:path}", file)]
    return Starlette(routes=routes, middleware=[hosts])


def serve_site(run_dir: Path, port: int) -> None:
    """Serve the site of a run to this machine until Ctrl-C.

    Args:
        run_dir: the run directory.
        port: on 127.0.0.1.
    """
    with tempfile.TemporaryDirectory() as folder:
        app = site_app(SiteEditions(run_dir, Path(folder)))
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
