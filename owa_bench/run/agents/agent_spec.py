"""What an `--agent` value names: a registered agent, a class, a file, a command, a URL.

Nothing of an agent is imported here: its code first runs in a process of its own.
The fingerprint is the digest of the code that can be seen from outside.
"""

import importlib.machinery
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import AgentSpecError, UnknownNameError
from owa_bench.interfaces import AgentCard, View
from owa_bench.run.agents import agent_options

OriginKind = Literal[
    "registry", "policy", "object", "file", "command", "http", "client", "model"
]
_OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_CLIENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_POLICY = "policy:"
_OURS = "owa_bench.agents"
_SKILLS = "owa_bench.skills"
CLIENT = "client:"
MODEL = "sb3:"
_MODEL_END = ".zip"
_FORMS = (
    "NAME[:key=value,..], module:Name, FILE.py, a trained sb3:FILE.zip, a command or "
    "http://HOST/PATH"
)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent comes from, in a form that crosses a process border.

    `folders` are where its process looks for modules besides the installed ones.
    """

    kind: OriginKind
    target: str
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHandle:
    """An agent that can be played: its name, what it is made of and what it needs.

    `view` is how it sees a tool suite.
    """

    spec: str
    name: str
    origin: Origin
    fingerprint: str
    needs: Literal["nothing", "script", "privilege"] = "nothing"
    suites: tuple[str, ...] = ()
    package: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    view: View = "language"

    @property
    def screenshots(self) -> bool:
        """Whether it wants to see the window, by its option of that name."""
        return self.options.get("screenshots") == "true"


def load(text: str, *, folder: Path | None = None) -> AgentHandle:
    """Return the agent that `text` names; relative paths start at `folder`.

    Errors: UnknownNameError for a bare word no registry holds, AgentSpecError for
    anything else that cannot be played.
    """
    place = folder or Path.cwd()
    spec = text.strip()
    if spec.startswith(("http://", "https://")):
        return _service(spec)
    name, _, given = spec.partition(":")
    if spec.startswith(MODEL) or spec.endswith(_MODEL_END):
        return _model(spec, place)
    if name in discovery.find("agents") and (name == spec or "=" in given):
        return _registered(spec, name, given)
    if spec.startswith(_POLICY):
        return _policy(spec)
    if spec.startswith(CLIENT):
        return _client(spec)
    if _OBJECT.fullmatch(spec):
        return _object(spec, place)
    if spec.endswith(".py") and (place / spec).is_file():
        return _file(spec, place)
    if " " in spec or "/" in spec:
        return _command(spec, place)
    if spec.endswith(".py") or not spec:
        raise AgentSpecError(f"An agent is {_FORMS}; no such file, got {spec!r}.")
    raise UnknownNameError("agent", spec, discovery.find("agents"))


def _registered(spec: str, name: str, given: str) -> AgentHandle:
    found = discovery.find("agents")[name]
    card: AgentCard = found.plugin
    options = agent_options.parse(card, given)
    kind: OriginKind = "policy" if card.needs == "privilege" else "registry"
    return AgentHandle(
        spec=spec,
        name=options.pop(agent_options.ARM, card.name),
        origin=Origin(kind=kind, target=card.name),
        fingerprint=_digest(spec, *_sources_of(card)),
        needs=card.needs,
        suites=card.suites,
        package=found.package,
        options=options,
    )


def _policy(spec: str) -> AgentHandle:
    name = spec.removeprefix(_POLICY)
    known = {
        policy
        for found in discovery.find("suites").values()
        for policy in found.plugin.policies
    }
    if name not in known:
        raise UnknownNameError("control policy", name, known)
    return AgentHandle(
        spec=spec,
        name=name,
        origin=Origin(kind="policy", target=name),
        fingerprint=_digest(spec),
        needs="privilege",
    )


def _client(spec: str) -> AgentHandle:
    """Return an agent that plays from outside; nothing of its code can be seen."""
    name = spec.removeprefix(CLIENT)
    if not _CLIENT_NAME.fullmatch(name):
        raise AgentSpecError(
            f"A client's name is letters, digits, `.`, `_` and `-`, got {name!r}."
        )
    return AgentHandle(
        spec=spec,
        name=name,
        origin=Origin(kind="client", target=name),
        fingerprint=_digest(spec),
    )


def _object(spec: str, place: Path) -> AgentHandle:
    module, _, name = spec.partition(":")
    source = _module_file(module, place)
    if source is None:
        raise AgentSpecError(
            f"An agent is {_FORMS}; no module `{module}` was found, got {spec!r}."
        )
    return AgentHandle(
        spec=spec,
        name=name,
        origin=Origin(kind="object", target=spec, folders=(str(place), *sys.path)),
        fingerprint=_digest(spec, source),
    )


def _file(spec: str, place: Path) -> AgentHandle:
    path = (place / spec).resolve()
    return AgentHandle(
        spec=spec,
        name=path.stem,
        origin=Origin(kind="file", target=str(path), folders=(str(path.parent),)),
        fingerprint=_digest(path.name, path),
    )


def _model(spec: str, place: Path) -> AgentHandle:
    """Return a trained policy; nothing of it is loaded here.

    A name says little where every training writes `model.zip`, so its folder's is
    taken then.
    """
    path = (place / spec.removeprefix(MODEL).removeprefix("path=")).resolve()
    if not path.is_file():
        raise AgentSpecError(
            "A trained agent is sb3:FILE.zip, as `owa-bench train` writes it; no such "
            f"file, got {spec!r}."
        )
    return AgentHandle(
        spec=spec,
        name=path.parent.name if path.stem == "model" else path.stem,
        origin=Origin(kind="model", target=str(path)),
        fingerprint=_digest(path.name, path),
        view="vector",
    )


def _command(spec: str, place: Path) -> AgentHandle:
    try:
        words = shlex.split(spec)
    except ValueError as error:
        raise AgentSpecError(
            f"An agent's command line must be quoted as in a shell: {error}."
        ) from error
    if not words or not (shutil.which(words[0]) or (place / words[0]).is_file()):
        missing = words[0] if words else ""
        raise AgentSpecError(
            f"An agent is {_FORMS}; no program or file `{missing}`, got {spec!r}."
        )
    files = (place / word for word in words)
    return AgentHandle(
        spec=spec,
        name=Path(words[-1] if len(words) > 1 else words[0]).stem,
        origin=Origin(kind="command", target=spec, folders=(str(place),)),
        fingerprint=_digest(spec, *(path for path in files if path.is_file())),
    )


def _service(spec: str) -> AgentHandle:
    try:
        parts = urlsplit(spec)
        _ = parts.port  # read where it is asked for
    except ValueError as error:
        rule = "An agent's address must be http://HOST[:PORT]/PATH"
        raise AgentSpecError(f"{rule}, got {spec}: {error}.") from error
    if not parts.hostname or parts.username or parts.password:
        shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise AgentSpecError(
            "An agent's address needs a host and no user or password (the plan that "
            f"names it is public), got {shown}."
        )
    return AgentHandle(
        spec=spec,
        name=parts.hostname,
        origin=Origin(kind="http", target=spec),
        fingerprint=_digest(spec),
    )


def _digest(spec: str, *sources: Path) -> str:
    """Return the digest of a spec and of the Python or program files behind it."""
    parts = [sha256(spec.encode())]
    for source in sources:
        parts += [sha256(path.read_bytes()) for path in _files(source)]
    return sha256("|".join(parts).encode())


def _files(source: Path) -> Iterator[Path]:
    """Yield a file itself, or every Python file of a package in order of path."""
    if source.is_dir():
        yield from sorted(source.rglob("*.py"))
    else:
        yield source


def _sources_of(card: AgentCard) -> tuple[Path, ...]:
    """Return what a registered agent is made of.

    One of ours is its own file or folder and the skills; another package's is that
    whole package.
    """
    name = getattr(card.make, "__module__", "") if card.make else ""
    parts = name.split(".")
    ours = name.startswith(f"{_OURS}.")
    names = [".".join(parts[:3]), _SKILLS] if ours else parts[:1]
    paths = (_module_file(each, Path.cwd()) for each in names if each)
    return tuple(path for path in paths if path is not None)


def _module_file(module: str, place: Path) -> Path | None:
    """Return the file of a module, or the folder of a package, without importing it."""
    search: list[str] | None = [str(place), *sys.path]
    path: Path | None = None
    parts = module.split(".")
    for depth in range(len(parts)):
        name = ".".join(parts[: depth + 1])
        spec = importlib.machinery.PathFinder.find_spec(name, search)
        if spec is None or spec.origin is None:
            return None
        path = Path(spec.origin)
        search = list(spec.submodule_search_locations or ())
    if path is not None and path.name == "__init__.py":
        return path.parent
    return path
