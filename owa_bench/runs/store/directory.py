"""Guards of a run directory, and the provenance of what its plan rests on.

May this plan be played in this directory, by this process alone, on this code? A plan pins the
digest of the code that draws its worlds, the agents' fingerprints, the installed packages, and the
protocol and price card.
"""

import ast
import contextlib
import functools
import hashlib
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import owa_bench
from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import RunDirectoryError, UsageError
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Suite
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PrunedPacks, pack_paths, read_pruned
from owa_bench.records.plan import SOURCE_RULE, Plan, SuiteEntry
from owa_bench.runs.store import disk
from owa_bench.runs.store.files import part_of, plan_digest, write_whole

_LOCK_PATIENCE_S = 3.0
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")
_NAME = "owa_bench"
_PACKAGE = Path(owa_bench.__file__).parent
# What suites and operators may draw worlds with, beside their own folder.
_SHARED = ("drift", "repositories", "seeding.py", "canonical.py")
_FOLDER_FILES = ("suite.py", "__init__.py")


# --- guards ---------------------------------------------------------------------------


def refuse_unwritable_name(out: Path) -> None:
    """Refuse a name whose bytes are no text: records could not name the run."""
    try:
        str(out.absolute()).encode()
    except UnicodeEncodeError as error:
        raise RunDirectoryError(
            f"A run directory must have a name in UTF-8, got {os.fsencode(out)!r}."
        ) from error


def refuse_other_content(layout: RunLayout, *, resume: bool) -> None:
    """Refuse a directory that holds something else, or a run unless resumed.

    Args:
        layout: The directory.
        resume: Whether a run in it goes on.
    Raises:
        UsageError: It holds a run that is not resumed.
        RunDirectoryError: It holds no run to resume, or something else.
    """
    if layout.plan.exists():
        if not resume:
            raise UsageError(f"{layout.root} holds a run; resume it, or choose another directory.")
        return
    if resume:
        raise RunDirectoryError(f"{layout.root} is no run to resume: it has no plan.json.")
    if layout.root.exists() and not layout.root.is_dir():
        raise RunDirectoryError(
            f"{layout.root} must be a folder, and it is a file; choose another name."
        )
    if layout.root.exists() and not _is_free(layout):
        raise RunDirectoryError(
            f"{layout.root} must be empty or a run, and it is neither (no plan.json); "
            "choose another directory."
        )


def _is_free(layout: RunLayout) -> bool:
    """Return whether a folder holds nothing but what a killed plan writer left.

    The plan itself is written last, so without it nothing was begun.
    """
    left = {layout.protocol, layout.price_card, layout.plan_envelope}
    parts = {part_of(path) for path in (*left, layout.plan)}
    return set(layout.root.iterdir()) <= left | parts


def make_folder(out: Path) -> None:
    """Make a run directory; RunDirectoryError where that cannot be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(
            f"{out} cannot be made: {error.strerror}. Choose another directory."
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold a run directory against a second player; the lock leaves no file.

    Workers of a killed run let go of it within moments, which are waited for.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + _LOCK_PATIENCE_S
        while not disk.lock(descriptor, folder, wait=False):
            if time.monotonic() > until:
                raise UsageError(f"{folder} is being played by another process.")
            time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_differences(fields: Sequence[str], layout: RunLayout) -> None:
    """Refuse to go on with a plan that differs from what would be played now.

    Args:
        fields: In what it differs.
        layout: The run directory.
    Raises: UsageError: There is a difference.
    """
    if fields:
        raise UsageError(
            f"The plan in {layout.root} differs from what would be played now in: "
            f"{', '.join(fields)}. A run goes on only under its own plan; start "
            "another directory."
        )


def refuse_other_terms(layout: RunLayout, plan: Plan) -> None:
    """Refuse a run whose protocol or price card is not the one its plan fixed.

    Args:
        layout: The run directory.
        plan: Its plan.
    Raises: RunDirectoryError: A file is missing or another.
    """
    fixed = {layout.protocol: plan.protocol_digest, layout.price_card: plan.price_digest}
    for path, digest in fixed.items():
        if not path.is_file() or sha256(path.read_bytes()) != digest:
            raise RunDirectoryError(
                f"{path} must be the file that the plan fixed (SHA-256 {digest}): put "
                "it back, or start another directory."
            )


def drifted(plan: Plan, folder: Path | None) -> tuple[str, ...]:
    """Return what is no longer as the plan has it: agents, suites, packages.

    Args:
        plan: The plan.
        folder: Where relative paths of agents start.
    Returns: Names of what differs, in words.
    """
    changed = []
    for arm in plan.arms:
        agent = load_agent(arm.agent, folder=folder)
        if agent.fingerprint != arm.fingerprint:
            changed.append(f"agent {arm.agent}")
    changed += explained(plan)
    if environment() != plan.environment:
        changed.append("environment")
    return tuple(changed)


def explained(plan: Plan) -> list[str]:
    """Return a line per suite whose code is not known to be the plan's."""
    return [f"suite {name} ({why})" for name, why in other_code(plan.suites).items()]


def refuse_revealed(layout: RunLayout) -> None:
    """Refuse to play worlds that an agent could already know."""
    if layout.reveal.exists():
        raise UsageError(
            f"{layout.root} is revealed: its seeds are public, so nothing more is "
            "played under its plan. Start another directory."
        )


# --- provenance -----------------------------------------------------------------------


def source_digest(suite: Suite) -> str:
    """Return the digest of the code that draws a suite's worlds and drifts them.

    Equal code has equal digests wherever it is installed; what other suites have of their own is
    not in it.
    """
    digest = hashlib.sha256()
    for name, path in sorted(sources(suite).items()):
        digest.update(f"{name}|".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def sources(suite: Suite) -> dict[str, Path]:
    """Return the files that a suite's worlds come from, by a name free of places.

    The suite's own folder (or file) with its templates and scripts, what drift is, the operators of
    its domain, other packages' and other suites' too, and what of seeding, hashing and repositories
    those import.
    """
    files = _files(_home_of(type(suite).__module__)) | _files(_PACKAGE / "drift")
    for name, operator in discovery.find("operators").items():
        if name.startswith(f"{suite.card.domain}/"):
            files |= _files(_suite_of(operator.plugin.__module__))
    waiting = list(files.values())
    while waiting:
        for path in _shared_imports(waiting.pop()):
            name = _name(path)
            if name not in files:
                files[name] = path
                waiting.append(path)
    return files


def other_code(suites: Iterable[SuiteEntry]) -> dict[str, str]:
    """Return the suites whose code is not known to be the plan's, and why."""
    reasons = {}
    for entry in suites:
        if entry.source_rule != SOURCE_RULE:
            reasons[entry.name] = (
                "its digest was taken by the rule of another version of OWA-Bench, "
                "so whether its code has changed cannot be told"
            )
        elif source_digest(discovery.get("suites", entry.name)) != entry.source_digest:
            reasons[entry.name] = "its code has changed since the plan was made"
    return reasons


@functools.cache
def environment() -> tuple[tuple[str, str], ...]:
    """Return python, platform and the version of every package this one rests on.

    The packages of installed drift operators, which every nested drift of their domain draws on,
    and what those rest on are among them. Read once: what is installed while a process runs, that
    process does not use.
    """
    packages = {_NAME, *discovery.installed_operators().values()}
    versions = {name: version for p in packages for name, version in _closure(p)}
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
            package = distribution(known)
        except PackageNotFoundError:
            continue
        yield known, package.version
        for line in package.requires or ():
            match = _REQUIREMENT.match(line)
            if match and "extra ==" not in line:
                waiting.append(match[1])


def _home_of(module: str) -> Path:
    """Return the folder of a plug-in, or its file where it shares a folder."""
    loaded: Any = sys.modules[module]
    path = Path(loaded.__file__)
    return path.parent if path.name in _FOLDER_FILES else path


def _suite_of(operator: str) -> Path:
    """Return the folder of the suite that an operator's module belongs to, or its home."""
    name, _, _ = operator.partition(".operators.")
    inside = operator.startswith(f"{_NAME}.envs.")
    return _PACKAGE.joinpath(*name.split(".")[1:]) if inside else _home_of(operator)


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


# Fields of a syntax node that hold statements, or nodes that do.
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def _shared_imports(path: Path) -> Iterator[Path]:
    """Yield the files of `_SHARED` that a Python file imports."""
    if path.suffix != ".py":
        return
    for module in _imports(path.read_bytes()):
        yield from _shared_files(_PACKAGE, module)


@functools.cache
def _shared_files(top: Path, module: str) -> tuple[Path, ...]:
    """Return the files of `_SHARED` that the name of a module in `top` stands for."""
    package, _, rest = module.partition(".")
    if package != _NAME:
        return ()
    place = top.joinpath(*rest.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return tuple(f for f in files if f.is_file() and _name(f).startswith(_SHARED))


@functools.cache
def _imports(source: bytes) -> frozenset[str]:
    """Return every module that a source could import, names taken as modules too.

    Kept by content: every plan and every report reads the same files again.
    """
    modules: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        # Imports are statements: no expression holds one.
        for block in _BLOCKS:
            waiting += getattr(node, block, ())
    return frozenset(modules)


# --- pruning --------------------------------------------------------------------------


class Pruned(NamedTuple):
    """How many packs were dropped, and their bytes."""

    packs: int
    size: int


def prune(layout: RunLayout) -> Pruned:
    """Drop the transcripts of a run; `verify` says so from then on and still passes.

    The names of the packs are written down first, so a kill in between loses nothing.

    Args:
        layout: The run directory.
    Returns: What was dropped.
    Raises:
        RunDirectoryError: It is no run directory.
        UsageError: It is being played, or it holds no transcripts.
    """
    plan_digest(layout)
    with locked(layout.root):
        paths = tuple(pack_paths(layout))
        if not paths:
            raise UsageError(f"{layout.root} holds no transcripts to prune.")
        sizes = {path.name: path.stat().st_size for path in paths}
        packs = PrunedPacks(packs=read_pruned(layout) | sizes)
        write_whole(layout.pruned, msgspec.json.encode(packs))
        for path in paths:
            path.unlink()
    return Pruned(len(paths), sum(sizes.values()))
