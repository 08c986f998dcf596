"""`owa-bench doctor`: what this machine has, what it lacks, and how to get it."""

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from typing import Annotated, NamedTuple

import typer

from owa_bench import __version__
from owa_bench.cli.console import OUT, as_json, check_line, data_folder
from owa_bench.errors import FieldError, MissingPartError

_PROGRAMS = {
    "git": ("witness --git", "sudo apt-get install git"),
    "bwrap": ("sandboxes for untrusted agents", "sudo apt-get install bubblewrap"),
    "openssl": ("checking a signature without us", "sudo apt-get install openssl"),
}
_EXTRAS = {
    "rl": ("torch", "stable_baselines3", "sb3_contrib"),
    "mcp": ("mcp",),
    "browser": ("playwright",),
    "measures": ("sklearn", "numba"),
    "minari": ("minari", "pyarrow"),
    "tables": ("pyarrow",),
}
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


class Part(NamedTuple):
    """One thing the machine has or lacks."""

    name: str
    present: bool
    needed: bool
    detail: str


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(doctor)


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what this machine has, what it lacks, and the line that installs it.

    Exits 3 if something is lacking that every run needs. Changes nothing.

      owa-bench doctor

      owa-bench doctor --json
    """
    parts = (*_core(), *_programs(), *_extras())
    if json:
        as_json([part._asdict() for part in parts])
    else:
        for part in parts:
            check_line(
                part.name,
                ok=part.present or not part.needed,
                detail=part.detail,
                skipped=not part.present,
            )
        OUT.print("Lines marked -- are needed by some commands only.")
    if any(part.needed and not part.present for part in parts):
        raise typer.Exit(3)


def _core() -> tuple[Part, ...]:
    """Return what every run needs."""
    version = ".".join(map(str, sys.version_info[:3]))
    folder = data_folder()
    place = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    cores = len(os.sched_getaffinity(0))
    return (
        Part(
            "owa_bench", True, True, f"{__version__}, Python {version}, {cores} cores"
        ),
        Part(
            "data folder",
            writable,
            True,
            f"{folder} {'' if writable else 'cannot be written '}"
            "(OWA_BENCH_HOME names another)",
        ),
    )


def _programs() -> tuple[Part, ...]:
    """Return the programs that some commands use."""
    found = []
    for name, (use, install) in _PROGRAMS.items():
        path = shutil.which(name)
        detail = path or f"for {use}; install with: {install}"
        found.append(Part(name, path is not None, False, detail))
    return (*found, _browser())


def _browser() -> Part:
    """Return the browser that ChangeSurf would drive."""
    from owa_bench.envs.changesurf.browser.host import find_browser, require

    try:
        require()
        path = find_browser()
    except (FieldError, MissingPartError) as error:
        return Part("a browser", False, False, f"for ChangeSurf; {error}")
    return Part("a browser", True, False, path or "Playwright's own Chromium")


def _extras() -> tuple[Part, ...]:
    """Return the extras, each with the line that installs it."""
    found = []
    for extra, modules in _EXTRAS.items():
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        detail = (
            f"lacks {', '.join(missing)}; pip install 'owa_bench[{extra}]'"
            if missing
            else ", ".join(f"{name} {_version(name)}" for name in modules)
        )
        found.append(Part(f"[{extra}]", not missing, False, detail))
    return tuple(found)


def _version(module: str) -> str:
    name = _DISTRIBUTIONS.get(module, module.replace("_", "-"))
    return importlib.metadata.version(name)
