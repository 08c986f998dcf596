"""The plan of a month: which traps, how often, under which policy."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.company.language.close_policy import (
    AREA,
    BOOKING,
    CHARGE,
    CREDIT,
    DEDUCTED,
    DISCOUNT,
    FILLS,
    FORM,
    GROSS,
    LEFT_OUT,
    LOWEST,
    NET,
    TEXT_ORDER,
    TIES,
    VALUE,
)
from owa_bench.seeding import pick

# The level from which a class may be present, and the classes without which it has no meaning.
LEVEL_OF: Mapping[str, int] = {
    "month": 1,
    "no_number": 1,
    "wrong_number": 1,
    "several": 1,
    "late": 1,
    "discount_day": 1,
    "abroad": 1,
    "home": 1,
    "double": 1,
    "surplus": 1,
    "returns": 2,
    "repeats": 2,
    "names": 2,
    "parent": 2,
    "credit_notes": 2,
    "paid_number": 2,
    "foreign_number": 2,
    "tie": 2,
    "bank_days": 2,
    "advice": 2,
    "surplus_limit": 2,
    "instalments": 2,
    "storno": 3,
    "registered": 3,
    "registered_dates": 3,
    "factor": 3,
    "notices": 3,
    "notice_senders": 3,
    "fill_order": 3,
    "replaced": 3,
    "advice_latest": 3,
    "sums": 3,
    "discount_base": 3,
    "contracts": 3,
    "contract_dates": 3,
    "check_order": 3,
    "amendments": 3,
    "credit_used": 3,
    "correction": 3,
}
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "storno": ("returns",),
    "factor": ("registered",),
    "fill_order": ("several",),
    "advice_latest": ("advice",),
}
# The sentence of the policy that a class speaks of.
_SENTENCE: Mapping[str, str] = {
    "repeats": "repeats",
    "storno": "storno",
    "parent": "parent",
    "registered": "registered",
    "registered_dates": "registered",
    "factor": "factor",
    "notices": "notice",
    "notice_senders": "notice",
    "replaced": "replaced",
    "advice": "advice",
    "sums": "sums",
    "bank_days": "bank_days",
    "contracts": "contract",
    "contract_dates": "contract",
    "credit_notes": "credit",
    "credit_used": "credit",
    "instalments": "instalments",
}
_PRESENT, _SPOKEN = 0.58, 0.6  # odds of a class, and of a sentence that no class needs [D]
_LEAST = {1: 4, 2: 7, 3: 10}  # classes of a world
_ROWS = {1: (2, 5), 2: (3, 8), 3: (4, 12)}  # payments of a class, the end left out
_HOME, _ABROAD = (200, 300, 400, 500), (1500, 1800, 2000, 2500, 3000)


class MonthPlan(NamedTuple):
    """Which traps a month has.

    Attributes:
        rows: Payments by class that is to be present.
        alike: Payments by class that look alike and are none.
    """

    rows: Mapping[str, int]
    alike: Mapping[str, int]


def draw_plan(level: int, rng: np.random.Generator) -> MonthPlan:
    """Return which traps a month has.

    Args:
        level: 1 to 3.
        rng: Draws them.
    """
    known = [name for name, least in LEVEL_OF.items() if least <= level]
    while True:
        present = {name for name in known if rng.random() < _PRESENT}
        present = {name for name in present if present.issuperset(_NEEDS.get(name, ()))}
        if "tie" in present and present.isdisjoint({"no_number", "wrong_number"}):
            present.remove("tie")
        if len(present) >= _LEAST[level]:
            break
    low, high = _ROWS[level]
    rows = {name: low + int(rng.integers(high - low)) for name in known if name in present}
    alike = {name: int(rng.integers(level + 1)) for name in known}
    return MonthPlan(rows, alike)


def draw_terms(level: int, plan: MonthPlan, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return the values of a policy that lets the traps of a plan be.

    Args:
        level: 1 to 3.
        plan: Of the month.
        rng: Draws everything else.
    """
    present = frozenset(plan.rows)
    needed = {_SENTENCE[name] for name in present if name in _SENTENCE}
    known = {s for name, s in _SENTENCE.items() if LEVEL_OF[name] <= level} | {"not_due"}
    spoken = {s for s in sorted(known) if s in needed or rng.random() < _SPOKEN}
    if "factor" in spoken:
        spoken.add("registered")
    checks = (DISCOUNT, CHARGE, *((CREDIT,) if "credit" in spoken else ()))
    if "check_order" in present:
        checks = (CHARGE, DISCOUNT, *checks[2:])
        checks = pick((checks, (*checks[2:], *checks[:2])), rng)
    fills = [f for f in FILLS if (f != TEXT_ORDER) == ("fill_order" in present)]
    ties = ("due last", "issued last", "with the highest number") if "tie" in present else TIES
    near = sorted(rng.permutation(list(AREA))[: 5 + int(rng.integers(3))].tolist(), key=AREA.index)
    values: dict[str, dict[str, Any]] = {
        "month": {"basis": pick((BOOKING, VALUE), rng)},
        "factor": {"percent": 2 + int(rng.integers(4))},
        "several": {"order": pick(fills, rng)},
        "amount": {"tie": pick(ties if "tie" in present else (LOWEST, *TIES), rng)},
        "sums": {"count": 3 + int(rng.integers(2))},
        "discount": {
            "day": pick((BOOKING, VALUE), rng),
            "base": NET if "discount_base" in present else GROSS,
        },
        "order": {"checks": checks},
        "charges": {"home": pick(_HOME, rng), "abroad": pick(_ABROAD, rng), "area": tuple(near)},
        "surplus": {"limit": pick((100, 200, 300, 500), rng)},
        "open_items": {"credits": pick((LEFT_OUT, DEDUCTED), rng)},
    }
    optional = set(_SENTENCE.values()) | {"not_due"}
    return {
        name: values.get(name, {})
        for name in FORM.sentences
        if name in spoken or name not in optional
    }
