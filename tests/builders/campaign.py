"""A campaign in which every axis has evidence, and its verdict."""

from functools import cache
from typing import Any

from owa_bench.records.events import AnyEvent, Probe, ToolOffer
from owa_bench.records.score import AgentVerdict
from owa_bench.records.trace import Trace
from tests.builders.episodes import PROTOCOL, episode, with_help
from tests.builders.verdicts import verdict

DAYS, TASKS, PRACTICE = 14, 8, 20
NO_TOOLS = ToolOffer(step=0, names=("answer", "go_on", "finish"))


def recall(task: int) -> tuple[AnyEvent, ...]:
    """Return the memory checks of a task: ten items at three lags, one retrieval."""
    items = (
        Probe(item=f"i{task}-{k}", lag_days=lag, correct=k < 8)
        for lag in (1.0, 7.0, 14.0)
        for k in range(10)
    )
    found = Probe(
        item=f"q{task}", lag_days=1, correct=True, mode="retrieve", returned=(("d", True),)
    )
    return (NO_TOOLS, *items, found)


BELIEFS = tuple(("unit", 0.8 if y else 0.2, y) for y in (True, False, True))


def practice(
    day: int, index: int, *, episodes: int = PRACTICE, calls: float = 2_500.0, **terms: Any
) -> list[Trace]:
    """Return a day's episodes of practice, the first with the given index."""
    return [
        episode(
            index=index + k,
            pair=f"practice{day}/{k}",
            day=day,
            delta=None,
            phase="practice",
            costs=(("api_calls", calls, "agent"),),
            **terms,
        )
        for k in range(episodes)
    ]


def campaign(gain: float = 0.0) -> list[Trace]:
    """Return days of checkpoints; a day's practice adds `gain`."""
    traces: list[Trace] = []
    for day in range(DAYS):
        traces += practice(day, len(traces))
        share = 0.8 + gain * day
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
                            extra=recall(k),
                            costs=(("api_calls", 500.0, "evaluation"),),
                        )
                    )
    return with_help(traces)


@cache
def judged(gain: float = 0.0) -> AgentVerdict:
    return verdict(campaign(gain))
