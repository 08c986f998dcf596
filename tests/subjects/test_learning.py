"""Populations of networks: padding changes nothing, and they learn."""

import numpy as np
import pytest

from owa_bench.seeding import stream

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.rl

from benchmarks import q_learning  # noqa: E402
from owa_bench.subjects import agent_play, cartpole, cartpole3d, cartpole3d_lanes  # noqa: E402
from owa_bench.subjects.learning import (  # noqa: E402
    BestWeights,
    Population,
    PPOSettings,
    architectures,
    parameter_count,
    performances,
    train,
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_padded_network_answers_as_a_plain_one():
    shapes = [(3,), (2, 5), (4, 1, 2)]
    population = Population(shapes, 6, 4, generator=generator())
    seen = torch.randn(3, 7, 6, generator=generator(1))
    found = population.scores(seen).detach()
    for k, shape in enumerate(shapes):
        widths = (6, *shape)
        values = seen[k]
        for place, width in enumerate(shape):
            weight = population.weights[place][k].detach()
            part = weight[: widths[place], :width]
            values = torch.relu(values @ part + weight[-1, :width])
        last = population.weights[-1][k].detach()
        expected = values @ last[: shape[-1], :4] + last[-1, :4]
        torch.testing.assert_close(found[k], expected)


def test_only_real_parameters_can_change():
    population = Population([(2,), (3, 3)], 4, 2, generator=generator())
    population.scores(torch.randn(2, 5, 4)).square().sum().backward()
    touched = [sum(int((w.grad[k] != 0).sum()) for w in population.weights) for k in (0, 1)]
    assert (
        population.sizes == [parameter_count((2,), 4, 2), parameter_count((3, 3), 4, 2)] == [16, 35]
    )
    assert all(0 < n <= most for n, most in zip(touched, population.sizes, strict=True))


def test_architectures_are_those_of_the_seed():
    drawn = architectures(500, rng=stream(0, "test"))
    assert {len(one) for one in drawn} == {1, 2, 3}
    assert min(min(one) for one in drawn) == 1
    assert max(max(one) for one in drawn) == 32


def test_a_population_learns_the_classic_task():
    """Two of three networks balance; the one of a single unit may not."""
    shapes = [(8,), (8, 8), (1,)]
    lanes = 16
    population = Population(shapes, 4, 2, generator=generator())
    numbers = torch.full((3 * lanes,), 10.0), torch.full((3 * lanes,), 9.8)
    field = cartpole.CartPoleBatch(*numbers, generator=generator(1))
    before = performances(population, field).mean(1)
    train(population, field, PPOSettings(updates=60), generator=generator(2))
    after = performances(population, field).mean(1)
    assert float(before.max()) < 0.4
    assert float(after[:2].min()) > 0.5


def test_a_network_ends_as_it_was_at_its_best():
    """Looks are planted: the first is best for one network, the last for the other."""
    population = Population([(2,), (2,)], 4, 2, generator=generator())
    field = cartpole.CartPoleBatch(
        torch.full((2,), 10.0), torch.full((2,), 9.8), generator=generator(1)
    )
    best = BestWeights(population, field)
    kept = []
    for found in ([0.9, 0.2], [0.4, 0.3]):
        for part in population.weights:
            part.data += 1.0
        kept.append([part.detach().clone() for part in population.weights])
        best.compare(torch.tensor(found))
    for part in population.weights:
        part.data.zero_()
    best.restore()
    for place, part in enumerate(population.weights):
        torch.testing.assert_close(part[0].detach(), kept[0][place][0])
        torch.testing.assert_close(part[1].detach(), kept[1][place][1])


def test_chosen_networks_answer_as_before():
    population = Population([(3,), (2, 5), (4,)], 6, 4, generator=generator())
    seen = torch.randn(3, 7, 6, generator=generator(1))
    found = population.subset([2, 1])
    assert found.networks == [(4,), (2, 5)]
    torch.testing.assert_close(found.scores(seen[[2, 1]]), population.scores(seen)[[2, 1]])


@pytest.mark.part(3)
@pytest.mark.slow
def test_q_learning_learns_the_classic_task():
    population = Population([(16,), (16, 16)], 4, 2, generator=generator())
    lanes = 2 * 4
    numbers = torch.full((lanes,), 10.0), torch.full((lanes,), 9.8)
    field = cartpole.CartPoleBatch(*numbers, generator=generator(1))
    recipe = q_learning.QLearningSettings(updates=6_000)
    trial = cartpole.CartPoleBatch(*numbers, generator=generator(3))
    before = performances(population, trial).mean(1)
    q_learning.train(population, field, recipe, generator=generator(2), trial=trial)
    assert float(before.max()) < 0.3
    assert float(performances(population, trial).mean(1).max()) > 0.5


def test_observations_are_counted_while_the_pole_stands():
    """Two networks that push one way only: counts are their ticks alive."""
    population = Population([(1,), (1,)], 4, 2, generator=generator())
    for part in population.weights:
        part.data.zero_()
    population.weights[-1].data[:, -1, 1] = 1.0  # always to the right
    lanes = torch.full((2 * 3,), 10.0), torch.full((2 * 3,), 9.8)
    field = cartpole.CartPoleBatch(*lanes, generator=generator(1))
    counts = cartpole._observation_counts(population, field)
    again = cartpole.CartPoleBatch(*lanes, generator=generator(1))
    again.restart()
    alive, ticks = torch.ones(6, dtype=torch.bool), torch.zeros(6, dtype=torch.int64)
    while alive.any():
        ticks += alive
        alive &= ~again.step(torch.ones(6, dtype=torch.int64))[0]
    for k in (0, 1):
        assert len(counts[k]) == 4
        assert {sum(row) for row in counts[k]} == {int(ticks.view(2, 3)[k].sum())}
        assert {len(row) for row in counts[k]} == {30}


def test_mixed_gravities_get_their_shares():
    field = cartpole._mixture([(0.0, 40.0, 0.3), (80.0, 80.0, 1.0)], 20, generator())
    assert field.lanes == 40
    assert field._gravities[:20].tolist() == [0.0] * 6 + [40.0] * 14
    assert set(field._gravities[20:].tolist()) == {80.0}


@pytest.mark.slow
def test_a_pair_of_gravities_is_trained_at_every_share():
    rows = cartpole.measure_gravity_mixtures(
        len(cartpole.MIXED) - 1, retrained=2, updates=1, seed=0
    )
    assert len(rows) == 11 * 2
    assert {(row["first"], row["second"]) for row in rows} == {(200.0, 200.0)}
    assert sorted({row["p"] for row in rows}) == [i / 10 for i in range(11)]


def test_the_classic_task_is_gymnasiums():
    import gymnasium

    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=3)
    field = cartpole.CartPoleBatch(
        torch.tensor([10.0], dtype=torch.float64),
        torch.tensor([9.8], dtype=torch.float64),
        generator=generator(),
    )
    field.state = torch.tensor(env.state, dtype=torch.float64)[:, None]
    for action in (0, 1, 1, 0, 1):
        seen = env.step(action)[0]
        field.step(torch.tensor([action]))
        np.testing.assert_allclose(field.state[:, 0], seen, rtol=1e-6)


def test_a_mixture_gets_its_share_of_episodes():
    mixtures = [{0: 0.3, 4: 0.7}, {0: 1.0}]
    field = cartpole3d_lanes.mixture_batch(
        mixtures, 20, spec="table1", magnitude=1 / 3, seed=0, learning=True
    )
    counts = [at.numel() for _, at in field._parts]
    assert field.lanes == 40
    assert counts == [26, 14]


@pytest.mark.parametrize("full", [False, True])
def test_every_pair_is_mixed_once(full):
    plan = cartpole3d.MeasurementPlan(full=full)
    pairs = [
        frozenset(pair)
        for unit in cartpole3d.units(plan)
        if unit.kind in ("mixtures", "among")
        for pair in cartpole3d._mixed_pairs(unit, plan)
    ]
    assert len(pairs) == len(set(pairs)) == (17 * 18 / 2 if full else 17 + 16 + 3)
    assert full or frozenset((15, 16)) in pairs


def test_agents_are_named_as_run_names_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "still.py").write_text("def act(observation, info):\n    return 0\n")
    found = agent_play.measured_agents(["one_step", "still.py"], taken=("pd",))
    assert [one.name for one in found] == ["one_step", "still"]
    assert [bool(one.fingerprint) for one in found] == [False, True]


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (["pd"], "always measured"),
        (["one_step", "one_step"], "comes twice"),
        (["http://127.0.0.1:9/agent"], "is a http"),
        (["sb3:nowhere.zip"], "no such file"),
    ],
)
def test_agents_that_cannot_be_measured_are_refused(specs, said, tmp_path, monkeypatch):
    from owa_bench.errors import OwaError

    monkeypatch.chdir(tmp_path)
    with pytest.raises(OwaError, match=said):
        agent_play.measured_agents(specs, taken=("pd", "nothing", "random"))


@pytest.mark.physics
def test_a_users_function_plays_as_the_suites_own_rule(tmp_path, monkeypatch):
    pytest.importorskip("pybullet")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "still.py").write_text("def act(observation, info):\n    return 0\n")
    both = [
        agent_play.performance(spec, "table1", 0, 1.0, episodes=2, seed=0)
        for spec in ("still.py", "nothing")
    ]
    assert both[0] == both[1] > 0.1


@pytest.mark.part(3)
@pytest.mark.slow
def test_units_of_a_plan_resume(tmp_path):
    plan = cartpole3d.MeasurementPlan(
        levels=(0, 4),
        references=(0,),
        among=(),
        pool=2,
        retrained=1,
        lanes=4,
        scored=4,
        updates=1,
        agents=(),
        classic=0,
    )
    told = []
    rows = cartpole3d.run(plan, tmp_path, workers=1, on_done=lambda *n: told.append(n))
    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)
    assert {row["table"] for row in rows} == {"pool", "handicapped", "mixtures", "performances"}
    (tmp_path / "units" / "pool-4.json").unlink()
    again = cartpole3d.run(plan, tmp_path, workers=1, on_done=lambda *n: told.append(n))
    assert told[-2:] == [(4, 5), (5, 5)]
    assert again == rows
    from owa_bench.errors import UsageError

    with pytest.raises(UsageError, match="another plan"):
        cartpole3d.run(plan._replace(seed=1), tmp_path, workers=1, on_done=lambda *_: None)
