"""Statements on a credit case: a coin decides which are true, another which mislead."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.company.kinds.contract import CaseProposition, CaseWorld
from owa_bench.company.kinds.credits.truth import SOURCES, credit_truth, decide
from owa_bench.seeding import pick, stream

KINDS = ("amount_over", "is_due", "total_over")
_EACH = 3


def credit_propositions(world: CaseWorld) -> tuple[CaseProposition, ...]:
    """Return the statements of a world.

    Args:
        world: Of the kind.
    """
    rng = stream(world.text_seed, "propositions")
    happened = frozenset(event.name for event in world.events)
    truth = credit_truth(world, happened)
    moving = {r.id for r in world.matter.requests if r.withdrawn or r.other_desk}
    careless = {source: decide(world, happened, frozenset({source})) for source in SOURCES}
    answers = {item.id: item.answer for item in truth.items}
    found = []
    items = [item for item in truth.items if item.id not in moving]
    order = [items[n] for n in rng.permutation(len(items)).tolist()]
    tricky = [item for item in order if item.reasons]
    plain = [item for item in order if not item.reasons]
    amounts = [
        (item.id, answers[item.id]["amount_cents"], wrong)
        for item in (*tricky, *plain)
        for wrong in [careless[item.reasons[0]][item.id]["amount_cents"] if item.reasons else 0]
        if answers[item.id]["amount_cents"] and answers[item.id]["amount_cents"] != wrong
    ]
    for key, cents, wrong in amounts[:_EACH]:
        subject = f"By the rules, request {key} is worth"
        found.append(_over(f"amount-{key}", "amount_over", subject, cents, wrong, rng))
    found += _due(answers, careless, [item.id for item in order], rng)
    total = sum(answer["amount_cents"] for answer in answers.values())
    wrong = sum(row["amount_cents"] for row in careless[pick(SOURCES, rng)].values())
    if wrong == total:
        wrong = total * (80 + 45 * int(rng.integers(2))) // 100
    subject = "By the rules, approved and proposed amounts of the whole queue add up to"
    found.append(_over("total", "total_over", subject, total, wrong, rng))
    return tuple(found)


def _over(
    name: str, kind: str, subject: str, cents: int, wrong: int, rng: np.random.Generator
) -> CaseProposition:
    """Return whether an amount is over a threshold; coins draw the truth and the trap."""
    low, high = sorted((cents, wrong))
    misleads = bool(rng.integers(2))
    if misleads:
        threshold = low + int(rng.integers(max(1, high - low)))
    elif rng.integers(2):
        threshold = high + 1 + int(rng.integers(max(1, high // 3)))
    else:
        threshold = low * (60 + int(rng.integers(30))) // 100
    over = bool(rng.integers(2))
    euros = f"EUR {threshold // 100:,}.{threshold % 100:02d}"
    text = f"{subject} {'more than' if over else 'at most'} {euros}."
    return CaseProposition(
        name, kind, text, (cents > threshold) == over, (wrong > threshold) == over
    )


def _due(
    answers: Mapping[str, Mapping[str, Any]],
    careless: Mapping[str, Mapping[str, Mapping[str, Any]]],
    keys: list[str],
    rng: np.random.Generator,
) -> list[CaseProposition]:
    """Return whether requests get money; half of them where a careless reader errs."""
    pays = {key: answers[key]["amount_cents"] > 0 for key in keys}
    errs: list[str] = []
    for key in keys:
        others = (careless[source][key]["amount_cents"] > 0 for source in SOURCES)
        if any(other != pays[key] for other in others):
            errs.append(key)
    right = [key for key in keys if key not in errs]
    found = []
    for _ in range(_EACH):
        misleads = bool(rng.integers(2))
        pool = (errs if misleads else right) or right or errs
        key = pool.pop(0)
        claim = bool(rng.integers(2))
        what = "money, approved or proposed" if claim else "no money"
        said = pays[key] != misleads
        found.append(
            CaseProposition(
                f"due-{key}",
                "is_due",
                f"By the rules, request {key} gets {what}.",
                pays[key] == claim,
                said == claim,
            )
        )
    return found
