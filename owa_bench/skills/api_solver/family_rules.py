"""What each family of goals asks for: the rules, found in their folder by name.

The rules are those of the goal's own words.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from owa_bench.skills.api_solver import rules
from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    Clues,
    FamilyRule,
    Tables,
)


def _found() -> Mapping[str, FamilyRule]:
    """Return every rule by the name of its family."""
    names = (entry.name for entry in pkgutil.iter_modules(rules.__path__))
    return {
        name: importlib.import_module(f"{rules.__name__}.{name}").RULE
        for name in sorted(names)
        if not name.startswith("_")
    }


FAMILIES = _found()


def compute(family: str, tables: Tables, rule: Mapping[str, Any]) -> AnswerRows | None:
    """Return the rows that the goal asks for, None for a family not known here."""
    known = _known(family)
    return known.compute(tables, rule) if known else None


def clues(family: str) -> Clues:
    """Return the clues to the columns of a family, none for one not known here."""
    known = _known(family)
    return known.clues if known else {}


def _known(family: str) -> FamilyRule | None:
    return FAMILIES.get(family.partition("-")[0])
