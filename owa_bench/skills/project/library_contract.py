"""A contract test of libraries: fails where their functions or answers moved.

The test is committed to the project and runs in its integration: a version that answers
otherwise fails it, and its message says what was found.

Source: docs/projforge.md#agents
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from owa_bench.skills.project.library_calls import CallForm, CallForms

PATH = "tests/contract/test_contract.py"
Measured = Mapping[str, Mapping[str, list[Any]]]  # by library and function
_SOURCE = '''"""Libraries are as they were."""

import importlib
import inspect
import itertools
import json
import warnings

import pytest

EXPECTED = json.loads({expected!r})
LIBRARIES = {libraries!r}
ROUNDINGS = ("half_up", "down", "up")


def measured(function):
    names = inspect.signature(function).parameters
    order = [name for name in names if name != "rounding"]

    def ask(amount, level, **how):
        given = {{"amount": amount, "level": level}}
        return function(*(given[name] for name in order), **how)

    cases = list(itertools.product(range(1, 40), range(4)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [ask(a, b, rounding="half_up") for a in (1000, 1777) for b in (0, 3)]
        plain = [ask(*case) for case in cases]
        default = [
            how
            for how in ROUNDINGS
            if plain == [ask(*case, rounding=how) for case in cases]
        ]
    return [order, values, default[:1], bool(caught)]


def test_libraries_are_as_they_were():
    found = {{}}
    for name in LIBRARIES:
        functions = vars(importlib.import_module(name)).items()
        now = {{n: measured(f) for n, f in functions if inspect.isfunction(f)
               and not n.startswith("_")}}
        if now != EXPECTED.get(name):
            found[name] = now
    if found:
        text = json.dumps(found, separators=(",", ":"))
        pytest.fail("FOUND " + text + " END", pytrace=False)
'''


def contract_test(libraries: tuple[str, ...], expected: Measured) -> str:
    """Return the test module.

    Args:
        libraries: Which to look at.
        expected: What they were found to be.
    Returns: Python source.
    """
    text = json.dumps(expected, sort_keys=True)
    return _SOURCE.format(expected=text, libraries=libraries)


def found_in(output: str) -> Measured:
    """Return what the test found other than expected, by an output of integration."""
    told = re.search(r"FOUND (\{.*?\}) END", output, re.S)
    if told is None:
        return {}
    found: Measured = json.loads(told[1])
    return found


def measured_forms(
    rules: tuple[str, ...],
    first: Mapping[str, list[int]],
    now: Mapping[str, list[Any]],
) -> CallForms:
    """Return how rules are called by what a library's functions are and answer.

    Args:
        rules: Rules of the library.
        first: Values of each rule on the first day.
        now: The functions: order, values, default, whether they warn.
    Returns: Forms by rule; a rule that no function fits is left out.
    """
    forms = {}
    for rule in rules:
        named = [n for n, m in now.items() if rule in n.split("_") and not m[3]]
        for name in named[:1]:
            order, values, default, _ = now[name]
            scale, offset = _line(first[rule], values)
            forms[rule] = CallForm(
                name=name,
                order=tuple(order),
                default=default[0] if default else "",
                scale=scale,
                offset=offset,
            )
    return forms


def _line(before: list[int], after: list[int]) -> tuple[int, int]:
    """Return (s, o) with after = s before + o, (1, 0) where there is none."""
    for x, y in zip(before, after, strict=True):
        if x != before[0]:
            scale = (y - after[0]) // (x - before[0])
            offset = after[0] - scale * before[0]
            fits = [scale * b + offset for b in before] == list(after)
            return (scale, offset) if fits and scale else (1, 0)
    return 1, 0
