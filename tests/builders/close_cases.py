"""Worlds of the kind `close`, answers to them, and the parser's play of one."""

import json
from typing import Any, NamedTuple

from msgspec.structs import replace

from owa_bench.agents.solvers.cases.close import CloseParser
from owa_bench.agents.solvers.planning import PlanReply
from owa_bench.company.kinds.close import KIND
from owa_bench.company.kinds.contract import CaseSpec, CaseState, CaseWorld, NoWorldError
from owa_bench.envs.casework import session
from owa_bench.interfaces import Brief
from owa_bench.records.instance import Timeline
from owa_bench.seeding import derive
from owa_bench.shells.episode_events import NullSink

REDRAWS = 20


class ClosePlay(NamedTuple):
    """What a play of a world came to."""

    quality: float
    parts: dict[str, float]
    classes: frozenset[str]
    calls: int
    minutes: int
    beliefs: dict[str, float]


def draw(seed: int, level: int, *, practice: bool = False) -> CaseWorld:
    """Return the world of a seed; companies without fitting facts are drawn again."""
    for number in range(REDRAWS):
        try:
            return KIND.draw(CaseSpec(derive(seed, "close", number), level, practice))
        except NoWorldError:
            continue
    raise AssertionError(f"no company of {REDRAWS} fits the seed {seed}")


def events(world: CaseWorld) -> frozenset[str]:
    """Return the names of all events of a world."""
    return frozenset(event.name for event in world.events)


def answered(world: CaseWorld, truth: Any) -> CaseState:
    """Return the state in which an answer is posted and handed in."""
    calls, deliverables = KIND.solution(world, truth)
    state = CaseState()
    for call, body in calls:
        state = CaseState(settled=dict(KIND.post(world, state, call, body).settled))
    return replace(state, handed_in=dict(deliverables))


def parts(world: CaseWorld, truth: Any, state: CaseState) -> dict[str, float]:
    """Return the parts of a state by name."""
    return {part.name: part.value for part in KIND.parts(world, truth, state)}


def quality(world: CaseWorld, truth: Any, state: CaseState) -> float:
    """Return the weighted sum of the parts."""
    return sum(part.weight * part.value for part in KIND.parts(world, truth, state))


def play(world: CaseWorld, miss: tuple[str, ...] = ()) -> ClosePlay:
    """Return what the parser comes to, through the tools of a session."""
    line = Timeline(instance=None, starts=(0,), worlds=(world,), changes=((),), realised=0.0)  # type: ignore[arg-type]
    case = session.CaseSession(line, NullSink())
    task = case.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    plan = CloseParser(brief, miss).plan()
    calls = now = 0
    try:
        call = next(plan)
        while True:
            calls += 1
            result = case.call(call.tool, dict(call.arguments), now_ms=now, step=calls)
            now += result.elapsed_ms
            try:
                value = json.loads(result.text.partition("\n")[2])
            except ValueError:
                value = None
            call = plan.send(PlanReply(result.text, value))
    except StopIteration as end:
        beliefs = dict(end.value.arguments.get("beliefs", {}))
    finally:
        case.close()
    truth = KIND.truth(world, case.state.happened)
    return ClosePlay(
        quality=quality(world, truth, case.state),
        parts=parts(world, truth, case.state),
        classes=frozenset(reason for item in truth.items for reason in item.reasons),
        calls=calls,
        minutes=case.state.minute,
        beliefs=beliefs,
    )
