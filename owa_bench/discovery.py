"""Registry of plug-ins: found in the plug-in folders and entry points, never listed.

An entry of a plug-in folder exports one upper-case name, or several plug-ins as a tuple of the
plural name. The operators of a suite are the decorated functions in the modules of its folder
`operators`, which names their `DOMAIN`. Third-party packages add theirs through the entry points
`owa_bench.{suites,operators,agents,axes}`.
"""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import UnknownNameError, UsageError, error_line
from owa_bench.interfaces import Operator, Suite, SuiteCard

# The folder of each kind, the module that a folder in it is, and the exported name.
_FOLDERS = {
    "suites": ("owa_bench.envs", "suite", "SUITE"),
    "operators": ("owa_bench.envs", "operators", ""),
    "agents": ("owa_bench.agents", "", "AGENT"),
    "axes": ("owa_bench.scoring.axes", "", "AXIS"),
    "gates": ("owa_bench.scoring.gates", "", "GATE"),
}
KINDS = tuple(_FOLDERS)
_SINGULAR = {
    "suites": "suite",
    "operators": "operator",
    "agents": "agent",
    "axes": "axis",
    "gates": "gate",
}
# Beside a suite of ours: its cards, made by `make golden` and compared with it by a test.
CARDS_FILE = "cards.json"

# What another package's plug-in must be, and how it becomes one.
_BASES: dict[str, tuple[type, str]] = {
    "suites": (Suite, "subclass `owa_bench.Suite`"),
    "operators": (Operator, "decorate its function with `owa_bench.operator`"),
}


class PluginEntry(NamedTuple):
    """A plug-in and where it came from; `package` is empty for our own."""

    name: str
    plugin: Any
    package: str


class CardEntry(NamedTuple):
    """A suite's card and where it came from; `package` is empty for our own."""

    card: SuiteCard
    package: str


@cache
def find(kind: str) -> dict[str, PluginEntry]:
    """Return every plug-in of `kind` by name, ours first, then other packages'.

    Operators are keyed "<domain>/<name>", everything else by its own name.
    """
    folder, module, export = _FOLDERS[kind]
    entries: dict[str, PluginEntry] = {}
    for name in _modules(folder, module):
        plugins = _exported(name, export) if export else _operators(name)
        entries |= {key: PluginEntry(key, plugin, "") for key, plugin in plugins}
    for point in entry_points(group=f"owa_bench.{kind}"):
        entries.setdefault(point.name, _third_party(kind, point))
    return dict(sorted(entries.items()))


def get(kind: str, name: str) -> Any:
    """Return a plug-in; one of ours without importing all of its kind.

    Args:
        kind: one of KINDS.
        name: its name in the registry.
    Returns: What its module or package exports.
    Raises: UnknownNameError: there is none of this name; says the nearest one.
    """
    if (plugin := _own(kind, name)) is not None:
        return plugin
    entries = find(kind)
    if name not in entries:
        fix = f"`owa-bench list {kind}` lists them all."
        raise UnknownNameError(_SINGULAR[kind], name, entries, fix)
    return entries[name].plugin


@cache
def _own(kind: str, name: str) -> Any:
    """Return a plug-in of ours, None if there is none of this name or it is an operator.

    The modules are imported one by one: the one of a like name first, then files before folders.
    """
    folder, module, export = _FOLDERS[kind]
    if not export:
        return None

    def is_unlike(place: str) -> bool:
        base = place.removeprefix(f"{folder}.").partition(".")[0]
        return not name.replace("-", "_").startswith(base)

    for place in sorted(_modules(folder, module), key=is_unlike):
        plugins = dict(_exported(place, export))
        if name in plugins:
            return plugins[name]
    return None


@cache
def cards() -> dict[str, CardEntry]:
    """Return the card of every suite by name, without importing a suite of ours."""
    folder, module, _ = _FOLDERS["suites"]
    own = [card for place in _modules(folder, module) for card in _cards_in(place)]
    entries = {card.name: CardEntry(card, "") for card in own}
    for point in entry_points(group="owa_bench.suites"):
        entry = _third_party("suites", point)
        entries.setdefault(point.name, CardEntry(entry.plugin.card, entry.package))
    return dict(sorted(entries.items()))


def _cards_in(place: str) -> list[SuiteCard]:
    """Return the cards of a suite's folder; where they were not written it is imported."""
    file = files(place.rpartition(".")[0]) / CARDS_FILE
    if file.is_file():
        return msgspec.json.decode(file.read_bytes(), type=list[SuiteCard])
    return [suite.card for _, suite in _exported(place, "SUITE")]


def domains() -> tuple[str, ...]:
    """Return the domains of all drift operators."""
    return tuple(sorted({name.partition("/")[0] for name in find("operators")}))


def installed_operators(domain: str = "") -> dict[str, str]:
    """Return the package of every operator that is not ours, by the operator's key.

    Args:
        domain: theirs; "" for every domain.
    Returns: Names of distributions by "<domain>/<name>".
    """
    return {
        key: entry.package
        for key, entry in find("operators").items()
        if entry.package and (not domain or key.startswith(f"{domain}/"))
    }


def _third_party(kind: str, point: EntryPoint) -> PluginEntry:
    package = point.dist.name if point.dist else point.value
    named = f"The plug-in `{point.name}` of the package {package}"
    try:
        plugin = point.load()
    except Exception as error:
        raise UsageError(
            f"{named} cannot be loaded: {error_line(error)}. Mend or uninstall that package."
        ) from error
    base, fix = _BASES.get(kind, (object, ""))
    if not isinstance(plugin, base):
        raise UsageError(f"{named} is no {base.__name__}, got {type(plugin).__name__}: {fix}.")
    own = getattr(getattr(plugin, "card", plugin), "name", point.name)
    if own != point.name.rpartition("/")[2]:
        raise UsageError(f"{named} calls itself `{own}`: its entry point must have the same name.")
    return PluginEntry(point.name, plugin, package)


def _modules(folder: str, module: str) -> list[str]:
    """Return the dotted names of the plug-in modules of `folder`, files before folders."""
    package = importlib.import_module(folder)
    entries = sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.ispkg)
    return [
        f"{folder}.{entry.name}.{module}" if module and entry.ispkg else f"{folder}.{entry.name}"
        for entry in entries
        if not entry.name.startswith("_")
    ]


def _exported(name: str, export: str) -> list[tuple[str, Any]]:
    """Return what a module exports, by name: AGENT, or a tuple of them as AGENTS."""
    scope = vars(importlib.import_module(name))
    plugins = (scope[export],) if export in scope else scope.get(f"{export}S", ())
    if export == "SUITE":
        return [(plugin.card.name, plugin) for plugin in plugins]
    return [(plugin.name, plugin) for plugin in plugins]


def _operators(name: str) -> list[tuple[str, Operator]]:
    """Return the operators that a suite's folder of operators defines, by key."""
    folder = importlib.import_module(name)
    modules = [importlib.import_module(each) for each in _modules(name, "")]
    return [
        (f"{folder.DOMAIN}/{value.name}", value)
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Operator) and value.__module__ == module.__name__
    ]
