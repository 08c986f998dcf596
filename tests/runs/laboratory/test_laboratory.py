"""The laboratory: what it plays, what it refuses, what it keeps to itself."""

import pytest

from owa_bench.canonical import sha256
from owa_bench.errors import FieldError, UsageError
from owa_bench.interfaces import InnerDraw, Subject, Ticket
from owa_bench.records.holdout import HoldoutPlan, e_bh, e_value, holdout_statistic
from owa_bench.runs.laboratory import laboratory as module
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from owa_bench.seeding import stream

INNER = InnerDraw(suite="recall", version=2, families=("n_back",), tier=1, pool=2)


def subject(**options):
    return Subject(agent="tunable_player", options=tuple(sorted(options.items())))


BASE, BETTER = subject(slip="60"), subject(slip="5")


def plan(**changes):
    terms = {
        "hypothesis": "fewer slips",
        "base": BASE.digest,
        "candidate": BETTER.digest,
        "metric": "quality",
        "pairs": 10,
        "rule": "mean",
        "level": 0.05,
    }
    return HoldoutPlan(**(terms | changes))


@pytest.fixture
def laboratory():
    with LocalLaboratory(b"key") as made:
        made.begin(INNER)
        yield made


def test_the_same_key_gives_the_same_attempts_and_another_key_others():
    found = []
    for key in (b"key", b"key", b"other"):
        with LocalLaboratory(key) as made:
            made.begin(INNER)
            ticket = Ticket(draw="development", first=0, count=2)
            found.append([a.replay for a in made.play(BASE, ticket)])
    assert found[0] == found[1]
    assert not set(found[0]) & set(found[2])


def test_a_holdout_is_registered_first_and_played_once(laboratory):
    with pytest.raises(UsageError, match="is not registered"):
        laboratory.answer(plan().digest, BASE, BETTER)
    digest = laboratory.register(plan())
    with pytest.raises(UsageError, match="names other versions"):
        laboratory.answer(digest, BETTER, BASE)
    result = laboratory.answer(digest, BASE, BETTER)
    assert result.answer.pairs == len(result.pairs) == 10
    assert result.answer.statistic > 0.2
    with pytest.raises(UsageError, match="was answered before"):
        laboratory.answer(digest, BASE, BETTER)
    with pytest.raises(UsageError, match="has one holdout"):
        laboratory.register(plan(pairs=20))


def test_no_ticket_plays_a_holdout_and_no_draw_shares_instances(laboratory):
    digest = laboratory.register(plan())
    with pytest.raises(UsageError, match="must be no holdout"):
        laboratory.play(BASE, Ticket(draw=f"holdout/{digest}", first=0, count=1))
    held = {p.base.replay for p in laboratory.answer(digest, BASE, BETTER).pairs}
    for draw in ("development", "confirmation"):
        attempts = laboratory.play(BASE, Ticket(draw=draw, first=0, count=10))
        assert not held & {attempt.replay for attempt in attempts}


def test_another_plan_has_another_holdout(laboratory):
    first = laboratory.answer(laboratory.register(plan()), BASE, BETTER)
    other = laboratory.answer(laboratory.register(plan(metric="logged")), BASE, BETTER)
    assert not {p.base.replay for p in first.pairs} & {p.base.replay for p in other.pairs}


def test_a_sampled_attempt_keeps_its_lines_and_they_hash_to_its_replay(laboratory, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 1)
    [attempt] = laboratory.play(BASE, Ticket(draw="development", first=0, count=1))
    assert attempt.lines
    assert sha256(attempt.lines) == attempt.replay


def test_an_expert_log_helps_in_development_and_nowhere_else(laboratory):
    copied = subject(slip="60", expert_log="1", capacity="1")
    plain = subject(slip="60", capacity="1")

    def mean(version, draw):
        ticket = Ticket(draw=draw, first=0, count=2)
        return sum(a.quality for a in laboratory.play(version, ticket)) / 2

    assert mean(copied, "development") > mean(plain, "development")
    assert mean(copied, "confirmation") == mean(plain, "confirmation")


@pytest.mark.parametrize("changes", [{"pairs": 9}, {"level": 0.0}, {"level": 0.5}])
def test_a_plan_outside_its_bounds_is_refused(changes):
    with pytest.raises(FieldError, match=f"`{next(iter(changes))}`"):
        plan(**changes)


def test_an_e_process_of_a_null_rarely_reaches_its_bound():
    terms = plan(rule="e_process", pairs=100)
    reached = 0
    for seed in range(200):
        rng = stream(seed, "null")
        signs = rng.integers(0, 2, size=100) * 2 - 1
        wealth = max(e_value((0.5 * signs)[:count]) for count in range(1, 101, 5))
        reached += wealth >= 1 / terms.level
    assert reached <= 200 * 0.05


def test_the_statistic_is_the_one_of_its_rule():
    differences = [0.1, 0.3] * 10
    assert holdout_statistic(plan(), differences).statistic == pytest.approx(0.2)
    bound = holdout_statistic(plan(rule="lower_bound"), differences).statistic
    assert 0.1 < bound < 0.2


def test_unregistered_plenty_makes_every_rejection_dearer():
    assert e_bh([25.0], 0.05) == (True,)
    assert e_bh([25.0, *[1.0] * 9], 0.05) == (False,) * 10
