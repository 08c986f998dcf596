"""Draws credit policies: which rules there are, their numbers and their order."""

import datetime as dt
from typing import Any

import numpy as np

from owa_bench.company.draw import CAUSES
from owa_bench.company.language.credits_policy import (
    CAPPED,
    CAUSE_WORDS,
    CHECKS,
    FORM,
    GROUND_WORDS,
    PERIODS,
    SIGNATURE,
)
from owa_bench.company.language.policy import Policy
from owa_bench.seeding import pick

_TIERS = ((1, 2), (2, 2), (2, 3))  # the first limit, and the steps after it, business days
_LOWS = ((4, 8, 15), (5, 10, 20), (3, 6, 12), (5, 8, 10), (6, 12, 25))
_HEADS = ("Head of Customer Accounts", "Finance Controller", "Head of Finance")
_AMENDED_DAYS, _NEWS_DAYS = 6, 2  # days of receipt before today from which amendments hold


def draw_policy(today: dt.date, level: int, rng: np.random.Generator) -> Policy:
    """Return a policy with its amendments.

    Args:
        today: The day of the case.
        level: 1 to 3; higher levels have more rules.
        rng: Draws everything.
    """
    terms = _ground_terms(rng) | _check_terms(level, rng)
    sections = [
        name
        for name, section in FORM.sections.items()
        if any(sentence.name in terms for sentence in section.sentences)
    ]
    first, *rest = sections
    order = [first, *(rest[n] for n in rng.permutation(len(rest)).tolist())]
    policy = Policy(
        title=f"CP-{5 + int(rng.integers(20))}",
        since=today - dt.timedelta(60 + int(rng.integers(300))),
        sections=tuple(order),
        terms=terms,
    )
    if level > 1 and rng.random() < 0.6:
        start = today - dt.timedelta(_AMENDED_DAYS + int(rng.integers(3)))
        low = int(terms["tiers"]["low"]) + pick((-2, -1, 1, 2), rng)
        policy = policy.amended("tiers", start, low=max(1, low))
    if level > 2 and rng.random() < 0.7:
        start = today - dt.timedelta(_NEWS_DAYS + int(rng.integers(2)))
        days = int(terms["limit_late"]["days"]) - 4 - int(rng.integers(3))
        policy = policy.amended("limit_late", start, event="limit changed", days=days)
    return policy


def _ground_terms(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return the terms of the grounds."""
    first, step = pick(_TIERS, rng)
    low, middle, high = pick(_LOWS, rng)
    excused = [CAUSES[n] for n in rng.permutation(len(CAUSES))[: 2 + int(rng.integers(2))].tolist()]
    plans = pick((("Prime",), ("Plus", "Prime"), ("Plus",)), rng)
    return {
        "tiers": {
            "first": first,
            "second": first + step,
            "third": first + step + 2 + int(rng.integers(2)),
            "low": low,
            "middle": middle,
            "high": high,
        },
        "business_days": {},
        "net_value": {},
        "rounding": {"way": pick(("up", "down"), rng)},
        "causes": {"causes": tuple(CAUSE_WORDS[name] for name in excused)},
        "damage": {},
        "price": {},
        "double": {},
        "goodwill": {
            "plans": plans,
            "amount": 500 * (4 + int(rng.integers(9))),
            "days": pick((90, 180, 365), rng),
        },
        "delivery": {"stamp": pick((SIGNATURE, "carrier's scan"), rng)},
    }


def _check_terms(level: int, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return the terms of checks, limits and approvals."""
    desk = 1_000 * (10 + int(rng.integers(20)))
    grounds = [name for name in GROUND_WORDS if rng.random() < 0.4] or ["price"]
    money, rest = (pick(_HEADS, rng), pick(_HEADS, rng))
    terms: dict[str, dict[str, Any]] = {
        "withdrawn": {},
        "other_desk": {},
        "sender": {},
        "later_mails": {},
        "duplicate": {},
        "limit_late": {"days": 12 + int(rng.integers(5))},
        "limit_damage": {"days": 12 + int(rng.integers(9))},
        "no_limit": {},
        "desk": {"amount": desk},
        "lead": {"amount": desk + 10_000 * (4 + int(rng.integers(8)))},
        "head": {"grounds": _words(grounds), "money": money, "rest": rest},
        "absence": {},
    }
    if rng.random() < 0.6:
        terms["concealed"] = {"days": 2 + int(rng.integers(4))}
    if rng.random() < 0.6:
        terms["photo"] = {}
    checks = ["duplicate", "sender", "too_late"]
    if level > 1:
        if rng.random() < 0.6:
            terms["limit_goodwill"] = {"days": 12 + int(rng.integers(9))}
        if rng.random() < 0.65:
            checks.append("overdue")
            names = [name for name in GROUND_WORDS if rng.random() < 0.5]
            terms["overdue"] = {
                "grounds": _words(["late", *(name for name in names if name != "late")]),
                "days": pick((20, 30, 45), rng),
            }
        if rng.random() < 0.65:
            basic = 1_000 * (40 + int(rng.integers(30)))
            capped = [name for name in CAPPED[1:] if rng.random() < 0.7]
            terms["cap"] = {
                "grounds": _words(["late", *capped]),
                "basic": basic,
                "plus": basic * 2 + 500 * int(rng.integers(20)),
                "prime": basic * 5 + 500 * int(rng.integers(40)),
                "period": pick(PERIODS, rng),
            }
            terms["cap_count"] = {}
        terms["contracts"] = {}
    drawn = [checks[n] for n in rng.permutation(len(checks)).tolist()]
    terms["order"] = {"checks": tuple(CHECKS[name] for name in drawn)}
    return terms


def _words(grounds: list[str]) -> tuple[str, ...]:
    return tuple(GROUND_WORDS[name] for name in GROUND_WORDS if name in grounds)


# --- changes --------------------------------------------------------------------------

_AMENDABLE = ("tiers", "limit_late", "limit_damage", "overdue", "concealed", "goodwill", "causes")


def amendable(policy: Policy) -> tuple[str, ...]:
    """Return the rules of a policy whose numbers may change."""
    return tuple(name for name in _AMENDABLE if name in policy.terms)


def drawn_change(policy: Policy, rule: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return new values of a rule.

    Args:
        policy: As it is.
        rule: One of those that may change.
        rng: Draws them.
    """
    terms = policy.terms[rule]
    if rule == "tiers":
        return {"low": max(1, terms["low"] + pick((-2, -1, 1, 2), rng))}
    if rule == "goodwill":
        return {"amount": terms["amount"] + pick((-500, 500, 1_000), rng)}
    if rule == "causes":
        free = [words for words in CAUSE_WORDS.values() if words not in terms["causes"]]
        return {"causes": (*terms["causes"][1:], pick(free, rng))}
    return {"days": max(1, terms["days"] + pick((-3, -2, 2, 3), rng))}
