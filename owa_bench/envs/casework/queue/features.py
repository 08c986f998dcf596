"""The features of a request before any look-up, as numbers in [0, 1]."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.kinds.credits.records import CreditRecords
from owa_bench.company.kinds.credits.requests import CreditRequest
from owa_bench.company.kinds.credits.truth import policy_in_force
from owa_bench.company.language.credits_policy import (
    CAUSE_WORDS,
    CODES,
    GROUND_WORDS,
    GROUNDS,
    SIGNATURE,
)
from owa_bench.company.language.credits_rules import CreditFacts
from owa_bench.company.language.policy import PolicyTerms
from owa_bench.envs.casework.queue.look_ups import EVENT_SOURCES, blind_sources

_NONE: frozenset[str] = frozenset()
_BLIND = blind_sources(0) | {*EVENT_SOURCES}
_REFERENCES = ("order", "invoice", "shipment", "vague")
_PLANS = ("Basic", "Plus", "Prime")
# Decision and code of an answer; an approved and a proposed credit have their ground as code.
_ENDS = ("approve", "escalate", *(c for d in ("refuse", "ask", "close") for c in CODES[d]))
ANSWER_SIZE = len(_ENDS) + 1
CreditAnswer = tuple[str, str, int, str]  # decision, code, amount in cents, approver


def answer_features(answer: CreditAnswer, desk_cents: int) -> npt.NDArray[np.float32]:
    """Return an answer as numbers: which end it is, and the amount as a share.

    Args:
        answer: As far as it is known.
        desk_cents: What the desk approves itself.
    Returns: (ANSWER_SIZE,), in [0, 1].
    """
    decision, code, cents, _ = answer
    row = np.zeros(ANSWER_SIZE, np.float32)
    row[_ENDS.index(decision if decision in _ENDS else code)] = 1.0
    row[-1] = min(1.0, cents / (2 * desk_cents))
    return row


def request_features(world: CaseWorld, records: CreditRecords) -> npt.NDArray[np.float32]:
    """Return what is known of every request before any look-up.

    Args:
        world: Of the kind `credits`.
        records: Its tables.
    Returns: (requests, n), in [0, 1].
    """
    policy = policy_in_force(world.policy, _NONE, _BLIND)
    rows = []
    for request in world.matter.requests:
        terms = policy.at(request.received.date())
        facts = records.facts(request, terms, (), _NONE, _BLIND)
        age = (world.begins.date() - request.received.date()).days
        rows.append(
            [
                *_letter(request, facts),
                min(1.0, age / 14),
                *_delivery(records, request, terms, facts),
                *_ground(terms, facts),
                min(1.0, len(records.delays.get(records.orders[request.order].shipment, ())) / 3),
            ]
        )
    return np.clip(np.array(rows, np.float32), 0.0, 1.0)


def _letter(request: CreditRequest, facts: CreditFacts) -> list[float]:
    letter = request.letter
    return [
        *(float(letter.ground == name) for name in GROUNDS),
        *(float(letter.reference == name) for name in _REFERENCES),
        *(float(facts.plan == name) for name in _PLANS),
        float(letter.picture),
        facts.pieces / 10,
        float(letter.delivered is not None and letter.delivered != facts.delivered),
        float(letter.instruction),
    ]


def _delivery(
    records: CreditRecords, request: CreditRequest, terms: PolicyTerms, facts: CreditFacts
) -> list[float]:
    """Return days since delivery, room to the time limit, delay beside the steps of the credit."""
    order = records.orders[request.order]
    scanned = terms["delivery"]["stamp"] == SIGNATURE  # without the proofs the other stamp is taken
    stamp: Any = (
        records.shipments[order.shipment].delivered_at
        if scanned
        else records.proofs[order.shipment].signed_at
    )
    days = (facts.received - facts.delivered).days
    limit = terms.get(f"limit_{facts.ground}", {}).get("days")
    tiers = terms["tiers"]
    steps = [tiers[name] for name in ("first", "second", "third")]
    return [
        days / 40,
        0.0 if limit is None else (limit - days + 10) / 40,
        float(limit is not None and days > limit),
        facts.late_days / 10,
        *(float(facts.late_days >= step) for step in steps),
        float(any(0 < step - facts.late_days <= 1 for step in steps)),
        float(facts.late_days in steps),
        stamp.hour / 24,
        float(scanned),
    ]


def _ground(terms: PolicyTerms, facts: CreditFacts) -> list[float]:
    """Return what the policy's page says on the ground, and the facts that it asks for."""
    excused = terms.get("causes", {}).get("causes", ())
    overdue = terms.get("overdue", {}).get("grounds", ())
    hidden = "concealed" in terms and not facts.remark
    room = terms["concealed"]["days"] - facts.days_since if hidden else 0
    return [
        math.log1p(facts.net_cents) / 15,
        float(GROUND_WORDS[facts.ground] in overdue),
        float(bool(facts.cause)),
        float(facts.cause in CAUSE_WORDS and CAUSE_WORDS[facts.cause] in excused),
        float(facts.plan in terms["goodwill"]["plans"]),
        float(hidden),
        (room + 5) / 10,
        float("photo" in terms),
        facts.discount / 20,
        float(bool(facts.second_cents)),
    ]
