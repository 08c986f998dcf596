"""The table of placements plants what it says, and plays the rule of reports."""

import math

import numpy as np
import placement
import pytest
from planted_agents import GATES, SHAPES, Agent, clear, skilled

from owa_bench.scoring.placement.rule import TOOLS
from owa_bench.scoring.placement.worlds import batch_bets
from owa_bench.scoring.statistics import betting


@pytest.fixture(scope="module")
def pool():
    return placement.pool_of(1)


def ends(agent, count=10, gate=TOOLS, plans=1):
    row = placement.Row("test", gate, agent, count, plans)
    return placement.Found(row, tuple(placement.placed(row, 0)))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gate_lies_where_it_was_planted_and_the_others_pass_clearly(pool, shape):
    for gate in ("A", "P", TOOLS):
        truth = clear(pool, gate, 0.45, shape)
        for other in ("A", "P", TOOLS):
            want = 0.45 if other == gate else 0.85
            assert pool.value(other, truth) == pytest.approx(want, abs=1e-9)
        assert pool.covered(truth) == len(pool.families)
    needed = math.ceil(pool.rule.required("G") * len(pool.families))
    for passes, covered in ((True, needed - 1), (False, needed)):
        truth = clear(pool, "G", 0.0, shape, passes=passes)
        assert pool.covered(truth) == covered


def test_early_batches_of_first_cells_lie_above_the_mean(pool):
    for shape, above in (("alike", False), ("first cells", True)):
        chance = clear(pool, "A", 0.45, shape).chance["A"]
        weights = pool.weights["A"] * (pool.number < 3)
        assert ((weights * chance).sum() / weights.sum() > 0.5) == above


def test_episodes_of_a_world_are_as_alike_as_planted(pool):
    truth = clear(pool, TOOLS, 0.5, "alike")
    worlds = [world for own in pool.rule.worlds.values() for world in own]
    one, other = ([world.episodes[kind] for world in worlds] for kind in ("plain", "priced"))
    for icc in (0.0, 0.3, 1.0):
        seen = Agent(truth, icc=icc).seen(pool, np.random.default_rng(0), 10)
        values = np.array([one_agent.low[TOOLS] for one_agent in seen])
        found = np.corrcoef(values[:, one].ravel(), values[:, other].ravel())[0, 1]
        assert found == pytest.approx(icc, abs=0.05)


def test_a_look_holds_the_evidence_of_all_bets_at_once(pool):
    """The rule adds up batch by batch what `betting` reckons of all bets in one go."""
    truth = clear(pool, "A", 0.47, "uneven")
    (seen,) = Agent(truth, faults=0.05).seen(pool, np.random.default_rng(1), 1)
    looks = pool.rule.replay(seen)
    assert len(looks) > 5
    for gate in ("A", "P", TOOLS):
        bets = betting.NO_BETS
        for look in looks[:-1]:
            if gate in look.batch.reads:
                weights = pool.rule.weights[gate]
                bets = bets.joined(batch_bets(gate, look.batch.worlds, seen, weights))
        required = pool.rule.required(gate)
        line = next(line for line in looks[-1].gates if line.gate == gate)
        assert line.worlds == len(bets)
        assert line.log_pass == pytest.approx(betting.log_above(bets, required - 0.05), abs=1e-6)
        assert line.log_below == pytest.approx(betting.log_below(bets, required), abs=1e-6)


def test_clear_agents_are_placed(pool):
    strong, weak = ends(Agent(skilled(pool, 0.9))), ends(Agent(skilled(pool, 0.2)))
    assert strong.said("AAI-1").all()
    assert weak.said("below").all()
    assert all(one.level and one.passed == set(GATES) for one in strong.outcomes)
    assert strong.episodes().max() < 300


def test_failures_laid_to_faults_pass_only_where_they_are_played_again(pool):
    truth = clear(pool, TOOLS, 0.55, "alike")
    rule = ends(Agent(truth, excused=0.3))
    control = ends(Agent(truth, excused=0.3, again=True))
    assert rule.passed().mean() <= 0.2
    assert not any(one.level for one in rule.outcomes)
    assert all(one.lost > 0.05 * one.episodes for one in rule.outcomes)
    assert control.passed().mean() >= 0.5
    assert not any(one.lost for one in control.outcomes)


def test_a_day_that_moves_everything_is_one_draw_of_each_date(pool):
    truth = clear(pool, TOOLS, 0.5, "alike")
    agent = Agent(truth, shock=0.3, dates=(5, 10))
    seen = list(agent.seen(pool, np.random.default_rng(0), 100))
    means = np.array(
        [[np.mean(np.array(s.low[TOOLS])[pool.number // 5 == k]) for k in range(4)] for s in seen]
    )
    likeness = np.corrcoef(means.T)
    assert likeness[2, 3] > 0.95  # one date
    assert abs(likeness[0, 1]) < 0.3
    assert abs(likeness[1, 2]) < 0.3


def test_the_best_of_several_plans(pool):
    passed = np.array([0.0, 1.0, 0.0, 0.0, 1.0])
    assert placement.best_of(passed, 2).tolist() == [1.0, 0.0]
    assert placement.pool_of(5).rule.bar == 5 * pool.rule.bar


@pytest.mark.slow
def test_the_page_holds_every_row():
    text = placement.page(5, 1)
    assert text.count("\n| ") > 60
    assert all(f"| tools PASS, {shape} |" in text for shape in SHAPES)


def test_a_part_anew_leaves_the_rest_of_the_page(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("# Head\n\nText\n\n## First\n\n1\n\n## Days\n\nold\n\n## Last\n\n3\n")
    made = [placement.Part(name, "new", {}, ()) for name in ("First", "Days", "Days, more")]
    monkeypatch.setattr(placement, "TABLE", page)
    monkeypatch.setattr(placement, "parts", lambda rounds: iter(made))
    monkeypatch.setattr(placement, "play", lambda rows, jobs: {})
    text = placement.part_anew("Days", 10, 1)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        *("## First", "## Days", "## Days, more", "## Last")
    ]
    assert "old" not in text
    assert text.startswith("# Head\n\nText\n\n## First\n\n1\n\n## Days\n\nnew\n")
    assert text.endswith("\n\n## Last\n\n3\n")


def test_a_served_model_plays_one_batch_a_date(pool):
    agent = Agent(skilled(pool, 0.95), shock=0.03, dates=placement.EACH)
    row = placement.Row("served", TOOLS, agent, 4, dates=placement.DATES)
    found = placement.Found(row, tuple(placement.placed(row, 0)))
    assert found.said("AAI-1").all()
    assert found.batches().tolist() == [3.0] * 4
    plain = ends(agent, 4)
    assert (plain.batches() < 3).any()
