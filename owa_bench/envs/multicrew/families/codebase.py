"""Codebase: each item is a function of a Python package, merged by git and run.

A fragment is the function's source. What its item is judged by is what the package on main answers
when it is asked for the function from outside: right answers are computed here and never enter the
sandbox.
"""

import ast
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from owa_bench.envs.multicrew.draws import (
    ClauseDraft,
    Content,
    CrewDraws,
    Family,
    Fragment,
    Values,
    owned,
)
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld
from owa_bench.seeding import stream

_LONGEST = 1500  # characters of a function
_FEWEST = 3  # count from which a row counts
_CASES = 3  # lists of rows; each is asked in both layouts
_LAYOUTS = ("amount first", "count first")
_PACKAGE = "app"
_SERVICE = '''"""Calls a function of the package by its name."""

import importlib

MODULES = {modules!r}


def handle(name, rows):
    module = importlib.import_module(f"app.{{MODULES[name]}}")
    return getattr(module, name)(rows)
'''
HiddenRows = list[list[int]]
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"source": {"type": "string", "maxLength": _LONGEST}},
    "required": ["source"],
    "additionalProperties": False,
}
_ABOUT = (
    "Each item is a function NAME(rows) of the module of a Python package, "
    f"{_PACKAGE}, that it names. Its fragment is "
    '{"source": TEXT}: one function definition, which may import from the package. '
    "Rows are pairs of whole numbers, an amount and a count; clause layout of a "
    "module: which of the two comes first in the rows that its functions get. The "
    'function returns {"tag": TAG, "total": N}. Clause tag: the text TAG. N is the '
    f"sum over the rows whose count is {_FEWEST} or more of amount times count, plus "
    "the totals of the functions that the item imports, called with the same rows in "
    "the layout of their modules. Clause cap: an amount above it counts as the cap. "
    "Clause bonus: what each row that counts adds. Work is a commit on a branch of "
    "yours that begins at main as it is then; a new function goes to the end of its "
    "module. To merge is a git merge: it conflicts where somebody else merged into "
    "the same lines meanwhile, and then the item is to be worked out anew. Hidden "
    "rows decide, asked of main."
)


def draw(draws: CrewDraws, items: tuple[CrewItem, ...]) -> Content:
    """Return modules with layouts, and for each function a tag and what else it does.

    Args:
        draws: The streams.
        items: Without clauses.
    """
    draft = ClauseDraft()
    add = draft.add
    layouts = {}
    for _ in range(max(2, len(items) // 4)):
        first, module = draws.between(0, 1), draws.word()
        values = _LAYOUTS[first], _LAYOUTS[1 - first]
        layouts[module] = add(module, "layout", draws.pick(draws.roles), *values)
    modules = list(layouts)
    places = {item.name: modules[n % len(modules)] for n, item in enumerate(items)}
    made = []
    for item in items:
        names = [add(item.name, "tag", owned(draws, item), draws.code(), draws.code())]
        kinds = draws.between(1, 3)  # cap, bonus or both
        if kinds & 1:
            cap = draws.between(12, 60)
            names.append(add(item.name, "cap", owned(draws, item), f"{cap}", f"{cap + 9}"))
        if kinds & 2:
            bonus = draws.between(2, 30)
            names.append(add(item.name, "bonus", owned(draws, item), f"{bonus}", f"{bonus + 7}"))
        used = dict.fromkeys(places[name] for name in (item.name, *item.needs))
        terms = [("module", places[item.name])]
        if item.needs:
            imports = " and ".join(f"{places[need]}.{need}" for need in item.needs)
            terms.append(("imports", imports))
        every = (*names, *(layouts[module] for module in used))
        made.append(replace(item, clauses=every, terms=tuple(terms)))
    return draft.content(made)


def files(world: CrewWorld) -> dict[str, str]:
    """Return the package before any work, text by path.

    Args:
        world: Names functions and modules.
    """
    places = {item.name: dict(item.terms)["module"] for item in world.items}
    modules = {path_of(item): f'"""Module {places[item.name]}."""\n' for item in world.items}
    return {
        f"{_PACKAGE}/__init__.py": "",
        f"{_PACKAGE}/service.py": _SERVICE.format(modules=places),
        **modules,
    }


def path_of(item: CrewItem) -> str:
    """Return the file of an item's module."""
    return f"{_PACKAGE}/{dict(item.terms)['module']}.py"


def hidden_rows(world: CrewWorld) -> list[HiddenRows]:
    """Return the lists of rows that main is asked, each again with its rows turned.

    Args:
        world: Its code is the seed.
    Returns: The lists, the turned ones behind the others in the same order.
    """
    rng = stream(int(world.code, 16), "rows")
    lists = []
    for number in range(_CASES):
        rows = [[int(rng.integers(65, 400)), 2], [2, int(rng.integers(65, 400))]]
        for _ in range(2 + number):
            rows.append([int(rng.integers(5, 400)), int(rng.integers(3, 90))])
        lists.append([rows[i] for i in rng.permutation(len(rows)).tolist()])
    return [*lists, *([row[::-1] for row in rows] for rows in lists)]


def with_function(text: str, item: CrewItem, source: str) -> str:
    """Return a module with a function in place of the one of its name, or at the end.

    Args:
        text: The module; what others merged is Python.
        item: Its name is the function's.
        source: Of the function, comments above it included.
    """
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == item.name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            while lines[first - 2].startswith("# "):
                first -= 1
            lines[first - 1 : node.end_lineno] = source.split("\n")
            return "\n".join(lines)
    return f"{text}\n\n{source}\n"


def problem(item: CrewItem, fragment: Fragment) -> str:
    """Return what is wrong with a source beyond its form, "" for nothing.

    Args:
        item: Its name is the function's.
        fragment: Has the source.
    Returns: The rule and what was got.
    """
    source = fragment["source"]
    rule = f"`fragment.source` must be one definition of a function {item.name}"
    if not (source.isascii() and all(map(str.isprintable, source.split("\n")))):
        return f"{rule} in printable ASCII, got other characters."
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return f"{rule}, got {type(error).__name__}."
    if len(body) == 1 and isinstance(body[0], ast.FunctionDef):
        if body[0].name != item.name:
            return f"{rule}, got {body[0].name}."
        if _runs_when_defined(body[0]):
            return f"{rule} of rows, plain: no decorators, defaults or annotations."
        return ""
    return f"{rule}, got {', '.join(type(node).__name__ for node in body) or 'nothing'}."


def _runs_when_defined(function: ast.FunctionDef) -> bool:
    """Return whether a module that holds a function runs code of it when imported."""
    parts = [*function.args.defaults, *function.args.kw_defaults, function.returns]
    parts += [node.annotation for node in ast.walk(function.args) if type(node) is ast.arg]
    return bool(function.decorator_list) or any(part is not None for part in parts)


def accepts(
    item: CrewItem, values: Values, before: Mapping[str, Fragment], fragment: Fragment
) -> bool:
    """Return whether main answered the hidden rows as the clauses ask for.

    Args:
        item: The item.
        values: Of its clauses.
        before: What main answered for the functions that it imports, which are right.
        fragment: `rows` that main was asked and its `answers`.
    Returns: Whether every answer is right.
    """
    lists = fragment["rows"]
    right = [_right_answer(item, values, before, lists, n) for n in range(len(lists))]
    return bool(fragment["answers"] == right)


def _right_answer(
    item: CrewItem,
    values: Values,
    before: Mapping[str, Fragment],
    lists: list[HiddenRows],
    number: int,
) -> dict[str, Any]:
    """Return the right answer to a list of rows."""
    module = dict(item.terms)["module"]
    layout = values[f"{module}.layout"]
    cap, bonus = values.get(f"{item.name}.cap"), values.get(f"{item.name}.bonus", "0")
    total = 0
    for row in lists[number]:
        amount, count = row if layout == _LAYOUTS[0] else row[::-1]
        if count >= _FEWEST:
            total += (min(amount, int(cap)) if cap else amount) * count + int(bonus)
    for place, need in _imports(item):
        turned = values[f"{place}.layout"] != layout
        at = (number + turned * _CASES) % len(lists)
        total += before[need]["answers"][at]["total"]
    return {"tag": values[f"{item.name}.tag"], "total": total}


def _imports(item: CrewItem) -> list[tuple[str, str]]:
    """Return module and name of the functions that an item imports."""
    imports = dict(item.terms).get("imports", "")
    pairs = (one.partition(".") for one in imports.split(" and ") if one)
    return [(module, name) for module, _, name in pairs]


def solution(item: CrewItem, values: Values, before: Mapping[str, Fragment]) -> dict[str, Any]:
    """Return the function that the clauses ask for.

    Args:
        item: The item.
        values: Of its clauses.
        before: Plays no part: main is asked for what it imports.
    """
    layout = values[f"{dict(item.terms)['module']}.layout"]
    names = "amount, count" if layout == _LAYOUTS[0] else "count, amount"
    cap, bonus = values.get(f"{item.name}.cap"), values.get(f"{item.name}.bonus")
    gain = f"{f'min(amount, {cap})' if cap else 'amount'} * count"
    lines = [f"def {item.name}(rows):"]
    for place, need in _imports(item):
        lines.append(f"    from {_PACKAGE}.{place} import {need}")
    lines += [
        "    total = 0",
        f"    for {names} in rows:",
        f"        if count >= {_FEWEST}:",
        f"            total += {gain}{f' + {bonus}' if bonus else ''}",
    ]
    for place, need in _imports(item):
        turned = values[f"{place}.layout"] != layout
        given = "[row[::-1] for row in rows]" if turned else "rows"
        lines.append(f'    total += {need}({given})["total"]')
    lines.append(f'    return {{"tag": "{values[f"{item.name}.tag"]}", "total": total}}')
    return {"source": "\n".join(lines)}


FAMILY = Family(
    name="codebase",
    about=_ABOUT,
    form=FORM,
    draw=draw,
    problem=problem,
    accepts=accepts,
    solution=solution,
    runs=True,
)
