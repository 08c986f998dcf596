"""A published tariff is read as it was written, in every wording, and priced by whole numbers."""

import datetime as dt

import numpy as np
import pytest

from owa_bench.company.kinds.tariff.published import draw_published
from owa_bench.company.language.tariff_departures import (
    conditions,
    departure,
    departure_words,
    effects,
    form_count,
    is_form,
)
from owa_bench.company.language.tariff_form import (
    FORM,
    FUEL_CORRECTION,
    FUEL_UNTIL,
    FUEL_WEEK,
    RELEASE,
    RELEASE_TODAY,
    tariff_of,
)
from owa_bench.company.language.tariff_rules import (
    SHIPMENT_FIELDS,
    Tariff,
    engine_prices,
    fuel_percent,
    knobs,
    shipment_facts,
)
from owa_bench.company.language.text import read_all
from owa_bench.seeding import stream

SINCE = dt.date(2031, 1, 6)
SENTENCES = [
    *FORM.sentences.values(),
    *(FUEL_CORRECTION, FUEL_UNTIL, FUEL_WEEK, RELEASE, RELEASE_TODAY),
]


def tariff(seed):
    return tariff_of(draw_published(stream(seed, "t"), SINCE))


TARIFF = Tariff(
    zones={"DE": 0, "FR": 1, "US": 2},
    divisor=5000,
    step_g=500,
    bounds=(10_000, 30_000),
    upper=0,
    sliced=0,
    first=(400, 500, 600),
    kilo=((80, 70, 60), (100, 90, 80), (150, 140, 130)),
    economy=85,
    express=140,
    pieces_from=3,
    pieces_off=5,
    plus=3,
    prime=7,
    minimum=1_000,
    minimum_piece=0,
    fees={"remote": 650, "oversize": 1_800, "saturday": 1_200},
    by_piece={"remote": 0, "oversize": 1, "saturday": 0},
    side_cm=120,
    handling_g=0,
    customs=(),
    value_from=50_000,
    value_rate=40,
    value_whole=0,
    fueled={"remote": 1, "oversize": 0, "saturday": 1},
    rounding=0,
    sections=("weight", "freight", "service", "remote"),
)
SHIPMENT = {
    "country": "FR",
    "remote": True,
    "residential": False,
    "service": "express",
    "plan": "Plus",
    "pickup": dt.date(2031, 7, 12),  # a Saturday
    "pieces": 3,
    "weight_g": 9_800,
    "length_cm": 130,
    "width_cm": 20,
    "height_cm": 10,
    "dangerous": False,
    "declared_cents": 80_000,
}


def price(rules=(), base=TARIFF, **changes):
    rows = [{**SHIPMENT, **changes}]
    return int(engine_prices(base, shipment_facts(rows, base), np.array([1_000]), rules)[0])


def test_a_price_is_what_a_clerk_calculates():
    # 130 x 20 x 10 x 3 / 5000 = 15.6 kg, so 16 kg at 0.90: 5.00 + 14.40 = 19.40; x 1.40 = 27.16;
    # 5 percent off 1.36: 25.80; 3 percent off 0.77: 25.03. Remote 6.50, oversize 54.00,
    # Saturday 12.00. Fuel 10 percent on 25.03 + 6.50 + 12.00 = 4.35. Value 0.40 % of 300.00: 1.20.
    assert price() == 2503 + 650 + 5400 + 1200 + 435 + 120


def test_boundaries_are_as_the_tariff_says():
    at, above = {"weight_g": 10_000, "length_cm": 20}, {"weight_g": 10_001, "length_cm": 20}
    lower, upper = TARIFF, TARIFF._replace(upper=1)
    assert price(**at) > price(**above)  # the band above is cheaper for the whole weight
    assert price(base=upper, **at) < price(base=lower, **at)
    assert price(length_cm=120) < price(length_cm=121) - 5_000
    assert price(declared_cents=50_000) == price(declared_cents=0)


def test_a_sliced_tariff_has_no_jump_at_a_bound():
    sliced = TARIFF._replace(sliced=1, step_g=100)
    at = price(base=sliced, weight_g=30_000, length_cm=20)
    assert 0 <= price(base=sliced, weight_g=30_100, length_cm=20) - at < 40


@pytest.mark.parametrize("seed", range(40))
def test_a_tariff_comes_back_from_its_page(seed):
    policy = draw_published(stream(seed, "t"), SINCE)
    for practice in (False, True):
        page = FORM.write(policy, stream(seed, "w", int(practice)), practice=practice)
        read = FORM.read(page)
        assert read is not None
        assert tariff_of(read) == tariff_of(policy)
        assert (read.title, read.since) == (policy.title, policy.since)
        assert page.isascii()


def test_every_wording_is_read_by_its_sentence_alone():
    values = {}
    for seed in range(60):
        policy = draw_published(stream(seed, "t"), SINCE)
        values.update(policy.terms)
    values["fuel_week"] = {"monday": SINCE, "percent": 1_025}
    values["fuel_until"], values["release"] = {"time": "11:40"}, {"version": "4.6", "first": SINCE}
    values["fuel_correction"] = {"first": SINCE, "percent": 975}
    values["release_today"] = {"version": "4.7", "time": "09:05", "first": SINCE}
    assert set(values) == {sentence.name for sentence in SENTENCES}
    for sentence in SENTENCES:
        assert len(sentence.wordings) >= 3
        seen = set()
        for number in range(40):
            text = sentence.write(stream(number, sentence.name), **values[sentence.name])
            found = read_all(SENTENCES, f"Before. {text} After.")
            assert [reading.name for reading in found] == [sentence.name], text
            assert dict(found[0].values) == values[sentence.name], text
            seen.add(text)
        assert len(seen) > 1


def test_the_grammars_are_wide():
    counts = [form_count(tariff(seed)) for seed in range(10)]
    assert min(counts) > 2_000
    policies = {
        FORM.write(draw_published(stream(n, "t"), SINCE), stream(0, "w")) for n in range(50)
    }
    assert len(policies) == 50
    sections = {draw_published(stream(n, "t"), SINCE).sections for n in range(200)}
    assert len(sections) == 200


def test_every_form_names_a_number_of_the_calculation_and_has_words():
    for seed in range(6):
        base = tariff(seed)
        known = knobs(base)
        texts = set()
        for effect in effects(base):
            assert effect[1] in known
            assert effect[0] in {*base.sections, "new"}
            texts.add(departure_words(departure(effect, conditions(base)[0])))
        for condition in conditions(base):
            assert departure_words(departure(effects(base)[0], condition)).isascii()
        assert len(texts) > 100


def test_no_new_rule_says_what_a_clause_could_say():
    base = tariff(3)
    menu = [effect for effect in effects(base) if effect[0] == "new"]
    for condition in conditions(base):
        if condition[0] in ("remote", "residential", "dangerous"):
            clause = {"dangerous": "danger"}.get(condition[0], condition[0])
            legal = [is_form(base, effect, condition) for effect in menu]
            assert all(legal) == any(legal) == (clause not in base.sections)


def test_a_departure_holds_where_its_condition_does():
    rule = departure(("remote", "remote", "times", 200), ("country", "is", "FR"))
    assert price([rule]) == price() + 650 + 65
    assert price([rule], country="DE") == price(country="DE")


def test_a_correction_ends_with_its_week():
    weeks = {"2031-07-07": 1_000, "2031-07-14": 1_100}
    days = [dt.date(2031, 7, day) for day in (9, 10, 13, 14)]
    found = fuel_percent(days, weeks, ("2031-07-10", 1_250)).tolist()
    assert found == [1_000, 1_250, 1_250, 1_100]


def test_fields_of_a_shipment_are_all_used():
    assert set(SHIPMENT) == set(SHIPMENT_FIELDS)
