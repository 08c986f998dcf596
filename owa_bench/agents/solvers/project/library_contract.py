"""A contract test of libraries: fails where their functions or answers moved.

The test is committed to the project and runs in its integration: a version that answers otherwise
fails it, and its message says what was found.

Source: docs/projforge.md#agents
"""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

PLAIN = "half_up"


class CallForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a rule is called: name, order of arguments, and what its result means.

    The rule's value is (result - `offset`) // `scale`; `default` is how the function rounds where a
    call does not say.
    """

    name: str
    order: tuple[str, ...]
    default: str = PLAIN
    scale: int = 1
    offset: int = 0


CallForms = Mapping[str, CallForm]  # by rule


def call_text(library: str, form: CallForm, amount: str, level: str, rounding: str) -> str:
    """Return an expression of a rule's value.

    Args:
        library: The module.
        form: How the rule is called.
        amount: An expression.
        level: An expression.
        rounding: How to round; it is said where the default is another.
    Returns: Python source.
    """
    given = {"amount": amount, "level": level}
    arguments = [given[name] for name in form.order]
    if rounding != form.default or form.default != PLAIN:
        arguments.append(f"rounding={rounding!r}")
    text = f"{library}.{form.name}({', '.join(arguments)})"
    text = f"({text} - {form.offset})" if form.offset else text
    return f"{text} // {form.scale}" if form.scale != 1 else text


def manual_forms(text: str) -> dict[str, CallForm]:
    """Return the calls that the manual of a library's first version shows."""
    first = re.findall(r"^- `(\w+)\((\w+), (\w+), /, rounding='(\w+)'\)`", text, re.M)
    return {
        name: CallForm(name=name, order=(one, other), default=default)
        for name, one, other, default in first
    }


def changelog_sections(text: str) -> list[str]:
    """Return the sections of a changelog, the manual's first."""
    return re.split(r"^## ", text, flags=re.M)[1:]


def told_forms(forms: CallForms, section: str) -> dict[str, CallForm]:
    """Return the calls after what a section of a changelog tells.

    Args:
        forms: Those before.
        section: Its text.
    Returns: Those after; a section that tells nothing changes none.
    """
    renamed = dict(re.findall(r"^- renamed: `(\w+)` is now `(\w+)`", section, re.M))
    renamed |= dict(re.findall(r"^- deprecated: `(\w+)` goes .* use `(\w+)`", section, re.M))
    found = re.findall(r"^- arguments: `(\w+)\((\w+), (\w+)\)`", section, re.M)
    orders = {name: (one, other) for name, one, other in found}
    after = {}
    for rule, form in forms.items():
        order = orders.get(form.name, form.order)
        name = renamed.get(form.name, form.name)
        after[rule] = replace(form, name=name, order=order)
    return after


def rewritten(code: str, library: str, before: CallForms, after: CallForms) -> str:
    """Return code whose calls of a library have another form.

    Args:
        code: Python source.
        library: The module.
        before: The forms of its calls, by rule.
        after: The forms that they get.
    Returns: Python source.
    """
    pairs = [(before[rule], after[rule]) for rule in before if rule in after]
    changed = [(old, new) for old, new in pairs if old != new]
    if not changed:
        return code
    tree = _Rewriter(library, changed).visit(ast.parse(code))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Rewriter(ast.NodeTransformer):
    """Replaces each call of one form by the call of another."""

    def __init__(self, library: str, pairs: list[tuple[CallForm, CallForm]]) -> None:
        self._library, self._pairs = library, pairs

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the node, its calls replaced."""
        for old, new in self._pairs:
            call = self._call(node, old)
            if call is not None:
                given = dict(zip(old.order, map(ast.unparse, call.args), strict=True))
                says = [k.value for k in call.keywords if k.arg == "rounding"]
                how = ast.literal_eval(says[0]) if says else PLAIN
                text = call_text(self._library, new, given["amount"], given["level"], how)
                return ast.parse(text, mode="eval").body
        other: ast.AST = super().visit(node)
        return other

    def _call(self, node: ast.AST, form: CallForm) -> ast.Call | None:
        """Return the call inside an expression of a form, None where it is none."""
        if form.scale != 1:
            node = _left_operand(node, ast.FloorDiv, form.scale)
        if form.offset:
            node = _left_operand(node, ast.Sub, form.offset)
        if not isinstance(node, ast.Call) or len(node.args) != len(form.order):
            return None
        called = ast.unparse(node.func)
        return node if called == f"{self._library}.{form.name}" else None


def _left_operand(node: ast.AST, operator: type[ast.operator], number: int) -> ast.AST:
    """Return what an operator with a number is applied to, else an empty expression."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, operator):
        return ast.Pass()
    same = isinstance(node.right, ast.Constant) and node.right.value == number
    return node.left if same else ast.Pass()


# --- the contract test ----------------------------------------------------------------
#
# The test is committed to the project and runs in its integration: a version that
# answers otherwise fails it, and its message says what was found.


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
    rules: tuple[str, ...], first: Mapping[str, list[int]], now: Mapping[str, list[Any]]
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
