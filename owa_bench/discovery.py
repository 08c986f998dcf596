"""The folder is the registry: plug-ins are found, never listed.

Every entry of a plug-in folder exports one upper-case name; a module of several small
agents exports them as a tuple, AGENTS. Third-party packages add
theirs through the entry points `owa_bench.{suites,operators,agents,axes}`.
"""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from owa_bench.errors import UnknownNameError, UsageError

_FOLDERS = {
    "suites": ("owa_bench.envs", "suite", "SUITE"),
    "operators": ("owa_bench.drift", "", "OPERATOR"),
    "agents": ("owa_bench.agents", "", "AGENT"),
    "axes": ("owa_bench.scoring.axes", "", "AXIS"),
    "gates": ("owa_bench.scoring.gates", "", "GATE"),
}
KINDS = tuple(_FOLDERS)


class PluginEntry(NamedTuple):
    """A plug-in and where it came from; `package` is empty for our own."""

    name: str
    plugin: Any
    package: str


@cache
def find(kind: str) -> dict[str, PluginEntry]:
    """Return every plug-in of `kind` by name, ours first, then other packages'.

    Operators are keyed "<domain>/<name>", everything else by its own name.
    """
    folder, module, export = _FOLDERS[kind]
    found: dict[str, PluginEntry] = {}
    for name in _modules(folder, module, depth=2 if kind == "operators" else 1):
        for plugin in _exports(name, export):
            key = _key(kind, plugin, name)
            found[key] = PluginEntry(key, plugin, "")
    for point in entry_points(group=f"owa_bench.{kind}"):
        found.setdefault(point.name, _third_party(point))
    return dict(sorted(found.items()))


def get(kind: str, name: str) -> Any:
    """Return the plug-in `name`; UnknownNameError with the nearest name if none."""
    found = find(kind)
    if name not in found:
        raise UnknownNameError(kind.removesuffix("s"), name, found)
    return found[name].plugin


def _third_party(point: EntryPoint) -> PluginEntry:
    package = point.dist.name if point.dist else point.value
    try:
        return PluginEntry(point.name, point.load(), package)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise UsageError(
            f"The plug-in `{point.name}` of the package {package} cannot be loaded: "
            f"{type(error).__name__}: {error}. Mend or uninstall that package."
        ) from error


def _exports(module: str, name: str) -> tuple[Any, ...]:
    """Return what a module exports: one plug-in (AGENT) or a tuple of them (AGENTS)."""
    scope = vars(importlib.import_module(module))
    return (scope[name],) if name in scope else tuple(scope.get(f"{name}S", ()))


def _modules(folder: str, module: str, *, depth: int) -> list[str]:
    """Return the dotted names of the plug-in modules below `folder`."""
    package = importlib.import_module(folder)
    names: list[str] = []
    for entry in pkgutil.iter_modules(package.__path__):
        if entry.name.startswith("_"):
            continue
        name = f"{folder}.{entry.name}"
        if entry.ispkg and depth > 1:
            names += _modules(name, module, depth=depth - 1)
        else:
            names.append(f"{name}.{module}" if module and entry.ispkg else name)
    return names


def _key(kind: str, plugin: Any, module: str) -> str:
    """Return the registry key of a plug-in of ours."""
    if kind == "suites":
        return str(plugin.card.name)
    if kind == "operators":
        return f"{module.split('.')[2]}/{plugin.name}"
    return str(plugin.name)
