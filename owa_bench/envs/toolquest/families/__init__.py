"""The task families of ToolQuest: one module each, found and never listed."""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest import task_spec


def _modules() -> Mapping[str, task_spec.TaskFamily]:
    """Return every family by name, in the order of the names.

    A module whose name begins with "_" is not a family.
    """
    names = sorted(entry.name for entry in pkgutil.iter_modules(__path__))
    families: list[task_spec.TaskFamily] = [
        importlib.import_module(f"{__name__}.{name}").FAMILY
        for name in names
        if not name.startswith("_")
    ]
    return {family.name: family for family in families}


FAMILIES = _modules()


class RuleAnswer(NamedTuple):
    """Columns and rows of an artefact, or of the records to be written."""

    columns: tuple[str, ...]
    rows: tuple[task_spec.AnswerRow, ...]


def solve(family: str, sources: task_spec.Sources, rule: task_spec.RuleParameters) -> RuleAnswer:
    """Return what the family's rule makes of the rows, sorted.

    Args:
        family: Name of the family.
        sources: Rows by source: role -> value, money in cents.
        rule: The parameters that the goal names.
    Returns: The columns of the answer and its rows.
    """
    known = FAMILIES[family]
    return RuleAnswer(known.columns, tuple(sorted(known.solve(sources, rule))))
