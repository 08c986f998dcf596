"""Hosting of agents: where their code runs, and what of this machine it sees there."""

import os
import shlex
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from owa_bench.errors import UsageError
from owa_bench.hosting.fork_template import SandboxName
from owa_bench.hosting.gateway.options import environment_secrets
from owa_bench.hosting.images import image_fault, is_image
from owa_bench.hosting.spec import Origin
from owa_bench.records.plan import HARNESS, OWN_CODE, PRIVATE, SHARED
from owa_bench.sandbox import root_image, views
from owa_bench.sandbox.namespaces import SandboxView
from owa_bench.sandbox.root_image import ImageReference
from owa_bench.sandbox.views import FIX, binds, joined, system_view

Isolation = Literal["auto", "namespaces", "docker", "none"]
SANDBOXED: Final = "sandboxed"
IN_PROCESS: Final = "in-process"
UNSANDBOXED: Final = "unsandboxed"
REMOTE: Final = "remote"
HOSTINGS: Mapping[str, str] = {
    SANDBOXED: "in namespaces of its own: no files, network or processes but its own",
    "docker": "in a container without network",
    UNSANDBOXED: "in a process that sees the files and network of this machine",
    IN_PROCESS: "in the harness' own process",
    "local address": "behind an address of this machine, unsandboxed",
    REMOTE: "behind an address of another machine, without memory_dir",
    "client": "outside, through `owa-bench serve`, unsandboxed",
    "person": "a person at this machine, through `owa-bench play`",
    "reader": "outside, through the files of `owa-bench play --folder`, unsandboxed",
    HARNESS: "a control policy, part of the harness",
}
# Of agents that the harness neither starts nor ends.
OUTLASTING: Final = frozenset({"local address", REMOTE, "client"})
MEMORY: Final = "/memory"
_SCRATCH: Final = "/tmp"  # noqa: S108  the sandbox's own


def hosting_of(origin: Origin, isolation: Isolation, *, in_process: bool) -> str:
    """Return how an agent is hosted, for the plan.

    Args:
        origin: The agent.
        isolation: What the run asks for; "auto" is a sandbox where one can be had.
        in_process: Whether agents share the harness' process.
    Returns: A key of HOSTINGS.
    Raises: UsageError: What is asked for cannot be had here.
    """
    if origin.kind == "policy":
        return HARNESS
    if origin.outside:
        return origin.kind
    if origin.kind == "http":
        return "local address" if _is_local(origin.target) else REMOTE
    if is_image(origin.target):
        if isolation not in ("auto", "docker"):
            raise UsageError(f"An image must be played with `--sandbox docker`, got {isolation}.")
        isolation = "docker"
    if in_process and origin.kind != "command":
        return IN_PROCESS
    if isolation == "none":
        return UNSANDBOXED
    hosting = "docker" if isolation == "docker" else SANDBOXED
    if fault := hosting_fault(origin, hosting):
        if isolation == "auto":
            return UNSANDBOXED
        raise UsageError(f"`--sandbox {isolation}` cannot be had here: {fault}. {FIX}.")
    return hosting


def hosting_fault(origin: Origin, hosting: str) -> str:
    """Return why an agent cannot be hosted so on this machine.

    Args:
        origin: The agent.
        hosting: A key of HOSTINGS.
    Returns: The reason, "" if it can.
    """
    sandbox = sandbox_of(origin, hosting)
    if sandbox == "docker":
        held = is_image(origin.target)
        return image_fault(origin.target) if held else views.docker_fault()
    if sandbox == "bubblewrap":
        return views.bubblewrap_fault()
    return views.namespaces_fault() if sandbox == "namespaces" else ""


def require_hosting(origin: Origin, hosting: str) -> None:
    """Refuse to play an agent otherwise than the plan says.

    Args:
        origin: The agent.
        hosting: What the plan says.
    Raises: UsageError: This machine cannot host it so; with the fix.
    """
    if fault := hosting_fault(origin, hosting):
        raise UsageError(
            f"The plan says that the agent {origin.target!r} is {hosting}, and here "
            f"that cannot be had: {fault}. {FIX}; a plan of its own is needed for that."
        )
    if hosting == "docker":
        views.make_image()


def root_of(hosting: str, *, own_code: bool = False) -> str:
    """Return what root the sandboxes of an arm get where its episodes must be apart.

    Args:
        hosting: A key of HOSTINGS.
        own_code: Whether all of the arm's code is this package's, so that nobody wrote into it that
            it reads what another sandbox did.
    Returns: PRIVATE, OWN_CODE, or "shared: " and why; "" for what no sandbox of this machine holds.
    """
    if hosting == "docker":
        return f"{SHARED}: containers of an image have its files in common"
    if hosting != SANDBOXED:
        return ""
    if own_code:
        return OWN_CODE
    fault = root_image.private_root_fault()
    return f"{SHARED}: {fault}" if fault else PRIVATE


def require_root(root: str) -> None:
    """Refuse to play an arm in another root than the plan says.

    Args:
        root: What the plan says.
    Raises: UsageError: It says private, and this machine cannot.
    """
    if root == PRIVATE and (fault := root_image.private_root_fault()):
        raise UsageError(
            "The plan says that every sitting and seat has a private root, and here "
            f"that cannot be had: {fault}. A plan of its own is needed for that."
        )


def image_of(origins: Iterable[Origin], hidden: Iterable[str]) -> ImageReference:
    """Return the image that private roots of some agents are made from.

    Args:
        origins: The agents.
        hidden: Folders that they must not see.
    """
    code = [source for each in origins for source, _ in binds(code_paths(each))]
    return root_image.make_image(code, hidden)


def sandbox_of(origin: Origin, hosting: str, root: str = "") -> SandboxName:
    """Return what holds the agent's process under a hosting.

    Args:
        origin: The agent; a command line is a program that starts cold.
        hosting: A key of HOSTINGS.
        root: As the plan has it.
    Returns: The sandbox; namespaces alone can have a private root.
    """
    if root == PRIVATE:
        return "namespaces"
    if hosting == "docker":
        return "docker"
    if hosting != SANDBOXED:
        return "none"
    return "bubblewrap" if origin.kind == "command" else "namespaces"


def _is_local(url: str) -> bool:
    """Return whether an address belongs to this machine: one that can be bound here."""
    host = urlsplit(url).hostname or ""
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, address in addresses:
        try:
            with socket.socket(family, kind) as probe:
                probe.bind(address)
        except OSError:
            continue
        return True
    return False


# --- what an agent sees ---------------------------------------------------------------


def agent_view(
    origin: Origin, sandbox: SandboxName, memory: str, hidden: tuple[str, ...]
) -> SandboxView:
    """Return what an agent sees.

    Args:
        origin: The agent.
        sandbox: What holds its process.
        memory: Its folder on this machine, "" if it has none.
        hidden: Folders that it must not see, wherever they lie.
    Returns: The view; without a sandbox the harness' environment but for secrets, and the agent's
        folder.
    """
    place = origin.folders[0] if origin.folders else ""
    if sandbox == "none":
        known = environment_secrets(os.environ)
        plain = tuple(each for each in os.environ.items() if f"env:{each[0]}" not in known)
        return SandboxView(environment=plain, folder=place or ".")
    own = SandboxView(
        read_only=binds(code_paths(origin)),
        writable=((memory, MEMORY),) if memory else (),
        hidden=tuple(os.path.realpath(path) for path in hidden),
    )
    if is_image(origin.target):
        return own._replace(environment=(("HOME", _SCRATCH),), folder=_SCRATCH)
    view = joined(system_view(), own._replace(folder=_SCRATCH))
    shown = origin.kind == "command" and any(
        Path(place).is_relative_to(bound) or Path(bound).is_relative_to(place)
        for _, bound in view.read_only
    )
    return view._replace(folder=place) if shown else view


def code_paths(origin: Origin) -> list[str]:
    """Return the paths an agent's code is read from, besides what is installed.

    That is the folder of its file; for a command line the working folder, the folder of its
    program, and the files that it names elsewhere.
    """
    if is_image(origin.target):
        return []
    if origin.kind == "command":
        place, *started = origin.folders
        words = shlex.split(origin.target)
        files = [path for word in words if (path := Path(place, word)).is_file()]
        program = shutil.which(words[0]) or os.path.join(place, words[0])
        return [
            *_folder(Path(place), files),
            *map(str, files),
            *(f for p in (program, *started) for f in _program_folders(Path(p))),
        ]
    if origin.kind == "model":
        return [origin.target]
    if origin.kind == "object":
        return _module_folder(origin)
    if origin.kind == "file":
        path = Path(origin.target)
        return _folder(path.parent, [path])
    return []


def _module_folder(origin: Origin) -> list[str]:
    """Return the package of a module, or the folder of one that is in no package."""
    top = origin.target.partition(":")[0].partition(".")[0]
    for folder in map(Path, origin.folders):
        if (folder / top).is_dir():
            return [str(folder / top)]
        if (folder / f"{top}.py").is_file():
            return _folder(folder, [folder / f"{top}.py"])
    return []


def _folder(folder: Path, files: list[Path]) -> list[str]:
    """Return a folder of code, or its files alone where it is the user's whole home."""
    home = Path.home().resolve()
    if home.is_relative_to(folder.resolve()):
        return [str(path) for path in files]
    return [str(folder)]


def _program_folders(program: Path) -> list[str]:
    """Return the folders of a program and of what it links to, or their prefixes."""
    folders: list[str] = []
    for path in {program, program.resolve()}:
        prefix = path.parent.parent if path.parent.name == "bin" else path.parent
        folders += _folder(prefix, [path])
    return folders
