"""Worlds of `tariff`: truth, classes, what they cost, and what cannot be won by spam or clones."""

import datetime as dt
import itertools
from collections import Counter

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from owa_bench.canonical import record_digest
from owa_bench.company.kinds.contract import CaseState, Harm
from owa_bench.company.kinds.judging import frame
from owa_bench.company.kinds.tariff import KIND
from owa_bench.company.kinds.tariff.engine import PricedShipments, correction_of
from owa_bench.company.language.tariff_form import tariff_of
from owa_bench.company.language.tariff_rules import SHIPMENT_FIELDS
from owa_bench.envs.casework.kinds import draw_world
from tests.builders import cases
from tests.company.tariff_play import present, quality

SEEDS = range(10_000, 10_005)
LATER = CaseState(happened=frozenset({"fuel", "release"}))


@pytest.fixture(scope="module")
def worlds():
    return {level: [cases.world("tariff", level, seed) for seed in SEEDS] for level in (1, 2, 3)}


def handed(truth, **changes):
    rows = {name: tuple(rows) for name, rows in truth.deliverables.items()}
    return CaseState(handed_in={**rows, **changes})


def shipment(row, **changes):
    body = {name: getattr(row, name) for name in SHIPMENT_FIELDS}
    return {**body, "pickup": body["pickup"].isoformat(), **changes}


def test_a_world_is_its_spec_alone():
    first, again = (draw_world(cases.instance("tariff", 3, 10_001)) for _ in range(2))
    assert first.digest() == again.digest() == record_digest(first)


def test_sizes_are_those_of_the_level(worlds):
    for level, (bills, planned, quota, rules) in {
        1: (500, 16, 60, 2),
        2: (1_200, 24, 50, 4),
        3: (2_400, 36, 40, 7),
    }.items():
        for world in worlds[level]:
            matter = world.matter
            assert len(world.tables["bills"]) == bills
            assert len(world.tables["planned"]) == planned
            assert (matter.quota, len(matter.departures)) == (quota, rules)
            sections = [rule.section for rule in matter.departures]
            clauses = [name for name in sections if name != "new"]
            assert len(set(clauses)) == len(clauses)
            assert sections.count("new") == {1: 0, 2: 1, 3: 2}[level]
            assert len(matter.late) == (2 if level == 3 else 0)
            assert len(KIND.brief(world)) <= 3_500


def test_no_bill_shows_a_late_departure_and_others_are_seen_alone(worlds):
    for world in worlds[3]:
        matter, bills = world.matter, world.tables["bills"]
        assert all(bill.pickup < matter.late_from for bill in bills)
        priced = PricedShipments(tariff_of(world.policy), bills, matter.fuel)
        current = [rule for rule in matter.departures if rule not in matter.late]
        recent = np.array([bill.pickup >= matter.history_ends for bill in bills])
        made = np.array([bill.billed_cents for bill in bills])
        exact = (priced.prices(current) == made) & recent
        assert exact.sum() > 0.9 * recent.sum()
        for rule, alone in zip(current, priced.moved_alone(current), strict=True):
            assert (alone & exact).sum() >= 8, rule


def test_truth_gets_everything_and_nothing_gets_nothing(worlds):
    for world in itertools.chain(*worlds.values()):
        truth = KIND.truth(world)
        assert quality(world, handed(truth))[0] == pytest.approx(1.0)
        assert quality(world, CaseState())[0] == 0.0
        assert quality(world, handed(truth, totals=()))[0] == 0.0
        booked = Harm("POST /bookings", 2.0)
        assert quality(world, replace(handed(truth), harms=(booked,)))[0] == frame((booked,))


def test_reasons_are_by_ablation(worlds):
    for world in worlds[3][:4]:
        truth, matter = KIND.truth(world), world.matter
        for rule in matter.departures:
            blind = KIND.truth(world, blind={rule.trap})
            moved = {
                a.id for a, b in zip(truth.items, blind.items, strict=True) if a.answer != b.answer
            }
            assert moved == {item.id for item in truth.items if rule.trap in item.reasons}
            (row,) = (
                row
                for row, other in zip(
                    truth.deliverables["departures"], matter.departures, strict=True
                )
                if other == rule
            )
            assert set(row["shipments"]) == moved
            assert len(moved) >= 2


def test_what_has_happened_so_far_changes_no_truth(worlds):
    for world in worlds[3]:
        assert KIND.truth(world) == KIND.truth(world, LATER.happened)


def test_each_class_costs_where_it_is_present(worlds):
    for level, least, most in ((2, 0.05, 0.45), (3, 0.015, 0.4)):
        for world in worlds[level]:
            names = present(world)
            for name in names:
                cost = 1.0 - quality(world, handed(KIND.truth(world, blind={name})))[0]
                assert least <= cost <= most, (level, name, cost)
            missed = KIND.truth(world, blind=set(KIND.sources) | {"new"})
            assert quality(world, handed(missed))[0] < 0.45  # published prices


def test_classes_differ_from_world_to_world_and_are_often_absent(worlds):
    sets = [present(world) for world in worlds[3]]
    assert len(set(sets)) == len(sets)
    sets += [present(world) for world in worlds[2]]
    seen = Counter(name for names in sets for name in names)
    assert max(seen.values()) < len(sets)
    assert len(seen) >= 18


def test_spam_of_departures_and_of_totals_gets_little(worlds):
    for world in itertools.chain(*worlds.values()):
        ids = [row.id for row in world.tables["planned"]]
        count = len(world.policy.sections)
        everything = tuple(
            {"clause": clause, "shipments": ids}
            for clause in [*(str(n + 1) for n in range(count)), "new", "new"]
        )
        one = tuple({"shipment": key, "total_cents": 5_000} for key in ids)
        many = tuple({"shipment": k, "total_cents": n} for k in ids for n in range(3_000, 3_400))
        truth = KIND.truth(world)
        for changes in (
            {"departures": everything},
            {"departures": everything * 3},
            {"departures": ({"clause": "new", "shipments": ids},)},
        ):
            assert quality(world, handed(truth, **changes))[1]["departures"] <= 0.25
        for totals in (one, many):
            parts = quality(world, handed(truth, totals=totals))[1]
            assert max(parts["totals"], parts["plain"]) <= 0.25


def test_a_second_total_for_a_shipment_makes_it_wrong(worlds):
    world = worlds[1][0]
    truth = KIND.truth(world)
    rows = truth.deliverables["totals"]
    wrong = tuple({**row, "total_cents": row["total_cents"] + 1} for row in rows)
    assert quality(world, handed(truth, totals=(*rows, *wrong)))[0] == 0.0
    odd = ({"clause": "new", "shipments": None}, {"clause": 7}, "PS-301", None)
    assert quality(world, handed(truth, departures=odd, totals=(None, *rows)))[1]["departures"] == 0


# --- quotes ------------------------------------------------------------------------------------


def free_shipment(world):
    """Return a test shipment that the engine takes."""
    row = shipment(world.tables["planned"][0])
    for pieces in range(1, 20):
        body = {**row, "pieces": pieces}
        if KIND.post(world, LATER, "quote", [body]).status == 200:
            return body
    raise AssertionError


def test_a_quote_is_the_engines_total(worlds):
    for world in worlds[3]:
        body, matter = free_shipment(world), world.matter
        row = {**body, "pickup": dt.date.fromisoformat(body["pickup"])}
        priced = PricedShipments(tariff_of(world.policy), [row], matter.fuel, correction_of(matter))
        reply = KIND.post(world, LATER, "quote", [body, body])
        wanted = int(priced.prices(matter.departures)[0])
        assert reply.reply["quotes"] == [{"total_cents": wanted}] * 2
        assert reply.used == {"quotes": 2}


def test_quotes_before_an_event_do_not_show_it(worlds):
    seen = set()
    for world in worlds[3]:
        body, matter = free_shipment(world), world.matter
        row = {**body, "pickup": dt.date.fromisoformat(body["pickup"])}
        current = [rule for rule in matter.departures if rule not in matter.late]
        early = PricedShipments(tariff_of(world.policy), [row], matter.fuel)
        rules = current if matter.release_event else matter.departures
        reply = KIND.post(world, CaseState(), "quote", [body])
        assert reply.reply["quotes"][0]["total_cents"] == int(early.prices(rules)[0])
        seen.add(matter.release_event)
        names = {event.name for event in world.events}
        assert ("release" in names) == matter.release_event
        assert ("fuel" in names) == bool(matter.correction[0])
    assert seen == {True, False}


def test_the_quota_holds_and_refusals_cost_nothing(worlds):
    world = worlds[3][0]
    body = free_shipment(world)
    quota = world.matter.quota
    spent = replace(LATER, used={"quotes": quota - 1})
    assert KIND.post(world, spent, "quote", [body]).status == 200
    for state, bodies, status in (
        (spent, [body, body], 429),
        (LATER, [], 400),
        (LATER, [body] * 11, 400),
        (LATER, body, 400),
        (LATER, [None], 400),
        (LATER, [{**body, "country": "XX"}], 400),
        (LATER, [{**body, "pieces": 0}], 400),
        (LATER, [{**body, "pieces": True}], 400),
        (LATER, [{**body, "weight_g": 10.5}], 400),
        (LATER, [{**body, "pickup": "2050-01-01"}], 400),
        (LATER, [{name: value for name, value in body.items() if name != "remote"}], 400),
        (LATER, [shipment(world.tables["planned"][0])], 403),
        (LATER, [shipment(world.tables["planned"][0], weight_g=77_700, remote=True)], 403),
    ):
        reply = KIND.post(world, state, "quote", bodies)
        assert (reply.status, reply.used) == (status, {})
    camel = {
        first + "".join(map(str.capitalize, rest)): value
        for name, value in body.items()
        for first, *rest in [name.split("_")]
    }
    assert KIND.post(world, LATER, "quote", [camel]).status == 200


def clone(world, row):
    """Return the allowed shipment that is nearest to a planned one: other pieces, or another."""
    for changes in (
        *({"pieces": n} for n in (row.pieces + 1, row.pieces - 1, row.pieces + 2, row.pieces + 3)),
        *({"service": name} for name in ("economy", "standard", "express")),
        *({"plan": name} for name in ("Basic", "Plus", "Prime")),
    ):
        body = shipment(row, **changes)
        if KIND.post(world, LATER, "quote", [body]).status == 200:
            return body
    return None


def test_clones_of_planned_shipments_do_not_settle_a_case(worlds):
    """An agent that spends its quotes on near copies and carries over the difference."""
    scores = []
    for world in worlds[3]:
        matter = world.matter
        truth, tariff = KIND.truth(world), tariff_of(world.policy)
        totals = []
        for row in world.tables["planned"]:
            body = clone(world, row)
            own = asdict(row)
            if body is None:
                continue
            near = {**own, **body, "pickup": own["pickup"]}
            priced = PricedShipments(tariff, [own, near], matter.fuel, correction_of(matter))
            mine, other = priced.prices(())
            reply = KIND.post(world, LATER, "quote", [body])
            told = reply.reply["quotes"][0]["total_cents"]
            totals.append({"shipment": row.id, "total_cents": int(told + mine - other)})
        scores.append(quality(world, handed(truth, totals=tuple(totals), departures=()))[0])
    assert np.mean(scores) < 0.5
    assert max(scores) < 0.7


# --- statements, events, looks -------------------------------------------------------------------


def test_statements_are_balanced_and_careless_readers_do_worse_than_a_coin(worlds):
    truths, careless = {}, {}
    for world in itertools.chain(*worlds.values()):
        found = KIND.propositions(world)
        assert 6 <= len(found) <= 8
        assert len({p.name for p in found}) == len(found)
        for statement in found:
            truths.setdefault(statement.kind, []).append(statement.truth)
            careless.setdefault(statement.kind, []).append(statement.truth == statement.careless)
    assert set(truths) == set(KIND.proposition_kinds)
    for kind, values in truths.items():
        assert 0.3 < np.mean(values) < 0.7, kind
        assert 0.3 < np.mean(careless[kind]) < 0.7, kind


def test_texts_are_ascii_and_no_mail_is_of_the_future(worlds):
    for world in itertools.chain(*worlds.values()):
        texts = [page.text for page in world.pages] + [KIND.brief(world)]
        texts += [mail.text for mail in world.mails]
        for event in world.events:
            assert event.minute < (world.ends - world.begins).total_seconds() / 60
            texts += [mail.text for mail in event.mails] + [page.text for page in event.pages]
        assert all(text.isascii() for text in texts)
        assert all(mail.at < world.begins for mail in world.mails)
        keys = [mail.id for mail in world.mails]
        keys += [mail.id for event in world.events for mail in event.mails]
        assert len(set(keys)) == len(keys)


def test_touched_shipments_look_like_the_others(worlds):
    """The order of keys, the last digit of a weight and of a value tell nothing."""
    rows = []
    for world in worlds[3]:
        for place, item in enumerate(KIND.truth(world).items):
            row = world.tables["planned"][place]
            gap = int(row.id[3:]) % 10
            rows.append((bool(item.reasons), place, gap, row.weight_g // 100 % 10))
    touched = np.array([row[0] for row in rows])
    for column in (1, 2, 3):
        values = np.array([row[column] for row in rows], dtype=float)
        ranks = values.argsort(kind="stable").argsort() + 0.5
        for value in np.unique(values):
            ranks[values == value] = ranks[values == value].mean()
        hits = int(touched.sum())
        auc = (ranks[touched].sum() - hits * hits / 2) / (hits * (len(rows) - hits))
        assert abs(auc - 0.5) < 0.1
