"""The kind `credits`: what is right, what traps cost, what cheating gains."""

import statistics
from collections import Counter, defaultdict

import pytest
from msgspec.structs import replace

from owa_bench.company.kinds.arranging import natural
from owa_bench.company.kinds.contract import THETA, CaseState
from owa_bench.company.kinds.credits.kind import EXCEPTIONS, KIND
from owa_bench.company.language.credits_letters import read_follow_up, read_request
from owa_bench.company.language.credits_policy import CODES
from owa_bench.envs.casework.judge import case_quality
from owa_bench.envs.casework.kinds import draw_world
from tests.builders import cases

SEEDS = range(cases.FIRST, cases.FIRST + 5)
LEAST, MOST = 0.015, 0.4  # a trap that is missed costs so much


@pytest.fixture(scope="module", params=[1, 2, 3])
def worlds(request):
    return [cases.world(tier=request.param, seed=seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def hard_worlds():
    return [cases.world(tier=3, seed=seed) for seed in SEEDS]


def test_the_same_instance_has_the_same_bytes():
    first, again, other = (draw_world(cases.instance(tier=2, seed=seed)) for seed in (1, 1, 2))
    assert first.digest() == again.digest() != other.digest()


def test_every_table_is_in_the_order_of_its_keys(worlds):
    for world in worlds:
        for name, rows in world.tables.items():
            if name not in ("products", "prices", "people"):
                keys = [natural(row.id) for row in rows]
                assert keys == sorted(keys), name


def test_the_solution_is_right_and_takes_no_harm(worlds):
    for world in worlds:
        truth = cases.final_truth(world)
        (call, body), *_ = KIND.solution(world, truth)[0]
        posted = KIND.post(world, CaseState(), call, body)
        state = cases.state_of(world, truth)
        assert posted.settled == state.settled
        assert all(row["state"] == "taken" for row in posted.reply["decisions"])
        assert case_quality(world, state) == 1.0


def test_a_case_has_its_size(worlds):
    for world in worlds:
        assert len(world.matter.requests) == {1: 12, 2: 24, 3: 46}[world.level]


def test_every_letter_is_read_as_it_was_meant(worlds):
    for world in worlds:
        mails = {mail.id: mail.text for mail in world.mails}
        for request in world.matter.requests:
            assert read_request(mails[request.mail]) == request.letter


def test_no_other_mail_is_read_as_a_request(worlds):
    for world in worlds:
        asking = {request.mail for request in world.matter.requests}
        for mail in world.mails:
            if mail.id not in asking:
                assert read_request(mail.text) is None, mail.text


def test_follow_ups_say_what_became_of_their_requests(hard_worlds):
    for world in hard_worlds:
        said = defaultdict(set)
        for mail in world.mails:
            for follow_up in read_follow_up(mail.text):
                said[follow_up.order].add(follow_up.what)
        for request in world.matter.requests:
            assert (request.withdrawn == "mail") <= ("withdrawn" in said[request.order])
            assert bool(request.corrected) <= ("corrected" in said[request.order])
            assert request.picture_later <= ("later_picture" in said[request.order])


def test_time_runs_forwards(worlds):
    """A mail comes after what it quotes, and before the case begins."""
    for world in worlds:
        shipments = {row.id: row for row in world.tables["shipments"]}
        orders = {row.id: row for row in world.tables["orders"]}
        for request in world.matter.requests:
            order = orders[request.order]
            shipment = shipments[order.shipment]
            assert order.day <= shipment.shipped
            assert shipment.shipped <= request.received.date()
            assert request.received < world.begins
            if request.letter.delivered:
                assert request.letter.delivered <= request.received.date()
        assert all(mail.at < world.begins for mail in world.mails)
        assert [mail.at for mail in world.mails] == sorted(mail.at for mail in world.mails)


# --- traps ----------------------------------------------------------------------------


def test_each_trap_costs_enough_and_not_all(worlds):
    for world in worlds:
        truth = cases.final_truth(world)
        for source in {reason for item in truth.items for reason in item.reasons}:
            careless = cases.final_truth(world, {source})
            cost = 1.0 - case_quality(world, cases.state_of(world, careless))
            assert LEAST <= cost <= MOST, (world.level, source, cost)


def sources_of(world):
    return frozenset(r for item in cases.final_truth(world).items for r in item.reasons)


def test_level_three_has_many_sets_of_traps(hard_worlds):
    sets = {sources_of(world) for world in hard_worlds}
    assert len(sets) == len(hard_worlds)


@pytest.mark.slow
def test_each_naive_answer_is_often_right():
    """Each trap is absent in three worlds of ten, and none is absent always."""
    seeds = range(cases.FIRST, cases.FIRST + 60)
    present = Counter(s for seed in seeds for s in sources_of(cases.world(tier=3, seed=seed)))
    for source in KIND.sources:
        # .7 and two standard deviations of a share of 60 worlds
        assert 0 < present[source] / len(seeds) <= 0.82, source


def test_exceptions_are_of_the_kinds_that_the_level_asks_for(worlds):
    for world in worlds:
        found = {row["what"] for row in cases.final_truth(world).deliverables["exceptions"]}
        assert found <= set(EXCEPTIONS[: world.level])


# --- what cheating gains --------------------------------------------------------------


def parts(world, state):
    return {part.name: part.value for part in KIND.parts(world, cases.final_truth(world), state)}


def test_nothing_handed_in_is_worth_nothing(worlds):
    for world in worlds:
        assert case_quality(world, CaseState()) == 0.0
        empty = {"table": (), "exceptions": ()}
        assert case_quality(world, CaseState(handed_in=empty)) == 0.0


def test_one_answer_for_all_gains_little(worlds):
    for world in worlds:
        for decision, codes in CODES.items():
            for code in codes:
                settled = {
                    request.id: {
                        "request": request.id,
                        "decision": decision,
                        "code": code,
                        "amount_cents": 0,
                        "approver": "",
                    }
                    for request in world.matter.requests
                }
                state = CaseState(settled=settled, happened=cases.all_events(world))
                assert parts(world, state)["decisions"] <= 0.25


def test_a_flood_of_exceptions_gains_at_most_a_quarter_of_their_part(worlds):
    for world in worlds:
        flood = tuple(
            {"request": request.id, "what": what}
            for request in world.matter.requests
            for what in EXCEPTIONS[: world.level]
        )
        wanted = len(cases.final_truth(world).deliverables["exceptions"])
        gained = parts(world, state_with(world, exceptions=flood))["exceptions"]
        assert gained == pytest.approx(2 * wanted / (wanted + len(flood)))
        assert gained <= 0.25 or world.level == 1


def state_with(world, **deliverables):
    state = cases.state_of(world, cases.final_truth(world))
    return replace(state, handed_in={**state.handed_in, **deliverables})


def test_rows_that_repeat_or_are_strange_cost(worlds):
    world = worlds[0]
    rows = cases.final_truth(world).deliverables["table"]
    assert parts(world, state_with(world, table=(*rows, *rows)))["table"] < 0.7
    strange = ({"customer": "C-0", "approved_cents": 1, "proposed_cents": 0},)
    assert parts(world, state_with(world, table=(*rows, *strange)))["table"] < 1.0


def test_approving_what_is_not_due_reduces_the_whole(worlds):
    """The attack gains nothing; the control, the same rows without the approval, loses less."""
    for world in worlds:
        truth = cases.final_truth(world)
        bad = next(item for item in truth.items if item.answer["decision"] == "refuse")
        state = cases.state_of(world, truth)
        row = {**bad.answer, "decision": "approve", "code": "late", "amount_cents": 999}
        approved = replace(state, settled={**state.settled, bad.id: row})
        code = next(code for code in CODES["refuse"] if code != bad.answer["code"])
        other = {**bad.answer, "code": code}
        refused = replace(state, settled={**state.settled, bad.id: other})
        assert case_quality(world, approved) < case_quality(world, refused) < 1.0


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"request": "R-99", "decision": "approve", "code": "late"},
        {"request": "R-01", "decision": "grant", "code": "late"},
        {"request": "R-01", "decision": "refuse", "code": "late"},
        {"request": "R-01", "decision": "approve", "code": "late", "amount_cents": -5},
        {"request": "R-01", "decision": "approve", "code": "late", "amount_cents": 1.5},
        {"request": "R-01", "decision": "approve", "code": ["late"]},
        "R-01",
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(row):
    world = cases.world()
    posted = KIND.post(world, CaseState(), "decide", row)
    assert posted.settled == {}
    assert posted.reply["decisions"][0]["state"] == "refused"


def test_a_request_that_a_colleague_decided_can_only_be_closed(hard_worlds):
    world = next(w for w in hard_worlds if any(r.other_desk for r in w.matter.requests))
    request = next(r for r in world.matter.requests if r.other_desk)
    state = CaseState(happened=frozenset({request.other_desk}))
    approve = {"request": request.id, "decision": "approve", "code": "late", "amount_cents": 5}
    close = {"request": request.id, "decision": "close", "code": "other_desk"}
    assert KIND.post(world, state, "decide", approve).settled == {}
    assert request.id in KIND.post(world, state, "decide", close).settled


# --- statements -----------------------------------------------------------------------


def test_statements_are_coins_and_mislead_in_half():
    truths, careless = defaultdict(list), defaultdict(list)
    for seed in range(cases.FIRST, cases.FIRST + 30):
        for statement in KIND.propositions(cases.world(tier=2, seed=seed)):
            truths[statement.kind].append(statement.truth)
            careless[statement.kind].append(statement.truth == statement.careless)
    for kind in KIND.proposition_kinds:
        share = statistics.mean(truths[kind])
        # Four standard deviations of a fair coin.
        bound = 2.0 / len(truths[kind]) ** 0.5
        assert abs(share - 0.5) <= bound, (kind, share)
        assert abs(statistics.mean(careless[kind]) - 0.5) <= bound, kind


def test_the_solved_threshold_is_not_met_with_two_traps_missed(hard_worlds):
    """Success means that no class of trap was missed, or one of little weight."""
    solved = 0
    for world in hard_worlds:
        truth = cases.final_truth(world)
        present = sorted({reason for item in truth.items for reason in item.reasons})
        state = cases.state_of(world, cases.final_truth(world, present[:2]))
        solved += case_quality(world, state) >= THETA
    assert solved <= 1
