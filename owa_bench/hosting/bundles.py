"""Bundles of submitted agents: a tar of plain files, played by `owa-bench evaluate`.

    agent.toml   agent = "mine.py"     # or module:Name, sb3:FILE.zip, python mine.py
                 name = "our-model"    # optional; the arm is called our-model-DIGEST
    mine.py ..   whatever it needs beside the packages of the harness

Only files and folders with plain names inside the bundle are taken; a bundle may hold a limited
number of files and bytes. What `agent` names must lie in the bundle: an evaluator plays nothing of
the harness, and nobody outside, under a submitter's name.
"""

import importlib.machinery
import os
import re
import shlex
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple

import msgspec

from owa_bench.canonical import sha256
from owa_bench.errors import AgentSpecError, CheckFailure, FieldError
from owa_bench.records.toml import TomlRecord, decode

BUNDLE = "bundle:"  # before the digest, in the plan
MANIFEST = "agent.toml"
MOST_FILES = 10_000
MOST_BYTES = 1 << 30  # unpacked
# How an agent of outside may be called: a word that no path or page breaks on.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
BundleForm = Literal["file", "model", "object", "command"]
_NAME_DIGITS = 12
_OWN = (os.getuid(), os.getgid())
_OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_FORMS = (
    "must be something that lies in the bundle: FILE.py, module:Name, sb3:FILE.zip, or "
    "a command that names one of its files; registered agents, control policies, "
    "addresses, clients, people and files outside are not played from a bundle"
)


class AgentManifest(TomlRecord, frozen=True):
    """The manifest: what of the bundle is played, and how its maker calls it."""

    agent: str
    name: str = "bundle"

    def __post_init__(self) -> None:
        """Refuse a name that no arm may have."""
        if not NAME.fullmatch(self.name):
            rule = "must be at most 64 letters, digits, `.`, `_` and `-`"
            raise FieldError("name", self.name, rule)


class AgentBundle(NamedTuple):
    """An unpacked bundle: its folder, its manifest, and the SHA-256 of its file."""

    folder: Path
    manifest: AgentManifest
    digest: str

    @property
    def spec(self) -> str:
        """How the plan names its agent."""
        return f"{BUNDLE}{self.digest}"

    @property
    def arm(self) -> str:
        """How its arm is called: the maker's name for it, and whose files it is."""
        return f"{self.manifest.name}-{self.digest[:_NAME_DIGITS]}"


def unpack(path: Path, home: Path) -> AgentBundle:
    """Unpack a bundle beside a data folder, which its agent does not see, once.

    Args:
        path: The tar, compressed or not.
        home: The data folder; the bundle goes to `HOME-bundles/DIGEST`.
    Returns: The bundle; what its manifest names lies in it.
    Raises:
        FieldError: It is no file, or its manifest is missing or names something that the bundle
            does not hold; nothing stays unpacked.
        CheckFailure: It holds what no bundle may hold, or too much.
    """
    try:
        digest = sha256(path.read_bytes())
    except OSError as error:
        raise FieldError("bundle", str(path), f"must be a tar file ({error})") from error
    folder = home.with_name(f"{home.name}-bundles") / digest
    try:
        with tarfile.open(path) as archive:
            members = _plain_members(archive)
            folder.mkdir(parents=True, exist_ok=True)
            # Python below 3.11.4 has no filters: nothing is left to filter.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder, members)  # noqa: S202
    except (tarfile.TarError, EOFError, OSError) as error:
        why = str(error).partition("\n")[0].rstrip(":")
        raise CheckFailure(f"{path} is no bundle, which is a tar: {why}.") from error
    try:
        return read_bundle(folder, f"{BUNDLE}{digest}")
    except (FieldError, AgentSpecError):
        shutil.rmtree(folder)
        raise


def read_bundle(folder: Path, spec: str) -> AgentBundle:
    """Return the bundle that was unpacked into a folder.

    Args:
        folder: Whose name is the digest of the bundle.
        spec: How the plan names its agent.
    Raises:
        AgentSpecError: The folder holds another bundle, or none.
        FieldError: The manifest is missing, or names what the bundle does not hold.
    """
    digest = spec.removeprefix(BUNDLE)
    if folder.name != digest:
        raise AgentSpecError(
            f"A bundle is played by `owa-bench evaluate BUNDLE --out RUN`, got {spec!r}"
            f" in {folder}."
        )
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise FieldError("bundle", str(folder), f'must hold {MANIFEST} with agent = "FILE.py"')
    try:
        decoded = decode(manifest.read_bytes(), AgentManifest, FieldError)
    except FieldError as fault:
        rule = f"{fault.rule} (in {MANIFEST} of the bundle)"
        raise FieldError(fault.field, fault.value, rule) from fault
    agent = decoded.agent.strip()
    if rule := _misfit(agent, folder.resolve()):
        raise FieldError(f"{MANIFEST}: agent", agent, rule)
    decoded = msgspec.structs.replace(decoded, agent=agent)
    return AgentBundle(folder, decoded, digest)


def _plain_members(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return the members of an archive, every one a plain file or folder of ours."""
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in archive:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise CheckFailure(f"A bundle must stay in its folder, got {member.name!r}.")
        if not (member.isreg() or member.isdir()):
            raise CheckFailure(
                f"A bundle must hold files and folders alone: {member.name!r} is a "
                "link, a device or a pipe."
            )
        member.uid, member.gid, member.uname, member.gname = *_OWN, "", ""
        member.mode = 0o755 if member.isdir() else 0o644 | member.mode & 0o111
        members.append(member)
        size += member.size
        if len(members) > MOST_FILES or size > MOST_BYTES:
            raise CheckFailure(
                f"A bundle must hold at most {MOST_FILES:,} files and {MOST_BYTES:,} bytes."
            )
    return members


# --- what of a bundle is played -------------------------------------------------------
# Nothing here looks into a registry: a plug-in may register any name.


def is_object(agent: str) -> bool:
    """Return whether an agent reads module:Name."""
    return _OBJECT.fullmatch(agent) is not None


def form_of(agent: str) -> BundleForm:
    """Return the form of a manifest's agent; a command is whatever is no other."""
    if " " not in agent and agent.endswith((".py", ".zip")):
        return "file" if agent.endswith(".py") else "model"
    return "object" if is_object(agent) else "command"


def _misfit(agent: str, folder: Path) -> str:
    """Return the rule that a manifest's agent breaks, "" where it lies in the bundle.

    Args:
        agent: The manifest's, without blanks around it.
        folder: Of the bundle, without links.
    """
    match form_of(agent):
        case "file":
            return "" if _holds(folder, agent) else _FORMS
        case "model":
            return "" if _holds(folder, agent.removeprefix("sb3:")) else _FORMS
        case "object":
            return _module_misfit(agent.partition(":")[0], folder)
    return _command_misfit(agent.removeprefix("clone:"), folder)


def _holds(folder: Path, name: str) -> bool:
    """Return whether a folder holds a file of this name."""
    path = (folder / name).resolve()
    return path.is_file() and path.is_relative_to(folder)


def _module_misfit(module: str, folder: Path) -> str:
    """Return the rule that a module breaks: it is the bundle's, under a free name."""
    top = module.partition(".")[0]
    if not any((folder / name).exists() for name in (top, f"{top}.py")):
        return _FORMS
    here = {"", os.getcwd()}
    installed = [path for path in sys.path if path not in here]
    found = importlib.machinery.PathFinder.find_spec(top, installed)
    elsewhere = top in sys.stdlib_module_names or found
    return "must not have the name of an installed package" if elsewhere else ""


def _command_misfit(line: str, folder: Path) -> str:
    """Return the rule that a command line breaks: it names files of the bundle."""
    try:
        program, *words = shlex.split(line)
    except ValueError as error:
        return f"must be quoted as in a shell ({error})"
    named = [word for word in (program, *words) if _holds(folder, word)]
    if not named or not _is_program(program, folder):
        return _FORMS
    outside = list(_outside(words, folder))
    return f"must name no file outside the bundle, got {outside[0]}" if outside else ""


def _is_program(program: str, folder: Path) -> bool:
    """Return whether a program is the bundle's own, or one that this machine has."""
    found = shutil.which(program)
    installed = found is not None and found == shutil.which(Path(program).name)
    return _holds(folder, program) or installed or program == sys.executable


def _outside(words: list[str], folder: Path) -> Iterator[str]:
    """Yield the words that name something of this machine outside a bundle."""
    for word in words:
        path = folder / word
        if path.exists() and not path.resolve().is_relative_to(folder):
            yield word
