"""A campaign in which every axis has evidence, and its verdict."""

from functools import cache

from owa_bench.records.events import Probe
from owa_bench.records.score import AgentVerdict
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
