"""Populations of networks: padding changes nothing, and they learn."""

import numpy as np
import pytest

from owa_bench.seeding import stream

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.rl

from owa_bench.subjects import cartpole, cartpole3d, unit_runs  # noqa: E402
from owa_bench.subjects.learning import Recipe, learn, performances  # noqa: E402
from owa_bench.subjects.populations import (  # noqa: E402
    Population,
    architectures,
    size,
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
    touched = [
        sum(int((w.grad[k] != 0).sum()) for w in population.weights) for k in (0, 1)
    ]
    assert population.sizes == [size((2,), 4, 2), size((3, 3), 4, 2)] == [16, 35]
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
    field = cartpole.CartPoleField(*numbers, generator=generator(1))
    before = performances(population, field).mean(1)
    learn(population, field, Recipe(updates=60), generator=generator(2))
    after = performances(population, field).mean(1)
    assert float(before.max()) < 0.4
    assert float(after[:2].min()) > 0.5


def test_the_classic_task_is_gymnasiums():
    import gymnasium

    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=3)
    field = cartpole.CartPoleField(
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
    plan = cartpole3d.Plan(lanes=20)
    mixtures = [{0: 0.3, 4: 0.7}, {0: 1.0}]
    field = cartpole3d._field(mixtures, plan, 20, 0, learning=True)
    counts = [at.numel() for _, at in field._parts]
    assert field.lanes == 40
    assert counts == [26, 14]


@pytest.mark.parametrize("full", [False, True])
def test_every_pair_is_mixed_once(full):
    plan = cartpole3d.Plan(full=full)
    pairs = [
        frozenset(pair)
        for unit in cartpole3d.units(plan)
        if unit.kind == "mixtures"
        for pair in cartpole3d._pairs(plan, (unit.first, *unit.others))
    ]
    assert len(pairs) == len(set(pairs)) == (17 * 18 / 2 if full else 17 + 16)


@pytest.mark.slow
def test_units_of_a_plan_resume(tmp_path):
    plan = cartpole3d.Plan(
        levels=(0, 4),
        references=(0,),
        pool=2,
        retrained=1,
        lanes=4,
        scored=4,
        updates=1,
        agents=(),
        classic=0,
    )
    told = []
    rows = unit_runs.run(plan, tmp_path, workers=1, told=lambda *n: told.append(n))
    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)
    assert {row["table"] for row in rows} == {
        "pool",
        "handicapped",
        "mixtures",
        "performances",
    }
    (tmp_path / "units" / "pool-4.json").unlink()
    again = unit_runs.run(plan, tmp_path, workers=1, told=lambda *n: told.append(n))
    assert told[-2:] == [(4, 5), (5, 5)]
    assert again == rows
    from owa_bench.errors import UsageError

    with pytest.raises(UsageError, match="another plan"):
        unit_runs.run(plan._replace(seed=1), tmp_path, workers=1, told=lambda *_: None)
