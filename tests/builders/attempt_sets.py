"""A revision with its attempt sets, as the harness would have recorded it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.records.suite_events import FileChange, MemoryChange, Revision
from owa_bench.records.trace import Trace
from owa_bench.scoring.observe.attempt_sets import REVISION
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence
from tests.builders.episodes import episode

EMPTY, LATER = sha256(b""), sha256(b"later")
ARMS = {
    "before": "agent",
    "after": "agent",
    "ablated": "agent",
    "control_before": "agent (frozen)",
    "control_after": "agent (frozen)",
    "placebo": "agent (placebo)",
}
GAIN: Mapping[str, float] = {
    "before": 0.2,
    "after": 0.4,
    "ablated": 0.2,
    "control_before": 0.2,
    "control_after": 0.2,
    "placebo": 0.2,
}


def practice(days: int, *, said: bool = True, first: int = 0, **changes: Any) -> list[Trace]:
    """Return a day's practice a day; the first proposes, the last adopts."""
    traces = []
    for day in range(days):
        decision = "adopted" if day == days - 1 else "proposed"
        event = Revision(step=1, proposal="p", decision=decision)
        traces.append(
            episode(
                index=first + day,
                pair=f"practice/{day}",
                day=day,
                delta=None,
                phase="practice",
                memory=LATER,
                extra=(event,) if said else (),
                **changes,
            )
        )
    return traces


def change(
    until: int, *, since: int = 0, lines: int = 3, families: tuple[str, ...] = ()
) -> MemoryChange:
    """Return what the harness saw change between two mornings."""
    files = (FileChange(path="note", added=lines, removed=0),)
    return MemoryChange(
        since=since,
        until=until,
        before=LATER if since else EMPTY,
        after=LATER,
        played=EMPTY,
        files=files if lines else (),
        families=families,
    )


def sets(
    quality: Mapping[str, float] = GAIN,
    *,
    tasks: int = 120,
    until: int = 3,
    day: int | None = None,
    first: int = 1000,
    noise: float = 0.05,
    shown: MemoryChange | None = None,
    seed: int = 0,
    **changes: Any,
) -> list[Trace]:
    """Return the attempt sets of the window (0, until), played on `day`."""
    traces: list[Trace] = []
    rng = np.random.default_rng(seed)
    for condition, mean in quality.items():
        errors = rng.standard_normal(tasks)
        for k in range(tasks):
            state = float(np.clip(mean + noise * (errors[k] - errors.mean()), 0.0, 0.9))
            began = {"before": EMPTY, "after": LATER, "ablated": EMPTY}
            terms: dict[str, Any] = {
                "index": first + len(traces),
                "arm": ARMS[condition],
                "pair": f"holdout/{k}",
                "day": until if day is None else day,
                "condition": condition,
                "window": (0, until),
                "memory": began.get(condition),
                "q_state": state,
                "stated": 0.0,
                "extra": (shown or change(until),) if condition == "ablated" else (),
            }
            own = changes.get(condition, {})
            traces.append(episode(**(terms | own)))
    return traces


def campaign_evidence(arm: str, pair: str, gain: float) -> CampaignEvidence:
    """Return a campaign inside an episode whose adopted version has a gain."""
    return CampaignEvidence(
        arm=arm,
        pair=pair,
        family="selfrev/memory",
        quality=dict.fromkeys(REVISION, 0.4) | {"after": 0.4 + gain},
        size=40,
        attempts={},
        e_values={pair: 1e6},
        adopted=(pair,) if gain else (),
        countable=True,
        proposals=1,
        lines=1,
        faults=(),
    )
