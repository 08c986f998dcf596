"""Kappa of an agent that learns, of its frozen control, and of one that only idled."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.campaigns import LEARNING, kappa_of
from owa_bench.report import statement
from owa_bench.run.plan import escrow
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.store import keys

pytestmark = pytest.mark.slow  # a campaign of ten days

BUILDERS = Path(__file__).parents[1] / "builders"
AGENTS = ("self_improving", "agentic", "revising_agents:Sandbags")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The verdicts of a learner, an agent that knows all, and one that idled."""
    folder = tmp_path_factory.mktemp("kappa")
    request = Request(agents=AGENTS, campaign=LEARNING, transcripts=False)
    options = RunOptions(home=folder / "home", folder=BUILDERS, in_process=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(escrow, "fresh_bytes", lambda: bytes(range(32)))
        assert batch.play(request, folder / "run", options).missing == 0
    verdicts = statement.write(folder / "run", keys.load(folder / "home")).verdicts
    by_arm = {verdict.arm: verdict for verdict in verdicts}
    return SimpleNamespace(
        learner=by_arm["self_improving"],
        able=by_arm["agentic"],
        idler=by_arm["Sandbags"],
    )


def axes(verdict) -> dict[str, float]:
    return {axis.symbol: axis.value for axis in verdict.axes}


def test_an_agent_that_learns_has_kappa_above_0_and_its_control_has_0(judged) -> None:
    found = kappa_of(judged.learner)
    assert 0.0 < found.low <= found.slope
    assert found.frozen_low <= 0.0 <= found.frozen_high
    assert found.last > found.first + 0.2


def test_an_agent_with_nothing_left_to_learn_has_no_kappa(judged) -> None:
    found = kappa_of(judged.able)
    assert found.low <= 0.0 <= found.high


def test_days_idled_to_improve_later_give_a_kappa_and_cost_every_axis(judged) -> None:
    """Kappa cannot tell what was unlocked from what was learned: the axes pay for it.

    They are means over all days, so who idled at first stands below who did not.
    """
    assert kappa_of(judged.idler).low > 0.0
    idled, able = axes(judged.idler), axes(judged.able)
    assert all(idled[symbol] < able[symbol] - 0.1 for symbol in ("A", "P", "T", "W"))
