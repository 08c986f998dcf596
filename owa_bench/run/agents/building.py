"""Agents made from their origin, and callables and drivers dressed as agents."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench import discovery
from owa_bench.errors import AgentRaised
from owa_bench.interfaces import Agent, AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.run.agents.agent_spec import Origin

AgentFactory = Callable[[AgentConfig], Agent]


class CallableAgent:
    """A function (observation, info) -> action, played as an agent."""

    def __init__(self, function: Callable[[Any, Mapping[str, Any]], Any]) -> None:
        self._function = function

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Keep nothing: a function has no episode."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return what the function returns."""
        return self._function(observation, info)

    def close(self) -> None:
        """Release nothing."""


def agent_factory(origin: Origin) -> AgentFactory:
    """Return what makes the agent of `origin`; imports its code.

    Errors: AgentRaised if its module holds nothing playable; what the import itself
    raises passes through.
    """
    for folder in reversed(origin.folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if origin.kind == "registry":
        return _from_export(discovery.get("agents", origin.target), origin)
    if origin.kind == "object":
        module, _, name = origin.target.partition(":")
        return _from_export(_attribute(importlib.import_module(module), name), origin)
    if origin.kind == "model":
        from owa_bench.skills.trained import load_policy

        return load_policy(Path(origin.target))
    return _from_export(_only_agent(_run_file(Path(origin.target)), origin), origin)


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AgentRaised(f"module {module.__name__} holds no `{name}`")
    return getattr(module, name)


def _run_file(path: Path) -> Any:
    """Return the module of a file outside any package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AgentRaised(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _only_agent(module: Any, origin: Origin) -> Any:
    """Return the AGENT card of a file, else its one class with `act`, else `act`."""
    if hasattr(module, "AGENT"):
        return module.AGENT
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and hasattr(value, "act")
    ]
    if len(classes) == 1:
        return classes[0]
    if not classes and callable(getattr(module, "act", None)):
        return module.act
    found = ", ".join(sorted(value.__name__ for value in classes)) or "none"
    raise AgentRaised(
        f"{Path(origin.target).name} must hold an AGENT card, one class with `act`, or "
        f"a function `act`; classes with `act`: {found}"
    )


def _from_export(export: Any, origin: Origin) -> AgentFactory:
    """Return the maker behind a card, a class, an object or a function."""
    if isinstance(export, AgentCard):
        if export.make is None:
            raise AgentRaised(f"the card of `{origin.target}` makes no agent")
        return export.make
    if isinstance(export, type):
        return lambda _config: export()
    if hasattr(export, "act"):
        return lambda _config: export
    if callable(export):
        return lambda _config: CallableAgent(export)
    raise AgentRaised(f"`{origin.target}` is a {type(export).__name__}, not an agent")
