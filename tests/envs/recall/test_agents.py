"""Reference agents: what was planted is measured, and verifying is what retrieves."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from owa_bench.envs.recall import generate
from owa_bench.envs.recall.wording import notice_line, question_text
from owa_bench.envs.recall.world import Register
from owa_bench.records.events import Belief, Resolution
from owa_bench.scoring.axes.memory import half_life
from owa_bench.scoring.estimate.gate_statistics import span
from tests.builders import recall_episodes as episodes

LAGS = np.array([1.0, 7.0, 28.0])
PLANTED = 200


def recalled(played):
    """Return hits and trials at each lag."""
    probes = [p for p in played.probes if p.mode == "recall"]
    lags = np.array([p.lag_days for p in probes])
    right = np.array([p.correct for p in probes], dtype=float)
    return (
        np.array([right[lags == lag].sum() for lag in LAGS]),
        np.array([(lags == lag).sum() for lag in LAGS], dtype=float),
    )


def first_verified(played, places=1):
    """Return the mean share of verified entries among the first places."""
    shares = [
        sum(right for _, right in p.returned[:places]) / places
        for p in played.probes
        if p.mode == "retrieve"
    ]
    return float(np.mean(shares))


@pytest.mark.parametrize("tier", [1, 2])
def test_bm25_finds_what_does_not_hold_and_verifying_finds_what_does(tier, tmp_path):
    found = {
        name: episodes.play(episodes.reference(name), tmp_path / name, "retrieval", tier)
        for name in ("bm25", "bm25_verify")
    }
    assert first_verified(found["bm25"]) <= 0.1
    assert first_verified(found["bm25_verify"]) >= 0.9
    assert first_verified(found["bm25_verify"], 5) >= 0.9


def test_a_retriever_of_characters_finds_what_does_not_hold_either():
    hits = []
    for seed in range(8):
        world = generate.draw_world(seed, "retrieval", 1, "A")
        lines = [notice_line(world, notice) for notice in world.notices]
        index = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4))
        table, register = index.fit_transform(lines), Register(world)
        for question in world.questions:
            asked = index.transform([question_text(world, question)])
            best = world.notices[int(np.argmax((table @ asked.T).toarray()))]
            holding = register.in_force(question.subject, question.relation, question.day)
            hits.append(best in holding)
    assert np.mean(hits) <= 0.3


def test_who_dumps_what_it_reads_falls_behind_who_keeps_what_is_asked(tmp_path):
    rates = {}
    for name in ("exact_store", "transcript_store", "no_memory"):
        played = episodes.play(episodes.reference(name), tmp_path / name, "learning", 3)
        hits, trials = recalled(played)
        rates[name] = hits.sum() / trials.sum()
    assert rates["exact_store"] >= 0.95
    assert rates["transcript_store"] <= 0.5
    assert rates["no_memory"] == 0.0


@pytest.mark.parametrize("tier", generate.TIERS)
def test_who_keeps_what_is_asked_is_right_within_every_quota(tier, tmp_path):
    for family in ("learning", "counterfactual"):
        agent = episodes.reference("exact_store")
        played = episodes.play(agent, tmp_path / family, family, tier)
        assert played.q_state >= 0.95


def test_who_keeps_the_register_knows_its_claims_and_who_keeps_nothing_does_not(tmp_path):
    for name, errors in (("exact_store", 0.05), ("bm25_verify", 0.05), ("bm25", 0.5)):
        played = episodes.play(episodes.reference(name), tmp_path / name, "learning")
        truth = {e.proposition: e.y for e in played.events if isinstance(e, Resolution)}
        stated = {e.proposition: e.p for e in played.events if isinstance(e, Belief)}
        claims = [claim for claim in truth if claim != "own_success"]
        assert len(claims) == 4
        for claim in claims:
            assert abs(stated[claim] - truth[claim]) == pytest.approx(errors)


def test_planted_spans_are_measured_exactly(tmp_path):
    """Lists up to 16 of two episodes, with the accuracy that the protocol asks for."""
    rules = SimpleNamespace(span_start=2, span_accuracy=0.75, span_trials=8)
    for planted in range(2, 10):
        lengths, right = [], []
        for seed in range(2):
            agent = episodes.reference("bounded_buffer", capacity=planted)
            folder = tmp_path / f"{planted}-{seed}"
            played = episodes.play(agent, folder, "working_memory", 2, seed=seed)
            lengths += [p.span for p in played.probes]
            right += [p.correct for p in played.probes]
        lengths = np.array(lengths)
        seeds = np.zeros(len(lengths), dtype=int)
        assert span(lengths, np.array(right), seeds, rules) == planted


@pytest.mark.part(4)
@pytest.mark.slow
def test_planted_half_lives_are_covered_at_the_nominal_rate(tmp_path):
    """Agents with half-lives of 2 to 60 days, one episode each."""
    covered = 0
    for number in range(PLANTED):
        planted = 2.0 * 30.0 ** (number / (PLANTED - 1))
        agent = episodes.reference("fading_store", half_life=planted)
        folder = tmp_path / str(number)
        played = episodes.play(agent, folder, "learning", 1, seed=number)
        found = half_life(*recalled(played), LAGS, 0.95)
        covered += found.low <= planted <= found.high
    assert 183 <= covered <= 197
