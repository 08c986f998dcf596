"""Issues into code: each sentence of a feature's prose becomes a line of a function.

Source: docs/projforge.md#agents
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.agents.solvers.project.library_contract import CallForms, call_text

_RULE = r"rule `(\w+)` of `(\w+)` \(level (\d+), rounded (half up|down|up)\)\."
_SENTENCES = (
    (r"Keep those whose (\w+) is (\w+)\.", "rows = [r for r in rows if r[{0}] == {1}]"),
    (r"Only (\w+) (\w+) counts\.", "rows = [r for r in rows if r[{0}] == {1}]"),
    (r"Leave out (\w+) (\w+)\.", "rows = [r for r in rows if r[{0}] != {1}]"),
    (r"Those with (\w+) (\w+) do not count\.", "rows = [r for r in rows if r[{0}] != {1}]"),
    (r"Keep those with a (\w+) of (\d+) or more\.", "rows = [r for r in rows if r[{0}] >= {1}]"),
    (r"Drop every one whose (\w+) is below (\d+)\.", "rows = [r for r in rows if r[{0}] >= {1}]"),
    (r"Keep those with a (\w+) under (\d+)\.", "rows = [r for r in rows if r[{0}] < {1}]"),
    (r"A (\w+) of (\d+) or more is out\.", "rows = [r for r in rows if r[{0}] < {1}]"),
    (r"Add up the (\w+)s\.", "value = sum(r[{0}] for r in rows)"),
    (r"Add up (\w+) times (\w+)\.", "value = sum(r[{0}] * r[{1}] for r in rows)"),
    (r"Take the largest (\w+),", "value = max((r[{0}] for r in rows), default=0)"),
    (r"Add what `(\w+)` answers", "value = value + FEATURES[{0}](request)"),
    (r"Subtract it from what `(\w+)`", "value = FEATURES[{0}](request) - value"),
    (r"If `(\w+)` answers more", "value = max(value, FEATURES[{0}](request))"),
)
_ISSUE = re.compile(r"^(\w+) \(due day (\d+)\): (.+)$", re.M)


class Issue(NamedTuple):
    """An open issue of the tracker: a feature's name and its prose."""

    name: str
    prose: str


def read_issues(text: str) -> tuple[Issue, ...]:
    """Return the issues that a list of the tracker holds, in its order."""
    return tuple(Issue(name, prose) for name, _, prose in _ISSUE.findall(text))


def libraries_in(prose: str) -> frozenset[str]:
    """Return the libraries whose rules a feature's prose names."""
    return frozenset(library for _, library, _, _ in re.findall(_RULE, prose))


def function_code(issue: Issue, forms: Mapping[str, CallForms]) -> str:
    """Return the function that answers an issue's feature.

    Args:
        issue: The issue.
        forms: How rules are called, by library and rule.
    Returns: Python source; sentences that are not understood add nothing.
    """
    lines = [
        f"def _{issue.name}(request):",
        "rows = [dict(r) for r in request['rows']]",
        "value = 0",
    ]
    for sentence in re.split(r"(?<=\.) ", issue.prose):
        lines += _lines(sentence, forms)
    return "\n    ".join([*lines, "return value"]) + "\n"


def _lines(sentence: str, forms: Mapping[str, CallForms]) -> list[str]:
    rule = re.search(_RULE, sentence)
    if rule is not None:
        name, library, level, rounding = rule.groups()
        form = forms[library][name]
        how = rounding.replace(" ", "_")
        each = re.match(r"Replace each (\w+) by its", sentence)
        place = f"r[{each[1]!r}]" if each else "value"
        line = f"{place} = {call_text(library, form, place, level, how)}"
        return ["for r in rows:", f"    {line}"] if each else [line]
    for pattern, template in _SENTENCES:
        found = re.match(pattern, sentence)
        if found is not None:
            words = [w if w.isdecimal() else repr(w) for w in found.groups()]
            return [template.format(*words)]
    return []


def service_code(functions: Mapping[str, str], libraries: tuple[str, ...], *, wrapped: bool) -> str:
    """Return the module of the product.

    Args:
        functions: Source by feature.
        libraries: What it imports.
        wrapped: Whether answers are objects that hold the value.
    Returns: Python source.
    """
    imports = "\n".join(f"import {library}" for library in libraries)
    entries = ", ".join(f"{name!r}: _{name}" for name in functions)
    answer = "FEATURES[endpoint](request)"
    result = f"{{'answer': {answer}}}" if wrapped else answer
    parts = ['"""The product: a function a feature."""', imports, *functions.values()]
    parts += [f"FEATURES = {{{entries}}}", f"def handle(endpoint, request):\n    return {result}"]
    return "\n\n\n".join(part.strip() for part in parts) + "\n"
