"""What the policy, bank texts and mails of the kind `close` say is read again."""

import datetime as dt

import numpy as np
import pytest

from owa_bench.company.kinds.close.plan import draw_plan, draw_terms
from owa_bench.company.language.close_policy import (
    AREA,
    BOOKING,
    CHECKS,
    DISCOUNT_CLAUSE,
    FILLS,
    FORM,
    GROSS,
    LEFT_OUT,
    OPTIONAL,
    TIES,
)
from owa_bench.company.language.close_records import named_advice, named_numbers
from owa_bench.company.language.close_texts import (
    ADVICE,
    ADVICE_PART,
    DISCOUNT_TAILS,
    NAMES_ADVICE,
    NOTICE,
    PAID_TAILS,
    PAYS,
    PAYS_SEVERAL,
    STATEMENTS,
    read_advice,
    read_bank_days,
    write_bank_days,
)
from owa_bench.company.language.policy import Policy, with_amendments
from owa_bench.company.language.text import read_all
from owa_bench.seeding import stream

DAY = dt.date(2031, 6, 12)
VALUES = {
    "month": {"basis": BOOKING},
    "factor": {"percent": 3},
    "several": {"order": FILLS[1]},
    "amount": {"tie": TIES[2]},
    "sums": {"count": 4},
    "discount": {"day": BOOKING, "base": GROSS},
    "order": {"checks": CHECKS},
    "charges": {"home": 300, "abroad": 2_500, "area": AREA[:5]},
    "surplus": {"limit": 500},
    "open_items": {"credits": LEFT_OUT},
    "discount_clause": {"percent": 3, "days": 12},
    "line_pays": {"line": "BL-204001", "verb": "does not pay", "invoice": "RE-318004"},
    "line_exceptions": {"line": "BL-204001", "than": "more than", "cents": 1_250},
    "owes": {"customer": "C-10400", "than": "at most", "cents": 99},
    "still_open": {"invoice": "RE-318004", "than": "more than", "cents": 100_000},
}
SENTENCES = [*FORM.sentences.values(), DISCOUNT_CLAUSE, *STATEMENTS]


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.name)
def test_each_wording_is_read_as_itself_alone(sentence):
    rng = stream(1, "wordings")
    values = VALUES.get(sentence.name, {})
    assert len(sentence.wordings) >= 3
    for wording in sentence.wordings:
        texts = {name: slot.write(values[name], rng) for name, slot in sentence.slots.items()}
        (reading,) = read_all(SENTENCES, f"3 Payers. {wording.format(**texts)} Other words.")
        assert (reading.name, dict(reading.values)) == (sentence.name, values)


def policy_of(seed, level):
    rng = stream(seed, "policy", level)
    terms = draw_terms(level, draw_plan(level, rng), rng)
    return Policy(title="CA-7", since=DAY, sections=tuple(FORM.sections), terms=terms), rng


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_policy_is_read_with_all_that_it_says(level):
    for seed in range(25):
        policy, rng = policy_of(seed, level)
        read = FORM.read(FORM.write(policy, rng, practice=bool(seed % 2)))
        assert read == policy


def test_policies_hardly_ever_repeat():
    policies = {repr(sorted(policy_of(seed, 3)[0].terms.items())) for seed in range(300)}
    assert len(policies) == 300  # of 10^4 equally likely ones, 4 pairs would be expected
    found = {
        name: {repr(policy_of(seed, 3)[0].terms.get(name)) for seed in range(300)}
        for name in FORM.sentences
    }
    assert all(len(found[name]) >= 2 for name in OPTIONAL)
    assert np.prod([float(len(values)) for values in found.values()]) > 1e8


def test_an_amendment_is_read_with_its_day():
    policy, rng = policy_of(3, 3)
    amended = policy.amended("charges", DAY, abroad=1_111)
    text = FORM.write_amendment(amended, amended.amendments[0], rng)
    assert with_amendments(policy, FORM.read_amendments(text, "CA-7")) == amended


@pytest.mark.parametrize("tail", [*PAID_TAILS, *DISCOUNT_TAILS])
def test_every_text_names_its_invoice_alone(tail):
    rng = stream(2, "texts")
    tail = tail.format(day=DAY, customer="C-10412", percent=3)
    for wording in PAYS.wordings:
        for digits in ("318204", "318-204"):
            assert named_numbers(wording.format(number=digits) + tail) == ("RE-318204",)
    for wording in PAYS_SEVERAL.wordings:
        for joint in ("/", ", ", " + ", " u. ", " "):
            text = wording.format(numbers=joint.join(("318204", "318001", "320777")))
            assert named_numbers(text) == ("RE-318204", "RE-318001", "RE-320777")
    for wording in NAMES_ADVICE.wordings:
        text = wording.format(advice="AV-31820")
        assert (named_advice(text), named_numbers(text)) == ("AV-31820", ())
    assert named_advice(PAYS.write(rng, number="318204")) == ""


def test_advices_are_read_with_their_parts():
    rng = stream(4, "advice")
    parts = (("RE-318204", 125_000), ("RE-318001", 99), ("RE-320777", 1_234_567))
    for head in ADVICE.wordings:
        for _ in range(8):
            total = ADVICE.slots["total"].write(sum(cents for _, cents in parts), rng)
            rows = [ADVICE_PART.write(rng, invoice=key, cents=cents) for key, cents in parts]
            text = "\n".join(
                ("Hello,", head.format(advice="AV-31820", total=total), *rows, "Yours")
            )
            assert read_advice(text) == ("AV-31820", parts)
    assert read_advice("Please send us a statement of account for RE-318204: 12.00 EUR.") is None


def test_a_notice_after_a_greeting_is_read():
    rng = stream(5, "notice")
    for _ in range(40):
        said = NOTICE.write(rng, first=DAY, payer="Kontor Clearing AG")
        (reading,) = NOTICE.read(f"Good morning,\n{said}\nKind regards")
        assert dict(reading.values) == {"first": DAY, "payer": "Kontor Clearing AG"}


def test_bank_days_are_read_and_may_be_none():
    days = frozenset({DAY, dt.date(2031, 6, 2)})
    assert read_bank_days(write_bank_days(days)) == ["2031-06-02", "2031-06-12"]
    assert read_bank_days(write_bank_days(frozenset())) == []
