"""The right answer of a task, by its family's rule.

`sources` maps a source's id to its rows, role to value, money in cents. Source: the
section Goal of this folder's README.md.
"""

from typing import NamedTuple

from owa_bench.envs.toolquest.catalogue import FAMILIES
from owa_bench.envs.toolquest.rows import AnswerRow, RuleParameters, Sources


class RuleAnswer(NamedTuple):
    """Columns and rows of an artefact, or of the records to be written."""

    columns: tuple[str, ...]
    rows: tuple[AnswerRow, ...]


def solve(family: str, sources: Sources, rule: RuleParameters) -> RuleAnswer:
    """Return what the family's rule makes of the rows, sorted."""
    known = FAMILIES[family]
    return RuleAnswer(known.columns, tuple(sorted(known.solve(sources, rule))))
