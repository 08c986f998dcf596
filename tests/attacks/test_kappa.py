"""Kappa of an agent that learns, of its frozen control, and of one that only idled."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.campaigns import LEARNING, kappa_of
from owa_bench.records.score import AgentVerdict
from owa_bench.reports import statement
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # campaigns of ten days

# The committed campaign at three of its six magnitudes.
SHORT = replace(LEARNING, checkpoint=(replace(*LEARNING.checkpoint, deltas=(0, 0.25, 1)),))
BUILDERS = Path(__file__).parents[1] / "builders"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AgentVerdict]:
    """Return what plays an agent's campaign, once, and returns its verdict."""

    @cache
    def play(agent: str, campaign: Campaign = LEARNING) -> AgentVerdict:
        folder = tmp_path_factory.mktemp("kappa")
        request = Request(agents=(agent,), campaign=campaign, transcripts=False)
        options = RunOptions(home=folder / "home", folder=BUILDERS, in_process=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(escrow, "fresh_bytes", lambda: bytes(range(32)))
            assert batch.play(request, folder / "run", options).missing == 0
        return statement.write(folder / "run", keys.load(folder / "home")).verdicts[0]

    return play


def axes(verdict: AgentVerdict) -> dict[str, float | None]:
    return {axis.symbol: axis.value for axis in verdict.axes}


@pytest.mark.part(4)
def test_an_agent_that_learns_has_kappa_above_0_and_its_control_has_0(judged) -> None:
    found = kappa_of(judged("self_improving", SHORT))
    assert 0.0 < found.low <= found.slope
    assert found.frozen_low <= 0.0 <= found.frozen_high
    assert found.last > found.first + 0.2


@pytest.mark.part(4)
def test_an_agent_with_nothing_left_to_learn_has_no_kappa(judged) -> None:
    """Its memory cost it W, and kappa was below 0 with its whole interval."""
    found = kappa_of(judged("agentic", SHORT))
    assert found.low <= 0.0 <= found.high


@pytest.mark.part(4)
def test_days_idled_to_improve_later_give_a_kappa_and_cost_every_axis(judged) -> None:
    """Kappa cannot tell what was unlocked from what was learned: the axes pay for it.

    They are means over all days, so who idled at first stands below who did not.
    """
    idler = judged("revising_agents:Sandbags")
    assert kappa_of(idler).low > 0.0
    idled, able = axes(idler), axes(judged("agentic"))
    assert all(idled[symbol] < able[symbol] - 0.1 for symbol in ("A", "P", "T", "W"))
