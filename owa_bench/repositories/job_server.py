"""Job server: the program inside the sandbox that runs a project's code.

It imports pip and pytest once and forks a child for each job, so a job starts warm. After each job
every process but its own is killed and the writable places are emptied; no child can read its
memory. One line of JSON a job in, one out. It runs alone: only the standard library, and pip and
pytest where they are bound.

Source: docs/projforge.md#the-sandbox
"""

import contextlib
import ctypes
import gc
import http.client
import importlib
import io
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import warnings
from collections.abc import Callable
from typing import Any

PLACES = ("/work", "/tmp", "/dev/shm")  # noqa: S108  the sandbox's own
LONGEST = 1 << 22  # bytes of an answer
TEXT = 4000  # characters of output
_GARBAGE = 100_000  # objects between collections in a job
_NOT_DUMPABLE = (4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
_IMPORTED = (  # what a job would import each time; a pip without one of them is slower
    *("pytest", "unittest", "pdb", "faulthandler", "readline", "_pytest._argcomplete"),
    *("pip._internal.cli.main", "pip._internal.commands.install"),
    *("pip._internal.cli.main_parser", "pip._internal.metadata.importlib"),
    *("pip._internal.operations.install.wheel", "compileall", "xmlrpc.client"),
    *("pip._internal.resolution.resolvelib.resolver", "pip._vendor.truststore"),
    *("pip._vendor.distro", "pip._vendor.distlib.scripts", "netrc", "filecmp"),
    *("pip._vendor.rich._emoji_codes", "encodings.ascii", "encodings.cp437"),
    *("pip._internal.cli.autocompletion", "pip._vendor.pygments.lexers.python"),
    *("pip._vendor.pygments.unistring", "pip._internal.cli.index_command"),
    *("uvicorn.protocols.http.h11_impl", "uvicorn.loops.asyncio"),
    *("uvicorn.lifespan.off", "starlette.applications", "starlette.routing"),
)


def answers(job: dict[str, Any]) -> dict[str, Any]:
    """Return what the product in a folder answers to cases, or why it cannot."""
    sys.path[:0] = [job["tree"], *job["site"]]
    if job["strict"]:
        warnings.simplefilter("error")
    results: list[list[Any]] = []
    try:
        handle = importlib.import_module("app.service").handle
    except BaseException as error:  # noqa: BLE001  the product's own
        return {"import": f"{type(error).__name__}: {error}"[:TEXT], "results": []}
    for endpoint, request in job["cases"]:
        try:
            results.append([json.loads(json.dumps(handle(endpoint, request))), ""])
        except BaseException as error:  # noqa: BLE001  the product's own
            results.append([None, f"{type(error).__name__}: {error}"[:200]])
    return {"import": "", "results": results}


def tests(job: dict[str, Any]) -> dict[str, Any]:
    """Return the exit code and the output of pytest over a folder.

    To `explain` failures takes time, so it is asked of a second run.
    """
    import pytest

    sys.path[:0] = [job["tree"], *job["site"]]
    os.chdir(job["tree"])
    flags = ["-W", "error"] if job["strict"] else []
    flags += [] if job["explain"] else ["--assert=plain"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *flags, "tests"])
    return {"exit": int(code), "text": text.getvalue()[-TEXT:]}


def install(job: dict[str, Any]) -> dict[str, Any]:
    """Return the exit code and the output of pip, or of the program that is named."""
    if job["program"]:
        line = [job["program"], "pip", *job["argv"]]
        environment = {"RAYON_NUM_THREADS": "1", "TOKIO_WORKER_THREADS": "1"}
        done = subprocess.run(line, capture_output=True, text=True, env=environment)  # noqa: S603
        return {"exit": done.returncode, "text": (done.stdout + done.stderr)[-TEXT:]}
    from pip._internal.cli.main import main

    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = main(job["argv"])
    return {"exit": int(code), "text": text.getvalue()[-TEXT:]}


def replies(job: dict[str, Any]) -> dict[str, Any]:
    """Return status and body of requests to the product behind an ASGI server.

    The product is in a process of its own, which ends with the job.
    """
    # Named, else asyncio lets small answers wait: 40 ms each.
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(8)
    port = listening.getsockname()[1]
    server = os.fork()
    if server == 0:
        os.closerange(3, listening.fileno())  # the pipe of the result
        os.closerange(listening.fileno() + 1, 256)
        serve(job, listening)
        os._exit(0)
    listening.close()
    line = http.client.HTTPConnection("127.0.0.1", port)
    line.connect()
    line.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    given: list[list[Any]] = []
    for endpoint, request in job["cases"]:
        path = "/" + urllib.parse.quote(endpoint, safe="")
        line.request("POST", path, json.dumps(request))
        reply = line.getresponse()
        body = reply.read(LONGEST)
        try:
            given.append([reply.status, json.loads(body)])
        except ValueError:
            given.append([reply.status, body.decode(errors="replace")[:TEXT]])
    os.kill(server, signal.SIGKILL)
    return {"replies": given}


def serve(job: dict[str, Any], listening: socket.socket) -> None:
    """Serve the product of a job as an ASGI application, until the process ends.

    Args:
        job: The tree, the site and whether warnings are errors.
        listening: The socket.
    """
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    sys.path[:0] = [job["tree"], *job["site"]]
    if job["strict"]:
        warnings.simplefilter("error", DeprecationWarning)
    fault, handle = "", None
    try:
        handle = importlib.import_module("app.service").handle
    except BaseException as error:  # noqa: BLE001  the product's own
        fault = f"does not start: {type(error).__name__}: {error}"[:TEXT]

    async def endpoint(request: Any) -> Any:
        if handle is None:
            return JSONResponse(fault, 503)
        try:
            body = await request.json()
            return JSONResponse(handle(request.path_params["name"], body))
        except BaseException as error:  # noqa: BLE001  the product's own
            return JSONResponse(f"{type(error).__name__}: {error}"[:200], 500)

    application = Starlette(routes=[Route("/{name}", endpoint, methods=["POST"])])
    config = uvicorn.Config(
        application,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listening])


JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "answers": answers,
    "replies": replies,
    "tests": tests,
    "install": install,
}


def forked(job: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a job in a child, None for none.

    `last` says that its places cannot be emptied: the next job needs another sandbox.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        gc.set_threshold(_GARBAGE)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        # Were both limits one, the kernel would kill without a word of why.
        resource.setrlimit(resource.RLIMIT_CPU, (job["cpu_s"], job["cpu_s"] + 1))
        data = json.dumps(JOBS[job["job"]](job)).encode()
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(sending)
    data, timed = received(receiving, job["wall_s"])
    os.close(receiving)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
        _, killed, used = os.wait4(child, 0)
        timed = timed or used.ru_utime + used.ru_stime > job["cpu_s"]
        timed = timed or killed & 0x7F == signal.SIGXCPU
    last = False
    try:
        swept()
    except (OSError, RecursionError):
        last = True
    try:
        result = json.loads(data)
    except ValueError:
        result = None
    kept = result if type(result) is dict else None
    return {"timed": timed, "result": kept, "last": last}


def received(descriptor: int, seconds: float) -> tuple[bytes, bool]:
    """Return what a pipe gives until it is closed, and whether a time was over first.

    Args:
        descriptor: Of the pipe.
        seconds: The time.
    Returns: The bytes, and that.
    """
    parts: list[bytes] = []
    until, size = time.monotonic() + seconds, 0
    while size < LONGEST:
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b"", True
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts), False


def swept() -> None:
    """End every other process and empty the writable places, the site apart.

    Raises: OSError: Something is left, such as folders too deep to be removed.
    """
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    for place in PLACES:
        with contextlib.suppress(OSError):
            os.chmod(place, 0o777)  # noqa: S103  a job may have closed it
        for entry in left_in(place):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
        if left_in(place):
            raise OSError(f"{place} cannot be emptied")


def left_in(place: str) -> list[os.DirEntry[str]]:
    """Return what is in a writable place, the site apart."""
    kept = "site" if place == "/work" else ""
    return [entry for entry in os.scandir(place) if entry.name != kept]


def main() -> None:
    """Serve jobs until the input ends; without tools they are answers alone."""
    ctypes.CDLL(None).prctl(*_NOT_DUMPABLE)
    sys.dont_write_bytecode = True
    if tools := sys.argv[1:]:
        sys.path += tools
        for name in _IMPORTED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        # Each job would read all certificates of the machine: the index is a folder.
        if commands := sys.modules.get("pip._internal.cli.index_command"):
            vars(commands)["_create_truststore_ssl_context"] = lambda: None
        for name in sys.modules["_pytest.config"].default_plugins:
            importlib.import_module(f"_pytest.{name}")
    gc.collect()
    gc.freeze()  # no child looks through what is imported
    for line in sys.stdin.buffer:
        reply = forked(json.loads(line))
        sys.stdout.buffer.write(json.dumps(reply).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
