"""Operators on clauses and on the documents that state them."""

from collections.abc import Callable

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.drift.targets import named_part
from owa_bench.envs.multicrew.world import (
    CrewWorld,
    DocumentLine,
    add_line,
    clause_of,
    fresh_value,
    rewrite,
    with_clause,
)

_EACH = 2  # clauses that an operator may change
_KINDS = 5  # operators that share the clauses
_NUMBERS = ("limit", "length", "gap", "cap", "bonus")


def _targets(kind: int) -> Callable[[CrewWorld], tuple[str, ...]]:
    """Return the function to an operator's own share of the clauses.

    Contested clauses are nobody's: who is right there has been drawn.
    """

    def targets(world: CrewWorld) -> tuple[str, ...]:
        plain = [c.name for c in world.clauses if not c.rival and c.attribute != "say"]
        numbers = [n for n in plain if n.rpartition(".")[2] in _NUMBERS]
        if kind == _UNITS:
            return tuple(f"clause/{name}" for name in numbers[:_EACH])
        rest = [name for name in plain if name not in numbers[:_EACH]]
        return tuple(f"clause/{name}" for name in rest[kind::_KINDS][:_EACH])

    return targets


_UNITS = 4


@operator(announcement="D1", weight=1.0, targets=_targets(0))
def criterion_changed(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Give a clause another value and tell everybody.

    Changes: the value, in force and in its document; a notice states it.
    Leaves alone: every other clause, what is merged.
    Announcement: D1 (a notice). Weight: 1.0.
    Raises: DriftError if `target` names no clause of the world.
    Source: docs/multicrew.md#operators.
    """
    clause = clause_of(world, target)
    value = fresh_value(world, clause, rng)
    line = DocumentLine(
        subject=clause.subject,
        attribute=clause.attribute,
        value=value,
        ground="change",
        style=int(rng.integers(99)),
    )
    changed = with_clause(world, replace(clause, value=value))
    changed = rewrite(changed, clause, lambda old: replace(old, value=value))
    return replace(changed, notices=(*world.notices, line))


@operator(announcement="D2", weight=0.6, targets=_targets(1))
def criterion_untold(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Give a clause another value that its document states and a check tells of.

    Changes: the value, in force and in its document; a merge that misses it is told.
    Leaves alone: every other clause; there is no notice.
    Announcement: D2 (a check fails). Weight: 0.6.
    Raises: DriftError if `target` names no clause of the world.
    Source: docs/multicrew.md#operators.
    """
    clause = clause_of(world, target)
    value = fresh_value(world, clause, rng)
    changed = with_clause(world, replace(clause, value=value, checked=True))
    return rewrite(changed, clause, lambda old: replace(old, value=value))


@operator(announcement="D3", weight=0.7, targets=_targets(2))
def stale_specification(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Give a clause another value that only another role's document states.

    Changes: the value in force; another role's document says what it is since then.
    Leaves alone: the document that stated it, which is wrong now.
    Announcement: D3 (nothing fails, nobody tells). Weight: 0.7.
    Raises: DriftError if `target` names no clause of the world.
    Source: docs/multicrew.md#operators.
    """
    clause = clause_of(world, target)
    value = fresh_value(world, clause, rng)
    others = [d for d in world.documents if d.owner != clause.owner]
    chosen = others[int(rng.integers(len(others)))]
    line = DocumentLine(
        subject=clause.subject,
        attribute=clause.attribute,
        value=value,
        ground="change",
        style=int(rng.integers(99)),
    )
    changed = with_clause(world, replace(clause, value=value))
    return add_line(changed, chosen.name, line)


@operator(announcement="D3", weight=0.6, targets=_targets(_UNITS))
def unit_of_fact(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Write a number in its document as twice its half.

    Changes: how a document puts a number; an odd one is one more from now on.
    Leaves alone: every other clause.
    Announcement: D3 (the sentence alone shows it). Weight: 0.6.
    Raises: DriftError if `target` names no clause of the world.
    Source: docs/multicrew.md#operators.
    """
    clause = clause_of(world, target)
    value = str(int(clause.value) + int(clause.value) % 2)
    changed = with_clause(world, replace(clause, value=value))
    return rewrite(changed, clause, lambda o: replace(o, value=value, halves=True))


@operator(announcement="D3", weight=0.5, targets=_targets(3))
def owner_moved(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Move what states a clause to another role's document.

    Changes: who knows the clause.
    Leaves alone: its value; the task goes on to name the former owner.
    Announcement: D3 (nobody tells). Weight: 0.5.
    Raises: DriftError if `target` names no clause of the world.
    Source: docs/multicrew.md#operators.
    """
    clause = clause_of(world, target)
    others = [d for d in world.documents if d.owner != clause.owner]
    chosen = others[int(rng.integers(len(others)))]
    line = DocumentLine(
        subject=clause.subject,
        attribute=clause.attribute,
        value=clause.value,
        style=int(rng.integers(99)),
    )
    kept = rewrite(world, clause, lambda old: None)
    return add_line(with_clause(kept, replace(clause, owner=chosen.owner)), chosen.name, line)


@operator(
    announcement="D1",
    weight=0.8,
    targets=lambda world: tuple(f"stamp/{i.name}" for i in world.items[-_EACH:]),
)
def late_constraint(world: CrewWorld, target: str, rng: Generator) -> CrewWorld:
    """Ask one more thing of an item: a stamp that its fragment must carry.

    Changes: what the item must meet; a notice tells.
    Leaves alone: its clauses.
    Announcement: D1 (a notice). Weight: 0.8.
    Raises: DriftError if `target` names no item of the world.
    Source: docs/multicrew.md#operators.
    """
    name = named_part(target, "stamp", [item.name for item in world.items])
    stamp = f"s{int(rng.integers(10**6)):06d}"
    items = tuple(replace(i, stamp=stamp) if i.name == name else i for i in world.items)
    notice = f"From now on the fragment of {name} must carry stamp {stamp}."
    return replace(world, items=items, notices=(*world.notices, notice))
