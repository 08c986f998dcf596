"""What a plan rests on: the code that draws its worlds, and the installed packages."""

import ast
import hashlib
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import owa_bench
from owa_bench import discovery
from owa_bench.interfaces import Suite
from owa_bench.records.plan import SOURCE_RULE, SuiteEntry

_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")
_NAME = "owa_bench"
_PACKAGE = Path(owa_bench.__file__).parent
# What suites, operators and calendars may draw worlds with, beside their own folder.
_SHARED = ("worlds", "seeding.py", "canonical.py")
_FOLDER_FILES = ("suite.py", "__init__.py")


def source_digest(suite: Suite) -> str:
    """Return the digest of the code that draws a suite's worlds and drifts them.

    Equal code has equal digests wherever it is installed; what other suites have of
    their own is not in it.
    """
    digest = hashlib.sha256()
    for name, path in sorted(sources(suite).items()):
        digest.update(f"{name}|".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def sources(suite: Suite) -> dict[str, Path]:
    """Return the files that a suite's worlds come from, by a name free of places.

    The suite's own folder (or file) with its templates and scripts, its domain's
    operators, other packages' too, the calendars, and what of worlds, seeding and
    hashing those import.
    """
    found = _files(_home_of(type(suite).__module__))
    found |= _files(_PACKAGE / "drift" / suite.card.domain)
    found |= _files(_PACKAGE / "calendars.py")
    for name, operator in discovery.find("operators").items():
        if operator.package and name.startswith(f"{suite.card.domain}/"):
            found |= _files(_home_of(operator.plugin.__module__))
    waiting = list(found.values())
    while waiting:
        for path in _shared_imports(waiting.pop()):
            name = _name(path)
            if name not in found:
                found[name] = path
                waiting.append(path)
    return found


def other_code(suites: Iterable[SuiteEntry]) -> dict[str, str]:
    """Return the suites whose code is not known to be the plan's, and why."""
    found = {}
    for entry in suites:
        if entry.source_rule != SOURCE_RULE:
            found[entry.name] = (
                "its digest was taken by the rule of another version of OWA-Bench, "
                "so whether its code has changed cannot be told"
            )
        elif source_digest(discovery.get("suites", entry.name)) != entry.source_digest:
            found[entry.name] = "its code has changed since the plan was made"
    return found


def environment() -> tuple[tuple[str, str], ...]:
    """Return python, platform and the version of every package this one rests on."""
    versions = dict(_closure(_NAME))
    return (
        ("python", platform.python_version()),
        ("platform", f"{sys.platform}-{platform.machine()}"),
        *sorted(versions.items()),
    )


def _closure(name: str) -> Iterator[tuple[str, str]]:
    """Yield (package, version) of a package and of all it requires, extras left out."""
    waiting, seen = [name], set()
    while waiting:
        known = waiting.pop().lower().replace("_", "-")
        if known in seen:
            continue
        seen.add(known)
        try:
            found = distribution(known)
        except PackageNotFoundError:
            continue
        yield known, found.version
        for line in found.requires or ():
            match = _REQUIREMENT.match(line)
            if match and "extra ==" not in line:
                waiting.append(match[1])


def _home_of(module: str) -> Path:
    """Return the folder of a plug-in, or its file where it shares a folder."""
    loaded: Any = sys.modules[module]
    path = Path(loaded.__file__)
    return path.parent if path.name in _FOLDER_FILES else path


def _files(place: Path) -> dict[str, Path]:
    """Return a file, or all of a folder but its documents and caches, by name."""
    if not place.exists():
        return {}
    paths = place.rglob("*") if place.is_dir() else [place]
    kept = (p for p in paths if p.is_file() and not _is_aside(p.relative_to(place)))
    return {_name(path, place.parent): path for path in kept}


def _is_aside(path: Path) -> bool:
    """Return whether a file of a folder is no part of its code."""
    hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
    return hidden or path.suffix == ".md"


def _name(path: Path, top: Path | None = None) -> str:
    """Return a file's name: below this package, else below the folder `top`."""
    inside = path.is_relative_to(_PACKAGE)
    return path.relative_to(_PACKAGE if inside or top is None else top).as_posix()


def _shared_imports(path: Path) -> Iterator[Path]:
    """Yield the files of `_SHARED` that a Python file imports."""
    if path.suffix != ".py":
        return
    for module in _imports(ast.parse(path.read_bytes())):
        package, _, rest = module.partition(".")
        if package == _NAME:
            place = _PACKAGE.joinpath(*rest.split("."))
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file() and _name(file).startswith(_SHARED):
                    yield file


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield every module that a tree could import, names taken as modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
