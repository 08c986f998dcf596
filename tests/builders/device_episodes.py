"""Hand-made episodes of a body on both sides, and of the reference in simulation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from owa_bench.records.events import AnyEvent, Exposure
from owa_bench.records.score import AgentVerdict, AxisScore
from owa_bench.records.trace import Trace
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of

HOUR = 3600.0
REFERENCE = "careful"
RULES = msgspec.structs.replace(PROTOCOL, references={"toolquest": (REFERENCE,)})


class DeviceEpisode(NamedTuple):
    """An episode of a body: where it was played and what came of it."""

    pair: str
    side: str = "real"
    won: bool = True
    hours: float = 1.0  # in motion
    most: float | None = None  # hours that may count; None: all of them
    events: tuple[AnyEvent, ...] = ()
    arm: str = "agent"
    phase: str = "holdout"
    delta: float = 0.0


def traces(episodes: Iterable[DeviceEpisode]) -> list[Trace]:
    """Return the attempts of a run."""
    made: list[Trace] = []
    times: dict[tuple[str, str], int] = {}
    for one in episodes:
        place = times[one.arm, one.pair] = times.get((one.arm, one.pair), -1) + 1
        most = one.hours if one.most is None else one.most
        moved = Exposure(step=1, moved_s=one.hours * HOUR, most_s=most * HOUR)
        made.append(
            episode(
                index=len(made),
                arm=one.arm,
                pair=one.pair,
                repeat=place,
                delta=one.delta,
                side=one.side,
                phase=one.phase,
                q_state=float(one.won),
                extra=(*(() if one.side == "sim" else (moved,)), *one.events),
            )
        )
    return made


def both_sides(
    device: Sequence[bool],
    simulated: Sequence[bool],
    *,
    reference: Sequence[bool] | None = None,
    hours: float = 1.0,
    side: str = "real",
    events: Mapping[int, tuple[AnyEvent, ...]] = {},
) -> list[DeviceEpisode]:
    """Return a task an item, on the device, in simulation and by the reference there.

    Args:
        device: Which tasks the agent solves on the device.
        simulated: Which in simulation.
        reference: Which the reference solves in simulation, by default every one.
        hours: In motion, an episode of the device.
        side: "real" or "surrogate".
        events: More events of the device's episodes, by place.
    """
    by = [True] * len(simulated) if reference is None else reference
    return [
        *(
            DeviceEpisode(f"p{k}", side, won, hours, events=events.get(k, ()))
            for k, won in enumerate(device)
        ),
        *(DeviceEpisode(f"p{k}", "sim", won) for k, won in enumerate(simulated)),
        *(DeviceEpisode(f"p{k}", "sim", won, arm=REFERENCE) for k, won in enumerate(by)),
    ]


def verdict(episodes: Iterable[DeviceEpisode]) -> AgentVerdict:
    """Return the verdict on the agent."""
    return verdict_of(traces(episodes))


def verdict_of(played: list[Trace]) -> AgentVerdict:
    """Return the verdict on the agent over attempts of a run."""
    plan = plan_of(played, embodied=True)
    made = judge(plan, played, RULES, PRICES, evidence_root="", replay_root=ROOT)
    return next(one for one in made.verdicts if one.arm == "agent")


def embodiment(episodes: Iterable[DeviceEpisode]) -> AxisScore:
    """Return axis E of the agent."""
    return axis_of(verdict(episodes))


def axis_of(judged: AgentVerdict) -> AxisScore:
    """Return axis E of a verdict."""
    return next(one for one in judged.axes if one.symbol == "E")


def part(score: AxisScore, name: str) -> float:
    """Return a part of E."""
    value = score.details["beside"][name]["value"]
    return float(value)
