"""Statements on a month that an agent is asked about."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from owa_bench.company.kinds.close.truth import careless_results, month_records, month_result
from owa_bench.company.kinds.contract import CaseProposition, CaseWorld
from owa_bench.company.language.close_records import Receivables
from owa_bench.company.language.close_rules import MonthResult, open_items
from owa_bench.company.language.close_texts import (
    LINE_EXCEPTIONS,
    LINE_PAYS,
    OWES,
    STATEMENTS,
    STILL_OPEN,
)
from owa_bench.company.language.text import Sentence
from owa_bench.seeding import stream

PROPOSITION_KINDS = tuple(sentence.name for sentence in STATEMENTS)
_COUNT = 8


class _Subject(NamedTuple):
    """Something on which a careful and a careless reader differ.

    Attributes:
        sentence: That says it.
        slot: The name of the object's slot.
        key: Of the object.
        right: The amount in truth (cents), or whether it pays.
        careless: The same for the careless reader.
        invoice: Of the statement that a line pays it.
        other: An invoice of the same customer that neither reader lets the line pay.
    """

    sentence: Sentence
    slot: str
    key: str
    right: int
    careless: int
    invoice: str = ""
    other: str = ""


def month_propositions(world: CaseWorld) -> tuple[CaseProposition, ...]:
    """Return the statements on a month: in half of them the careless answer is right.

    Args:
        world: The one that is played; its events are taken as happened.
    """
    rng = stream(world.text_seed, "propositions")
    happened = frozenset(event.name for event in world.events)
    records = month_records(world, happened)
    right = month_result(world, records, happened, frozenset())
    careless = careless_results(world, happened, records)
    groups = []
    for name in rng.permutation(list(careless)).tolist():
        found = list(_subjects(world, records, right, careless[name]))
        if found:
            groups.append([found[place] for place in rng.permutation(len(found)).tolist()])
    chosen = _choose(groups, rng)
    agree = rng.permutation([place % 2 for place in range(len(chosen))]).tolist()
    return tuple(
        _proposition(world, subject, rng, agree=bool(same))
        for subject, same in zip(chosen, agree, strict=True)
    )


def _choose(groups: list[list[_Subject]], rng: np.random.Generator) -> list[_Subject]:
    """Return subjects of many classes and kinds, each object once."""
    chosen: list[_Subject] = []
    objects: set[str] = set()
    kinds = rng.permutation(list(PROPOSITION_KINDS)).tolist()
    for _ in range(_COUNT):
        for group in groups:
            kind = kinds[len(chosen) % len(kinds)]
            fits = [s for s in group if s.sentence.name == kind and s.key not in objects]
            fits = fits or [s for s in group if s.key not in objects]
            if fits and len(chosen) < _COUNT:
                chosen.append(fits[0])
                objects.add(fits[0].key)
    return chosen


def _subjects(
    world: CaseWorld, records: Receivables, right: MonthResult, other: MonthResult
) -> Iterator[_Subject]:
    """Yield everything on which two readers differ."""
    for line in (row["id"] for row in records.lines):
        true, careless = right.rows.get(line, []), other.rows.get(line, [])
        keys, other_keys = ({row["invoice"] for row in rows} for rows in (true, careless))
        for key in sorted(keys ^ other_keys):
            pays, careless_pays = int(key in keys), int(key in other_keys)
            unpaid = records.open_of.get(records.invoices[key]["customer"], [])
            unpaid = [one for one in unpaid if one not in keys | other_keys]
            if unpaid:
                yield _Subject(LINE_PAYS, "line", line, pays, careless_pays, key, unpaid[0])
        told, careless_told = (sum(one.exceptions.get(line, {}).values()) for one in (right, other))
        if told != careless_told:
            yield _Subject(LINE_EXCEPTIONS, "line", line, told, careless_told)
    touched = set()
    for key in sorted(right.open_cents):
        left, careless_left = (max(0, one.open_cents[key]) for one in (right, other))
        if left != careless_left:
            touched.add(records.invoices[key]["customer"])
            yield _Subject(STILL_OPEN, "invoice", key, left, careless_left)
    month, terms = world.matter.month, world.policy.terms
    for customer in sorted(touched):
        owed, careless_owed = (
            open_items(records, month, terms, one, customer) for one in (right, other)
        )
        if min(owed, careless_owed) > 0 and owed != careless_owed:
            yield _Subject(OWES, "customer", customer, owed, careless_owed)


def _proposition(
    world: CaseWorld, subject: _Subject, rng: np.random.Generator, *, agree: bool
) -> CaseProposition:
    """Return a statement; what it says is drawn after the coin of its truth."""
    values: dict[str, Any] = {subject.slot: subject.key}
    sentence = subject.sentence
    if sentence is LINE_PAYS:
        values["invoice"] = subject.other if agree else subject.invoice
        affirmed = not agree and bool(subject.right)
    else:
        values["cents"], affirmed = _threshold(subject, rng, agree=agree)
    truth = bool(rng.random() < 0.5)
    words = ("pays", "does not pay") if sentence is LINE_PAYS else ("more than", "at most")
    slot = "verb" if sentence is LINE_PAYS else "than"
    values[slot] = words[0] if truth == affirmed else words[1]
    return CaseProposition(
        name=f"{sentence.name}-{subject.key}",
        kind=sentence.name,
        text=sentence.write(rng, practice=world.practice, **values),
        truth=truth,
        careless=truth if agree else not truth,
    )


def _threshold(subject: _Subject, rng: np.random.Generator, *, agree: bool) -> tuple[int, bool]:
    """Return an amount (cents), and whether the truth is above it."""
    low, high = sorted((subject.right, subject.careless))
    if not agree:
        return low + int(rng.integers(high - low)), subject.right > subject.careless
    step = 1 + int(rng.integers(max(2, (high - low) // 2, high // 20)))
    if low > step and rng.random() < 0.5:
        return low - step, True
    return high + step, False
