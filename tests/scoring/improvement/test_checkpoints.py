"""A campaign in which every axis has evidence: AAI_dyn by day, kappa, maintenance."""

from functools import cache

import pytest

from owa_bench.records.events import Probe
from owa_bench.records.score import AgentVerdict, ClosureResult
from owa_bench.records.trace import Trace
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

FREE, DAYS, TASKS = 7, 14, 8
FOUND = Probe(
    item="q", lag_days=0, correct=True, mode="retrieve", returned=(("d", True),)
)
RECALL = (
    *(
        Probe(item=f"i{k}", lag_days=lag, correct=k < 8)
        for lag in (1.0, 7.0)
        for k in range(10)
    ),
    FOUND,
)
BELIEFS = tuple(("unit", 0.8 if y else 0.2, y) for y in (True, False, True))


def practice(day: int, index: int) -> Trace:
    return episode(
        index=index,
        pair=f"practice{day}",
        day=day,
        delta=None,
        realised=0.0 if day < FREE else 0.2,
        phase="practice",
        costs=(("api_calls", 50_000.0, "agent"),),
    )


def campaign(worn: float = 0.0, gain: float = 0.0) -> list[Trace]:
    """Return days of checkpoints; drift takes `worn`, a day's practice adds `gain`."""
    traces: list[Trace] = []
    for day in range(DAYS):
        traces.append(practice(day, len(traces)))
        share = 0.8 + gain * day - (worn if day >= FREE else 0.0)
        for k in range(TASKS):
            for delta in PROTOCOL.drift.magnitudes:
                for cap, repeat in ((1, 0), (1, 1), (2, 0), (2, 1)):
                    lost = (k + cap) / (TASKS + 2) > share
                    traces.append(
                        episode(
                            index=len(traces),
                            pair=f"p{k}",
                            repeat=repeat,
                            day=day,
                            delta=delta,
                            phase="checkpoint",
                            role_cap=cap,
                            q_state=0.2 + share / 5 if lost else 1.0 - 0.3 * (cap == 1),
                            stated=0.5,
                            solved=3 if lost else 6,
                            beliefs=BELIEFS,
                            extra=RECALL,
                            costs=(("api_calls", 500.0, "evaluation"),),
                        )
                    )
    return traces


@cache
def judged(worn: float = 0.0, gain: float = 0.0) -> AgentVerdict:
    return verdict(campaign(worn, gain))


def closure(found: AgentVerdict) -> ClosureResult:
    return next(c for c in found.closures if c.name == "maintenance")


def test_an_unchanged_system_is_maintained() -> None:
    found = closure(judged())
    assert found.status == "PASS", found.reason
    assert found.days == DAYS - FREE


def test_a_worn_system_is_not() -> None:
    assert closure(judged(0.4)).status == "FAIL"


def test_aai_dyn_has_a_slope_where_every_axis_has_evidence() -> None:
    whole = judged(0.0, 0.01).kappas[0]
    assert whole.family is None
    assert whole.slope is not None, whole.reason
    assert whole.slope > 0
    assert whole.logit is not None
    assert {"per USD", "kappa_total, agent and human"} <= set(whole.details)
    flat = judged().kappas[0].slope
    assert flat == pytest.approx(0.0)


def test_the_tables_of_a_campaign_are_there() -> None:
    titles = {table.title for table in judged(0.0, 0.01).tables}
    assert {
        "Curvature of self-improvement",
        "Continuous score",
        "Theorem 3.1: what its assumptions measure here",
    } <= titles


def test_the_last_lines_are_those_of_level_five() -> None:
    lines = [gate for gate in judged().gates if gate.level == 5]
    assert len(lines) == 6
    assert {line.status for line in lines} == {"NO EVIDENCE"}
