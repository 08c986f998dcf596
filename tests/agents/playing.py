"""Plays a registered agent on a ToolQuest instance, in process and unrecorded."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench import discovery
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.interfaces import AgentConfig, Brief, Ending, Move
from owa_bench.records.instance import Instance
from owa_bench.runs import assembly

FAMILIES = discovery.get("suites", "toolquest").card.families


class Played(NamedTuple):
    """An episode's ending, the actions in order, what each brought and said beside."""

    ending: Ending
    actions: tuple[dict[str, Any], ...]
    seen: tuple[str, ...]
    agent: Any
    moves: tuple[Move, ...]


def instance(family: str = "reconcile", tier: int = 1, seed: int = 5) -> Instance:
    return Instance(suite="toolquest", version=3, family=family, tier=tier, seed=seed)


def play(
    name: str,
    given: Instance,
    memory: Path,
    *,
    delta: float = 0.0,
    calendar: str = "nested",
    hints: int | None = 0,
    **options: str,
) -> Played:
    card = discovery.get("agents", name)
    schedule = calendars.parse(calendar, "api")
    suite = discovery.get("suites", "toolquest")
    env = suite.env(timelines.source("toolquest", schedule), interventions=hints)
    script = assembly.procedure("toolquest", given) if card.needs == "script" else ()
    step = timelines.drift_step("toolquest", given, delta, schedule)
    observation, info = env.reset(
        options={"instance": msgspec.structs.replace(given, drift_step=step)}
    )
    shell = env.unwrapped
    agent = card.make(AgentConfig(script=script, options=options))
    brief = Brief(
        text=shell.task.text,
        goal=shell.task.goal,
        propositions=shell.task.propositions,
        interventions_left=hints,
        seed=11,
    )
    agent.reset(brief, shell.tools, memory)
    actions, moves, seen, over = [], [], [observation["text"]], False
    while not over:
        move = agent.act(observation, info)
        moves.append(move if isinstance(move, Move) else Move(move))
        action = moves[-1].action
        actions.append(msgspec.json.decode(action))
        observation, _, terminated, truncated, info = env.step(action)
        seen.append(observation["text"])
        over = terminated or truncated
    agent.close()
    ending = shell.ending
    env.close()
    return Played(ending, tuple(actions), tuple(seen), agent, tuple(moves))
