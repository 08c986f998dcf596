"""Agent specs: a registered agent, a class, a file, a command, an image, an address.

Nothing of an agent is imported here: its code first runs in a process of its own. The fingerprint
is the digest of the code that can be seen from outside.

`seats:ROLE=SPEC;..;*=SPEC` seats an agent in each role that is named, `*` in others. Options stand
after a registered agent's name (`spec_options.py`). `clone:COMMAND` is a command that works in a
git clone of its project, under a driver. `bundle:DIGEST` is what a submitted bundle holds
(`bundles.py`). A spec stands in the plan, which is public: a password has no place in it.
"""

import ast
import importlib.machinery
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

import owa_bench
from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import AgentSpecError, UnknownNameError
from owa_bench.hosting.bundles import BUNDLE, NAME, form_of, is_object, read_bundle
from owa_bench.hosting.images import image_name, is_image
from owa_bench.hosting.spec_options import NAME_OPTION, parse_options
from owa_bench.interfaces import AgentCard, Needs, View
from owa_bench.records.plan import PERSON, READER, SCRIPTED_PERSON

OriginKind = Literal[
    "registry", "policy", "object", "file", "command", "http", "client", "person", "reader", "model"
]
CLIENT = "client:"
CLONE = "clone:"  # a command in a git clone of its project
SEATS = "seats:"
_REST = "*"  # the roles that no other seat of a mixed crew names
# Agents that play from outside: kind of origin by the prefix of the spec.
_OUTSIDE_KINDS: Mapping[str, OriginKind] = {
    CLIENT: "client",
    PERSON: "person",
    SCRIPTED_PERSON: "person",
    READER: "reader",
}
OUTSIDE = tuple(_OUTSIDE_KINDS)
MODEL = "sb3:"
_POLICY = "policy:"
_AGENTS = "owa_bench.agents"
_SOLVERS = "owa_bench.agents.solvers"
_DRIVER = Path(owa_bench.__file__).parent / "bridges/project_clone.py"
_WITH_CLONES = ("projforge",)
_OWN_NAME = re.compile(r"[A-Za-z][\w.-]{0,39}", re.ASCII)
_NAMED = re.compile(rf"({_OWN_NAME.pattern})=(.+)", re.ASCII | re.DOTALL)
_FORMS = (
    "NAME[:key=value,..], module:Name, FILE.py, a trained sb3:FILE.zip, a command, "
    "clone:COMMAND, http://HOST/PATH or an image sha256:HEX"
)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent comes from, in a form that crosses a process border.

    `folders` are where its process looks for modules besides the installed ones.
    """

    kind: OriginKind
    target: str
    folders: tuple[str, ...] = ()

    @property
    def outside(self) -> bool:
        """Whether it plays from outside: the harness neither starts nor ends it."""
        return self.kind in _OUTSIDE_KINDS.values()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHandle:
    """An agent that can be played: its name, what it is made of and what it needs.

    `view` is how it sees a tool suite, `hosting` where its code runs (`hosting.py`). `seats` are
    the agents of a mixed crew by role; its own origin is that of `*`.
    """

    spec: str
    name: str
    origin: Origin
    fingerprint: str
    needs: Needs = "nothing"
    suites: tuple[str, ...] = ()
    native: bool | tuple[str, ...] = False
    package: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    view: View = "language"
    hosting: str = ""
    seats: Mapping[str, "AgentHandle"] = field(default_factory=dict)

    @property
    def members(self) -> tuple["AgentHandle", ...]:
        """The agents that are started: its own, of a mixed crew those of its seats."""
        return tuple(self.seats.values()) or (self,)

    def of(self, seat: str) -> "AgentHandle":
        """Return the agent of a seat."""
        return self.seats.get(seat) or self.seats.get(_REST) or self

    @property
    def is_own_code(self) -> bool:
        """Whether all that plays was registered by this package."""
        return all(
            member.origin.kind == "registry" and not member.package for member in self.members
        )

    @property
    def asks_model(self) -> bool:
        """Whether a registered agent asks a model in its first act."""
        if self.origin.kind != "registry":
            return False
        card: AgentCard = discovery.find("agents")[self.origin.target].plugin
        return card.asks_model

    @property
    def is_served(self) -> bool:
        """Whether what plays can be another tomorrow, as far as its spec says."""
        outside = ("http", "client")
        return any(one.asks_model or one.origin.kind in outside for one in self.members)

    @property
    def screenshots(self) -> bool:
        """Whether it wants to see the window, by its option of that name."""
        return self.options.get("screenshots") == "true"


def load_agent(text: str, *, folder: Path | None = None) -> AgentHandle:
    """Return the agent that a spec names.

    Args:
        text: The spec, as given to `--agent`; before it may stand NAME=, by which the agent is
            called in this run.
        folder: Where relative paths start; None for the working directory.
    Returns: The agent; none of its code has run.
    Raises:
        UnknownNameError: A bare word that no registry holds.
        AgentSpecError: Anything else that cannot be played.
    """
    place = folder or Path.cwd()
    spec = text.strip()
    if own := _NAMED.fullmatch(spec):
        return replace(_load(own[2], place), name=own[1])
    return _load(spec, place)


def _load(spec: str, place: Path) -> AgentHandle:
    """Return the agent of a spec without a name before it."""
    if spec.startswith(BUNDLE):
        return _bundled(spec, place)
    if spec.startswith(("http://", "https://")) or is_image(spec):
        return _service(spec)
    name, _, options = spec.partition(":")
    if spec.startswith(MODEL) or spec.endswith(".zip"):
        return _model(spec, place)
    if name in discovery.find("agents") and (name == spec or "=" in options):
        return _registered(spec, name, options)
    if spec.startswith(_POLICY):
        return _policy(spec)
    if spec.startswith((CLONE, SEATS, *OUTSIDE)):
        return _prefixed(spec, place)
    if is_object(spec):
        return _object(spec, place)
    if spec.endswith(".py") and (place / spec).is_file():
        return _file(spec, place)
    if " " in spec or "/" in spec:
        return _command(spec, place)
    raise _unplayable(spec)


def _unplayable(spec: str) -> AgentSpecError | UnknownNameError:
    """Return the error of a spec of no known form."""
    name, _, options = spec.partition(":")
    if name.endswith(".py") and options:
        return AgentSpecError(
            f"Only a registered agent takes options, a file takes none; got {spec!r}. "
            "How an agent is registered: docs/add-an-agent.md."
        )
    if spec.endswith(".py") or not spec:
        return AgentSpecError(f"An agent is {_FORMS}; no such file, got {spec!r}.")
    fix = "`owa-bench list agents` says what each of them does."
    return UnknownNameError("agent", spec, discovery.find("agents"), fix)


def _prefixed(spec: str, place: Path) -> AgentHandle:
    if spec.startswith(CLONE):
        return _command(spec, place)
    return _mixed_crew(spec, place) if spec.startswith(SEATS) else _outside(spec)


def _handle(
    spec: str, name: str, origin: Origin, fingerprint: str = "", **more: Any
) -> AgentHandle:
    """Return a handle; without a fingerprint nothing of the agent's code is seen."""
    return AgentHandle(
        spec=spec, name=name, origin=origin, fingerprint=fingerprint or _digest(spec), **more
    )


def _registered(spec: str, name: str, given: str) -> AgentHandle:
    entry = discovery.find("agents")[name]
    card: AgentCard = entry.plugin
    options = parse_options(card, given)
    return _handle(
        spec,
        options.pop(NAME_OPTION, card.name),
        Origin(kind="policy" if card.needs == "privilege" else "registry", target=card.name),
        _digest(spec, *_sources_of(card)),
        needs=card.needs,
        suites=card.suites,
        native=card.native,
        package=entry.package,
        options=options,
    )


def _policy(spec: str) -> AgentHandle:
    name = spec.removeprefix(_POLICY)
    suites = discovery.find("suites").values()
    policies = {policy for entry in suites for policy in entry.plugin.policies}
    if name not in policies:
        raise UnknownNameError("control policy", name, policies)
    return _handle(spec, name, Origin(kind="policy", target=name), needs="privilege")


def _outside(spec: str) -> AgentHandle:
    """Return an agent that plays from outside: a client, a person or a reader."""
    prefix = next(prefix for prefix in OUTSIDE if spec.startswith(prefix))
    kind = _OUTSIDE_KINDS[prefix]
    name = spec.removeprefix(prefix)
    if not NAME.fullmatch(name):
        raise AgentSpecError(f"A {kind}'s name is letters, digits, `.`, `_` and `-`, got {name!r}.")
    return _handle(spec, name, Origin(kind=kind, target=name))


def _object(spec: str, place: Path) -> AgentHandle:
    module, _, name = spec.partition(":")
    source = _module_file(module, place)
    if source is None:
        raise AgentSpecError(f"An agent is {_FORMS}; no module `{module}` was found, got {spec!r}.")
    origin = Origin(kind="object", target=spec, folders=(str(place), *sys.path))
    return _handle(spec, name, origin, _digest(spec, source))


def _file(spec: str, place: Path) -> AgentHandle:
    """Return the agent of a file, called as its card says; nothing of it is run here."""
    path = (place / spec).resolve()
    origin = Origin(kind="file", target=str(path), folders=(str(path.parent),))
    return _handle(spec, _name_on_card(path) or path.stem, origin, _digest(path.name, path))


def _name_on_card(path: Path) -> str:
    """Return the name that a file's `AGENT = AgentCard(name="..")` says, "" if it says none."""
    try:
        lines = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # loading it says so
        return ""
    for line in lines:
        match line:
            case (
                ast.Assign(targets=[ast.Name(id="AGENT")], value=ast.Call(keywords=fields))
                | ast.AnnAssign(target=ast.Name(id="AGENT"), value=ast.Call(keywords=fields))
            ):
                for field in fields:
                    if field.arg == "name" and isinstance(field.value, ast.Constant):
                        name = str(field.value.value)
                        return name if _OWN_NAME.fullmatch(name) else ""
    return ""


def _bundled(spec: str, place: Path) -> AgentHandle:
    """Return the agent that lies in a bundle, whatever any registry holds."""
    bundle = read_bundle(place, spec)
    makers = {"file": _file, "model": _model, "object": _object, "command": _command}
    agent = bundle.manifest.agent
    handle = makers[form_of(agent)](agent, place)
    return replace(handle, spec=spec, name=bundle.arm, fingerprint=bundle.digest)


def _model(spec: str, place: Path) -> AgentHandle:
    """Return a trained policy; nothing of it is loaded here.

    A name says little where every training writes `model.zip`, so its folder's is taken then.
    """
    path = (place / spec.removeprefix(MODEL).removeprefix("path=")).resolve()
    if not path.is_file():
        raise AgentSpecError(
            "A trained agent is sb3:FILE.zip, as `owa-bench train` writes it; no such "
            f"file, got {spec!r}."
        )
    name = path.parent.name if path.stem == "model" else path.stem
    origin = Origin(kind="model", target=str(path))
    return _handle(spec, name, origin, _digest(path.name, path), view="vector")


def _command(spec: str, place: Path) -> AgentHandle:
    line, clone = spec.removeprefix(CLONE), spec.startswith(CLONE)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise AgentSpecError(
            f"An agent's command line must be quoted as in a shell: {error}."
        ) from error
    if not words or not (shutil.which(words[0]) or (place / words[0]).is_file()):
        missing = words[0] if words else ""
        raise AgentSpecError(f"An agent is {_FORMS}; no program or file `{missing}`, got {spec!r}.")
    name = Path(words[-1] if len(words) > 1 else words[0]).stem
    files = [place / word for word in words if (place / word).is_file()]
    origin = Origin(kind="command", target=line, folders=(str(place),))
    if clone:
        program = shutil.which(words[0]) or str(place / words[0])
        driver = shlex.join([sys.executable, str(_DRIVER)])
        origin = Origin(kind="command", target=f"{driver} {line}", folders=(str(place), program))
        name = Path(files[-1] if files else words[0]).stem
        files.append(_DRIVER)
    suites = _WITH_CLONES if clone else ()
    return _handle(spec, name, origin, _digest(spec, *files), suites=suites)


def _service(spec: str) -> AgentHandle:
    if is_image(spec):
        return _handle(spec, image_name(spec), Origin(kind="command", target=spec))
    try:
        parts = urlsplit(spec)
        port = parts.port  # read where it is asked for
    except ValueError as error:
        rule = "An agent's address must be http://HOST[:PORT]/PATH"
        raise AgentSpecError(f"{rule}, got {spec}: {error}.") from error
    if not parts.hostname or parts.username or parts.password:
        shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise AgentSpecError(
            "An agent's address needs a host and no user or password (the plan that "
            f"names it is public), got {shown}."
        )
    name = f"{parts.hostname}-{port}" if port else parts.hostname
    return _handle(spec, name, Origin(kind="http", target=spec))


def _mixed_crew(spec: str, place: Path) -> AgentHandle:
    """Return a crew whose seats are played by different agents."""
    pairs = [part.partition("=") for part in spec.removeprefix(SEATS).split(";")]
    roles = [role for role, _, _ in pairs]
    if _REST not in roles or len(set(roles)) < len(roles) or "" in roles:
        raise AgentSpecError(
            f"`--seat` must read ROLE=AGENT, once a role and once `{_REST}` for the "
            "others (such as --seat lead=fifo --seat '*'=fifo); got "
            f"{', '.join(roles)}."
        )
    seats = {role: load_agent(text, folder=place) for role, _, text in pairs}
    for role, agent in seats.items():
        outside = agent.origin.outside or agent.seats
        if outside or agent.needs != "nothing" or agent.view != "language":
            raise AgentSpecError(
                f"`--seat {role}` must be an agent of the text view that the harness "
                f"starts, without script and oracle, got {agent.spec!r}."
            )
    rest = seats[_REST]
    others = "+".join(f"{r}={a.name}" for r, a in seats.items() if r != _REST)
    limits = [set(agent.suites) for agent in seats.values() if agent.suites]
    return _handle(
        spec,
        f"{rest.name}+{others}" if others else rest.name,
        rest.origin,
        _digest("|".join(f"{r}={seats[r].fingerprint}" for r in sorted(seats))),
        suites=tuple(sorted(set.intersection(*limits))) if limits else (),
        seats=seats,
    )


def source_files(origin: Origin) -> tuple[Path, ...]:
    """Return the Python files of an agent outside the registry, nothing imported."""
    if origin.kind == "file":
        return (Path(origin.target),)
    if origin.kind != "object":
        return ()
    module = origin.target.partition(":")[0]
    file = _module_file(module, Path(origin.folders[0]))
    return () if file is None else tuple(_files(file))


# --- fingerprints ---------------------------------------------------------------------


def _digest(spec: str, *sources: Path) -> str:
    """Return the digest of a spec and of the Python or program files behind it."""
    parts = [sha256(spec.encode())]
    for source in sources:
        parts += [sha256(path.read_bytes()) for path in _files(source)]
    return sha256("|".join(parts).encode())


def _files(source: Path) -> Iterator[Path]:
    """Yield a file itself, or every Python file of a package in order of path."""
    yield from sorted(source.rglob("*.py")) if source.is_dir() else (source,)


def _sources_of(card: AgentCard) -> tuple[Path, ...]:
    """Return what a registered agent is made of.

    One of this package is its own file or folder and the skills; another package's is that whole
    package.
    """
    name = getattr(card.make, "__module__", "") if card.make else ""
    parts = name.split(".")
    own = name.startswith(f"{_AGENTS}.")
    names = [".".join(parts[:3]), _SOLVERS] if own else parts[:1]
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
