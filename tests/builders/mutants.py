"""Mutants of a module: the same code with one thing in it changed."""

import ast
import copy
import types
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COMPARED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_JOINED = {ast.And: ast.Or, ast.Or: ast.And}
_COUNTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLED = {"all": "any", "any": "all", "min": "max", "max": "min"}


class Mutant(NamedTuple):
    """A changed module, and what was changed where."""

    line: int
    change: str
    module: types.ModuleType


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module's functions and constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    places = list(_code(tree))
    for number, node in enumerate(places):
        for variant, _ in enumerate(_changed(copy.deepcopy(node))):
            other = copy.deepcopy(tree)
            twin = list(_code(other))[number]
            new = _changed(twin)[variant]
            ast.fix_missing_locations(_put(other, twin, new))
            change = f"{_said(node)} -> {_said(new)}"
            yield Mutant(node.lineno, change, _made(other, path))


def _said(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:60]


def _code(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what may be changed, in order; neither annotations nor docstrings."""
    for top in tree.body:
        if isinstance(top, ast.FunctionDef):
            for statement in top.body:
                yield from _inside(statement)
        elif isinstance(top, ast.Assign):
            yield from _inside(top.value)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, (ast.expr, ast.Return, ast.Continue)):
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _changed(node: ast.AST) -> list[ast.AST]:
    """Return what a node could be instead; `node` itself stays as it is."""
    change = _CHANGES.get(type(node))
    found = change(copy.deepcopy(node)) if change else []
    for new in found:
        ast.copy_location(new, node)
    return found


def _compared(node: ast.Compare) -> list[ast.AST]:
    node.ops[0] = _COMPARED[type(node.ops[0])]()
    return [node]


def _joined(node: ast.BoolOp) -> list[ast.AST]:
    other = ast.BoolOp(_JOINED[type(node.op)](), node.values)
    return [other, *map(copy.deepcopy, node.values)]


def _counted(node: ast.BinOp) -> list[ast.AST]:
    if type(node.op) not in _COUNTED:
        return []
    node.op = _COUNTED[type(node.op)]()
    return [node]


def _valued(node: ast.Constant) -> list[ast.AST]:
    return [ast.Constant(node.value + 1)] if isinstance(node.value, int | float) else []


def _called(node: ast.Call) -> list[ast.AST]:
    if not isinstance(node.func, ast.Name) or node.func.id not in _CALLED:
        return []
    node.func = ast.Name(_CALLED[node.func.id], ast.Load())
    return [node]


def _unfiltered(node: ast.AST) -> list[ast.AST]:
    """Return a comprehension without each of its conditions."""
    found: list[ast.AST] = []
    for i, generator in enumerate(node.generators):
        for j, _ in enumerate(generator.ifs):
            new = copy.deepcopy(node)
            del new.generators[i].ifs[j]
            found.append(new)
    return found


_CHANGES = {
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.BinOp: _counted,
    ast.UnaryOp: lambda node: [node.operand],
    ast.IfExp: lambda node: [node.body, node.orelse],
    ast.Constant: _valued,
    ast.Call: _called,
    ast.Return: lambda _: [ast.Return(ast.Constant(None))],
    ast.Continue: lambda _: [ast.Pass()],
    ast.GeneratorExp: _unfiltered,
    ast.ListComp: _unfiltered,
    ast.SetComp: _unfiltered,
    ast.DictComp: _unfiltered,
}


def _put(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """Return the tree with one node in the place of another."""

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    return Swap().visit(tree)


def _made(tree: ast.Module, path: Path) -> types.ModuleType:
    module = types.ModuleType("mutant")
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module
