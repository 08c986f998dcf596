"""The queue view: exact answers for what was looked at, nothing of what was not."""

import datetime as dt
import itertools
import pickle  # noqa: TID251  trainers copy envs so

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from msgspec.structs import replace

from owa_bench.company.kinds.credits.kind import KIND
from owa_bench.company.tables import CreditNote, CustomerContract, OrderLine
from owa_bench.envs.casework.judge import case_quality
from owa_bench.envs.casework.kinds import draw_case
from owa_bench.envs.casework.queue.case import QueueCase, queue_case, small_world
from owa_bench.envs.casework.queue.env import ACTIONS, HAND_IN, LOOK_AGAIN, MINUTES, NEXT, SETTLE
from owa_bench.envs.casework.queue.look_ups import ALL, EVENT_SOURCES, LOOK_UPS, blind_sources
from owa_bench.errors import FieldError, UsageError
from owa_bench.seeding import stream

ENV_ID = "owa_bench/CaseQueueFast-v1"
NUMBERS = {one.name: number for number, one in enumerate(LOOK_UPS)}


def make(**options):
    return gymnasium.make(ENV_ID, **options).unwrapped


def events(case):
    return frozenset(event.name for event in case.world.events)


def play(env, choose):
    """Play an episode by a rule of the env and its open actions; return the rewards."""
    rewards, over = [], False
    while not over:
        action = choose(env, np.flatnonzero(env.action_masks()).tolist())
        _, reward, over, _, info = env.step(action)
        assert not info
        rewards.append(reward)
    return rewards


def look_at_all(env, open_actions):
    """Every look-up, then settle; look again at new mails; hand in at the end."""
    if env.unread and LOOK_AGAIN in open_actions:
        return LOOK_AGAIN
    if open_actions[0] < SETTLE:
        return open_actions[0]
    if SETTLE in open_actions:
        return SETTLE
    return NEXT if env.waiting else HAND_IN


def at_random(rng):
    def choose(env, open_actions):
        if HAND_IN in open_actions and env.minutes_left > 9:
            open_actions.remove(HAND_IN)
        return int(rng.choice(open_actions))

    return choose


# --- what is computed ------------------------------------------------------------------


def test_each_source_is_opened_by_one_look_up_or_by_looking_again():
    named = [source for one in LOOK_UPS for source in one.sources]
    assert sorted([*named, *EVENT_SOURCES]) == sorted(KIND.sources)
    assert blind_sources(ALL) == frozenset()


@pytest.mark.parametrize("level", [1, 2, 3])
def test_an_answer_is_that_of_a_reader_of_these_sources_alone(level):
    """By the kind's own truth over the whole world, for sets of look-ups and of events."""
    world, rng = draw_case("credits", level, 11), stream(1, "sets")
    case = QueueCase(world)
    names = sorted(events(case))
    for _ in range(6):
        mask = int(rng.integers(ALL + 1))
        known = frozenset(name for name in names if rng.random() < 0.5)
        truth = KIND.truth(world, known, blind_sources(mask))
        for place, item in enumerate(truth.items):
            answer = item.answer
            assert case.answer(place, known, mask) == (
                answer["decision"],
                answer["code"],
                answer["amount_cents"],
                answer["approver"],
            )


def test_a_world_without_other_customers_has_the_same_truth():
    world = draw_case("credits", 3, 11)
    small = small_world(world)
    happened = frozenset(event.name for event in world.events)
    assert KIND.truth(small, happened) == KIND.truth(world, happened)
    assert len(small.tables["orders"]) < len(world.tables["orders"]) / 4


@pytest.mark.parametrize("level", [1, 2, 3])
def test_rewards_sum_to_the_quality_by_the_judge(level):
    env, rng = make(level=level), stream(level, "play")
    for seed in (12, 13):
        env.reset(options={"case": seed})
        found = sum(play(env, at_random(rng)))
        state = env.state()
        assert found == pytest.approx(
            case_quality(draw_case("credits", level, seed), state), abs=2e-6
        )
    assert found > 0


@pytest.mark.parametrize("level", [1, 2, 3])
def test_with_time_for_everything_every_look_up_gives_everything(level):
    env = make(level=level, minutes=40)
    for seed in (12, 13, 14):
        env.reset(options={"case": seed})
        assert sum(play(env, look_at_all)) == pytest.approx(1.0, abs=1e-6)


def test_the_day_is_too_short_for_every_look_up():
    env = make(level=3)
    env.reset(options={"case": 12})
    count = len(env.case.requests)
    assert sum(MINUTES[: len(LOOK_UPS)]) * count > 2 * env.minutes_left
    assert sum(play(env, look_at_all)) < 0.8


def test_nothing_is_gained_without_look_ups():
    """Settling at once, handing in at once, posting the same again: none of them pays."""
    env = make(level=3)
    for seed in (12, 13, 14):
        env.reset(options={"case": seed})
        assert env.step(HAND_IN)[1:3] == (0.0, True)
        env.reset(options={"case": seed})
        careless = sum(play(env, lambda e, found: SETTLE if SETTLE in found else HAND_IN))
        assert careless < 0.6
        env.reset(options={"case": seed})
        while env.unsettled:
            env.step(SETTLE)
        assert not env.action_masks()[SETTLE]
        assert env.step(SETTLE)[1] == 0.0


# --- what is seen ----------------------------------------------------------------------


def _changed(world, table, change, where=lambda row: True):
    rows = tuple(change(row) if where(row) else row for row in world.tables[table])
    return replace(world, tables={**world.tables, table: rows})


def _requests(world, **fields):
    requests = tuple(replace(r, **fields) for r in world.matter.requests)
    return replace(world, matter=replace(world.matter, requests=requests))


def _pages(world):
    policy = world.policy
    checks = tuple(reversed(policy.terms["order"]["checks"]))
    terms = {**policy.terms, "order": {"checks": checks}}
    terms["cap"] = {
        "grounds": ("late deliveries", "damage"),
        "basic": 100,
        "plus": 200,
        "prime": 300,
        "period": "month",
    }
    policy = replace(policy, terms=terms)
    first = world.begins.date() - dt.timedelta(20)
    return replace(world, policy=policy.amended("tiers", first, low=1, middle=1, high=2))


def _calendars(world):
    swap = {"DE": "US", "US": "DE"}
    return _changed(
        world, "customers", lambda row: replace(row, country=swap.get(row.country, "US"))
    )


def _delivery(world):
    week = dt.timedelta(6)
    if "signature" in world.policy.terms["delivery"]["stamp"]:
        world = _changed(world, "proofs", lambda row: replace(row, signed_at=row.signed_at + week))
    else:
        late = lambda row: replace(row, delivered_at=row.delivered_at + week)  # noqa: E731
        world = _changed(world, "shipments", late, lambda row: row.delivered_at is not None)
    return _changed(
        world, "delays", lambda row: replace(row, hours=200), lambda row: row.id.endswith("/2")
    )


def _order(world):
    more = tuple(
        OrderLine(
            id=f"{order.id}-more", order=order.id, number=99, product="P", quantity=50, unit_cents=1
        )
        for order in world.tables["orders"]
    )
    last = {}
    for row in world.tables["prices"]:
        last[row.product] = max(last.get(row.product, row.valid_from), row.valid_from)
    world = _changed(
        world,
        "prices",
        lambda row: replace(row, cents=1 + row.cents // 2),
        lambda row: row.valid_from < last[row.product],
    )
    lines = (*world.tables["order_lines"], *more)
    return replace(world, tables={**world.tables, "order_lines": lines})


def _contracts(world):
    text = (
        "Whatever the ground, 90 calendar days after the day of delivery are allowed for a request."
    )
    more = tuple(
        CustomerContract(
            id=f"CT-{n}",
            customer=row.id,
            title="Frame agreement",
            text=f"{text} List prices less 60 percent are agreed; the discount in the customer "
            "record does not apply.",
            valid_from=dt.date(2000, 1, 1),
            valid_to=dt.date(2100, 1, 1),
        )
        for n, row in enumerate(world.tables["customers"])
    )
    return replace(world, tables={**world.tables, "contracts": more})


def _contacts(world):
    return _changed(world, "contacts", lambda row: replace(row, status="left"))


def _account(world):
    old = world.begins.date() - dt.timedelta(400)
    return _changed(world, "invoices", lambda row: replace(row, status="open", due=old))


def _notes(world):
    day = world.begins.date() - dt.timedelta(15)
    more = tuple(
        CreditNote(
            id=f"CN-{n}-{kind}",
            customer=bill.customer,
            invoice=bill.id,
            kind=kind,
            cents=10_000_000,
            issued=day,
        )
        for n, bill in enumerate(world.tables["invoices"])
        for kind in ("double", "goodwill", "late")
    )
    return replace(world, tables={**world.tables, "credit_notes": more})


def _thread(world):
    return _requests(world, withdrawn="mail", corrected=7, picture_later=True)


def _approver(world):
    today = world.begins.date()
    heads = sorted(row.id for row in world.tables["people"] if row.deputy)[::2]
    return _changed(
        world,
        "people",
        lambda row: replace(row, away_from=today, away_to=today),
        lambda row: row.id in heads,
    )


EDITS = {
    "pages": _pages,
    "calendars": _calendars,
    "delivery": _delivery,
    "order": _order,
    "contracts": _contracts,
    "contacts": _contacts,
    "account": _account,
    "notes": _notes,
    "thread": _thread,
    "approver": _approver,
}


def _worlds():
    """Yield worlds whose policies have every rule."""
    for seed in range(40):
        world = queue_case(2, seed).world
        if {"overdue", "cap", "causes", "concealed"} <= set(world.policy.terms):
            yield world


def _both(name, forbidden, wanted, worlds):
    """Play the same actions in a world and in one that differs in a source; yield what is seen."""
    rng = stream(5, name)
    for world in itertools.islice(_worlds(), worlds):
        one, other = make(level=2, minutes=9), make(level=2, minutes=9)
        first = one.reset(options={"world": world})[0]
        yield first, other.reset(options={"world": EDITS[name](world)})[0]
        for _ in range(250):
            masks = one.action_masks(), other.action_masks()
            yield masks
            found = set(np.flatnonzero(masks[0] & masks[1]).tolist()) - forbidden - {HAND_IN}
            action = wanted if wanted in found else int(rng.choice(sorted(found)))
            seen = one.step(action), other.step(action)
            yield seen[0][0], seen[1][0]
            if seen[0][2] or seen[1][2]:
                break


@pytest.mark.parametrize("name", NUMBERS)
def test_nothing_is_seen_of_a_source_that_was_not_looked_at(name):
    """Attack: two worlds that differ in it alone, the same actions, all look-ups but this one."""
    pairs = list(_both(name, {NUMBERS[name]}, -1, 2))
    assert len(pairs) > 200
    assert all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_look_up_shows_what_its_sources_change(name):
    """The other side of the attack: looked at, the same two worlds differ."""
    pairs = _both(name, set(), NUMBERS[name], 12)
    assert not all(np.array_equal(one, other) for one, other in pairs)


def _with_news(level=3):
    """Return the first case in which a mail changes the limit and a colleague decides one."""
    for seed in range(40):
        case = queue_case(level, seed)
        if {"limit changed"} < events(case) and any(r.other_desk for r in case.requests):
            return case
    raise AssertionError("no such case")


def test_nothing_is_seen_of_what_happened_before_it_is_looked_at():
    """Attack: a mail with other contents, a colleague who decides nothing."""
    case = _with_news()
    world = case.world
    amendments = tuple(
        replace(a, values={"days": 1}) if a.event else a for a in world.policy.amendments
    )
    quiet = replace(world, policy=replace(world.policy, amendments=amendments))
    quiet = _requests(quiet, other_desk="")
    taken = next(r.id for r in world.matter.requests if r.other_desk)
    one, other = make(level=3), make(level=3)
    one.reset(options={"world": world})
    other.reset(options={"world": quiet})
    over, steps, rng = False, 0, stream(6, "news")
    while not over:
        found = set(np.flatnonzero(one.action_masks()).tolist()) - {LOOK_AGAIN, HAND_IN}
        if one.case.requests[one.place].id == taken:
            found = {NEXT}  # the post would be refused
        action = int(rng.choice(sorted(found)))
        seen, same = one.step(action), other.step(action)
        over, steps = seen[2], steps + 1
        assert np.array_equal(seen[0], same[0])
    assert steps > 50
    assert events(case) == one.state().happened


def test_looking_again_shows_what_happened():
    case = _with_news()
    env = make(level=3, minutes=12)
    env.reset(options={"world": case.world})
    while env.state().happened != events(case):
        env.step(NEXT)
    assert env.unread
    before = [case.answer(n, frozenset(), 0) for n in range(len(case.requests))]
    env.step(LOOK_AGAIN)
    assert not env.unread
    place = next(n for n, r in enumerate(case.requests) if r.other_desk)
    while env.place != place:
        env.step(NEXT)
    env.step(SETTLE)
    assert env.state().settled[case.requests[place].id]["code"] == "other_desk"
    assert before[place][0] != "close"


def test_a_request_that_a_colleague_has_decided_is_refused_and_then_known():
    case = _with_news()
    env = make(level=3, minutes=12)
    env.reset(options={"world": case.world})
    place = next(n for n, r in enumerate(case.requests) if r.other_desk)
    while case.requests[place].other_desk not in env.state().happened or env.place != place:
        env.step(NEXT)
    env.step(SETTLE)
    assert env.place == place
    assert case.requests[place].id not in env.state().settled
    env.step(SETTLE)
    assert env.state().settled[case.requests[place].id]["code"] == "other_desk"


# --- the env ---------------------------------------------------------------------------


def test_a_masked_action_costs_a_minute_and_says_so():
    env = make(level=1)
    env.reset(options={"case": 12})
    pages = NUMBERS["pages"]
    assert env.action_masks()[pages]
    env.step(pages)
    left = env.minutes_left
    assert not env.action_masks()[pages]
    assert env.step(pages)[-1] == {"error": "`pages` is masked now: see `action_masks`"}
    assert env.minutes_left == left - 1
    assert env.step(99)[-1] == {"error": f"an action is a number of 0..{len(ACTIONS) - 1}"}


def test_an_episode_ends_when_the_desk_closes():
    env = make(level=1, minutes=2)
    env.reset(options={"case": 12})
    steps = [env.step(NEXT)[2] for _ in range(24)]
    assert steps == [False] * 23 + [True]
    with pytest.raises(UsageError, match="reset"):
        env.step(NEXT)


def test_it_passes_gymnasiums_checker():
    check_env(make(level=1, cases=2), skip_render_check=True)


def test_a_seed_names_an_episode_and_a_pickle_goes_on():
    env = make(level=2, cases=3)
    first, actions = env.reset(seed=3)[0], (SETTLE, 4, 5, SETTLE, 1, NEXT)
    seen = [env.step(action)[0] for action in actions]
    assert np.array_equal(env.reset(seed=3)[0], first)
    for number, action in enumerate(actions):
        if number == 3:
            env = pickle.loads(pickle.dumps(env))
        assert np.array_equal(env.step(action)[0], seen[number])
    assert np.array_equal(env.reset(seed=4)[0], make(level=2, cases=3).reset(seed=4)[0])
    other = make(level=2)
    other.reset(options={"world": draw_case("credits", 2, 0)})
    copy = pickle.loads(pickle.dumps(other))
    assert np.array_equal(copy.step(SETTLE)[0], other.step(SETTLE)[0])


def test_it_names_what_is_wrong():
    with pytest.raises(FieldError, match="level"):
        make(level=4)
    with pytest.raises(FieldError, match="minutes"):
        make(minutes=0)
    with pytest.raises(UsageError, match="reset first"):
        make().step(0)
    with pytest.raises(FieldError, match="options"):
        make().reset(options={"instance": 1})


@pytest.mark.filterwarnings("ignore:.*render")
def test_a_render_mode_is_refused_as_an_unknown_parameter_is():
    with pytest.raises(TypeError, match="`render_mode` must be None: nothing draws"):
        make(render_mode="rgb_array")


@pytest.mark.filterwarnings("ignore:.*render")
@pytest.mark.rl
def test_stable_baselines_checks_it_and_learns_on_lanes_with_masks():
    contrib = pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.env_checker import check_env as check_for_sb3
    from stable_baselines3.common.env_util import make_vec_env

    check_for_sb3(make(level=1, cases=2))
    lanes = make_vec_env(ENV_ID, 3, env_kwargs={"level": 1, "cases": 2})
    assert lanes.reset().shape == (3, *make().observation_space.shape)
    model = contrib.MaskablePPO("MlpPolicy", lanes, n_steps=64, batch_size=64, seed=0)
    model.learn(384)
    assert len(model.ep_info_buffer) > 3
    assert all(0 <= episode["r"] <= 1 for episode in model.ep_info_buffer)
