"""One agent's axes from a few hand-made traces."""

from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AgentVerdict, AxisScore
from owa_bench.records.trace import Trace
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, plan_of


def verdict(
    traces: list[Trace], protocol: Protocol = PROTOCOL, prices: PriceCard = PRICES
) -> AgentVerdict:
    """Return the verdict on the only arm of these traces."""
    plan = plan_of(traces)
    found = judge(plan, traces, protocol, prices, evidence_root="", replay_root=ROOT)
    return found.verdicts[0]


def axis(
    traces: list[Trace], symbol: str, protocol: Protocol = PROTOCOL, prices: PriceCard = PRICES
) -> AxisScore:
    """Return one axis of the only arm of these traces."""
    scores = verdict(traces, protocol, prices).axes
    return next(score for score in scores if score.symbol == symbol)
