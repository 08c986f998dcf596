"""Inspect AI task: each sample is one recorded episode of a run directory.

    inspect eval owa_bench/recorded_episodes --model .. -T out=runs/mine -T episodes=10

Imported by Inspect, in an environment that has both packages. The episode loop is that of
`owa-bench serve`, in this process: what counts is the run directory, whatever Inspect's own log
says.
"""

from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef, ToolError, ToolParams

from owa_bench.bridges.client_calls import TOO_LATE, ClientCalls, ClientRun
from owa_bench.errors import UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Progress, Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

START = "Call the tool `brief` for your task, then carry it out by calling tools."
GO_ON = "Only tool calls count. Go on, and end with `finish` or `declare_infeasible`."
_MAX_SILENT = 3  # answers without a tool call in a row, then the episode is given up
_RECORD = "owa_bench"  # key of a sample's store


@task
def recorded_episodes(
    out: str,
    suite: str = "toolquest",
    family: str | None = None,
    tier: int = 1,
    delta: float = 0.0,
    episodes: int = 1,
    client: str = "inspect",
    act_seconds: float = 600.0,
) -> Task:
    """Return the task that plays a run, or what is left of the one in `out`.

    Args:
        out: the run directory.
        suite: name of the suite.
        family: one family; None: all.
        tier: of the instances.
        delta: drift magnitude.
        episodes: instances a family.
        client: name of the arm.
        act_seconds: most time between two tool calls, s.
    Returns: The task; a sample an episode that is not played yet.
    Raises: UsageError: every episode has been played; also those of `batch.play`.
    Source: docs/serve-over-mcp.md#inspect-ai
    """
    folder, calls = Path(out), ClientCalls()
    families = () if family is None else (family,)
    draw = Draw(name=suite, families=families, tiers=(tier,), deltas=(delta,), episodes=episodes)
    request = Request(
        agents=(f"client:{client}",),
        draws=(draw,),
        name=folder.name,
        budget=Budget(act_s=act_seconds),
    )
    started = RunLayout(folder).plan.exists()
    options = RunOptions(home=keys.data_folder(), folder=Path.cwd())
    run = ClientRun(calls, None if started else request, folder, options)
    run.start()
    if not run.wait_for_episode():
        run.summary()
        raise UsageError(f"{folder} has no episode left to play: give another `out`.")
    missing = batch.summary(RunLayout(folder)).missing
    return Task(
        dataset=[Sample(input=START, id=number + 1) for number in range(missing)],
        solver=play_sample(calls, run),
        scorer=recorded_end(),
    )


@solver
def play_sample(calls: ClientCalls, run: ClientRun) -> Solver:
    """Return the solver that plays the run's next episode, one sample at a time.

    Args:
        calls: of the run's client.
        run: the run.
    Returns: The solver; a sample that stops before its episode's end has failed it.
    """
    turn = anyio.Lock()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with turn:
            played, episode = len(run.done), calls.begun
            if not calls.is_open(episode):
                raise UsageError("Every episode is played: use -T episodes, no epochs.")
            tools = [_tool_of(tool, calls, episode) for tool in calls.offered]
            state.tools = list(tools)
            silent = 0
            try:
                while calls.is_open(episode):
                    state = await generate(state, tool_calls="single")
                    silent = 0 if state.output.message.tool_calls else silent + 1
                    if silent > _MAX_SILENT or state.completed:
                        break
                    if silent:
                        state.messages.append(ChatMessageUser(content=GO_ON))
            finally:
                calls.give_up(episode)
                for one in run.done[played:]:
                    state.store.set(_RECORD, _record(one))
        return state

    return solve


@scorer(metrics={"success": [mean(), stderr()], "q_state": [mean(), stderr()]})
def recorded_end() -> Scorer:
    """Return the scorer that reads how the harness ended the sample's episode."""

    async def score(state: TaskState, _target: Target) -> Score:
        record = state.store.get(_RECORD)
        if record is None:
            raise UsageError("The sample has no recorded episode: see the run's log.")
        value = {name: float(record[name]) for name in ("success", "q_state")}
        return Score(value=value, explanation=record["reason"], metadata=record)

    return score


def _record(progress: Progress) -> dict[str, Any]:
    """Return what Inspect keeps of a closed attempt."""
    end = progress.end
    return {
        "attempt": progress.leaf.attempt_id,
        "outcome": end.outcome,
        "reason": end.reason,
        "success": end.success,
        "q_state": end.q_state,
    }


def _tool_of(tool: ToolSpec, calls: ClientCalls, episode: int) -> ToolDef:
    """Return a tool of an episode as Inspect's; a failed call is a `ToolError`."""

    async def execute(**arguments: Any) -> str:
        if not calls.is_open(episode):
            raise ToolError(TOO_LATE)
        result = await anyio.to_thread.run_sync(
            calls.call, tool.name, arguments, abandon_on_cancel=True
        )
        if result.error:
            raise ToolError(result.text)
        return result.text

    parameters = ToolParams.model_validate(dict(tool.parameters))
    for name, parameter in parameters.properties.items():
        parameter.description = parameter.description or name  # Inspect wants one
    return ToolDef(execute, tool.name, tool.about, parameters, parallel=False)
