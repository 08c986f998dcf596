"""The families that ToolQuest has: one folder each, found and never listed."""

import importlib
import pkgutil
from collections.abc import Mapping

from owa_bench.envs.toolquest import families
from owa_bench.envs.toolquest.task_spec import TaskFamily


def _found() -> Mapping[str, TaskFamily]:
    """Return every family by name, in the order of the names.

    A folder whose name begins with "_" is not a family.
    """
    names = (entry.name for entry in pkgutil.iter_modules(families.__path__))
    modules = [
        importlib.import_module(f"{families.__name__}.{name}.family")
        for name in sorted(names)
        if not name.startswith("_")
    ]
    found: list[TaskFamily] = [module.FAMILY for module in modules]
    return {family.name: family for family in found}


FAMILIES = _found()
