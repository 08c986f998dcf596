"""`owa-bench export --to inspect`: counted episodes as logs of Inspect AI, one an arm.

    inspect view --log-dir logs

A sample is an episode: its conversation (what the agent saw, its tool calls), the scores as this
package's scoring reads them, and the episode's row as metadata. The log is a copy for Inspect's
viewer and analysis; what counts is the run directory.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import MissingPartError, TraceError, UsageError
from owa_bench.records import events
from owa_bench.records.trace import Trace
from owa_bench.reports.read.run_tables import EpisodeRow, OpenRun, open_run

INSTALL = "pip install inspect-ai"
SCORES = ("success", "q_state", "quality")
_UNSAFE = str.maketrans(dict.fromkeys('/\\:*?"<>| ', "_"))


class ExportedLog(NamedTuple):
    """A log that was written: its file, its arm, and how many samples it holds."""

    path: Path
    arm: str
    samples: int


def export_logs(run_dir: Path, folder: Path) -> tuple[ExportedLog, ...]:
    """Write a log per arm of a run into `folder`, and return what was written.

    Args:
        run_dir: the run directory.
        folder: of the logs.
    Returns: The logs, one an arm.
    Raises:
        MissingPartError: Inspect AI is not installed.
        UsageError: the run has nothing to export, or a log is there already.
        TraceError: a trace is broken.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise MissingPartError("Inspect AI", INSTALL) from error
    run = open_run(run_dir)
    rows = {row.attempt: row for row in run.episodes()}
    if not rows:
        raise UsageError(f"{run_dir} holds no counted episode yet: nothing to export.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for arm in run.bundle.plan.arms:
        samples = [
            _sample(run, trace, rows[trace.leaf.attempt_id])
            for trace in run.bundle.traces()
            if trace.start.arm == arm.name and trace.leaf.attempt_id in rows
        ]
        if samples:
            name = f"{run.bundle.plan.name}_{arm.name}.eval".translate(_UNSAFE)
            path = folder / name
            if path.exists():
                raise UsageError(f"{path} is there already: choose another folder.")
            write_eval_log(_log(run, arm.name, arm.agent, samples), str(path))
            written.append(ExportedLog(path, arm.name, len(samples)))
    return tuple(written)


def _log(run: OpenRun, arm: str, agent: str, samples: list[Any]) -> Any:
    """Return the log of an arm."""
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalMetric,
        EvalResults,
        EvalScore,
        EvalSpec,
    )

    plan = run.bundle.plan
    means = {name: sum(s.scores[name].value for s in samples) / len(samples) for name in SCORES}
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=plan.created or "1970-01-01T00:00:00+00:00",
            task=f"owa_bench/{plan.name}",
            run_id=run.bundle.plan_digest,
            dataset=EvalDataset(
                name=", ".join(suite.name for suite in plan.suites),
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            model=f"owa_bench/{arm}",
            config=EvalConfig(),
            metadata={
                "agent": agent,
                "plan_digest": run.bundle.plan_digest,
                "evidence_root": run.bundle.evidence_root,
                "replay_root": run.bundle.replay_root,
                "protocol_digest": plan.protocol_digest,
            },
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                EvalScore(
                    name=name,
                    scorer=f"owa_bench/{name}",
                    scored_samples=len(samples),
                    metrics={"mean": EvalMetric(name="mean", value=mean)},
                )
                for name, mean in means.items()
            ],
        ),
        samples=samples,
    )


def _sample(run: OpenRun, trace: Trace, row: EpisodeRow) -> Any:
    """Return an episode as a sample."""
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelUsage
    from inspect_ai.scorer import Score

    messages = list(_messages(run, trace))
    usage: dict[str, ModelUsage] = {}
    for call in trace.of(events.ModelCall):
        if call.source == "harness":
            used = usage.setdefault(call.model, ModelUsage())
            used.input_tokens += call.tokens_in
            used.output_tokens += call.tokens_out
            used.total_tokens += call.tokens_in + call.tokens_out
    values = {name: float(getattr(row, name)) for name in SCORES}
    return EvalSample(
        id=row.attempt,
        epoch=1,
        input=messages[0].text if messages else row.pair,
        target="",
        messages=messages,
        scores={name: Score(value=value, explanation=row.reason) for name, value in values.items()},
        metadata=msgspec.structs.asdict(row),
        model_usage=usage,
        total_time=row.wall_s,
    )


def _messages(run: OpenRun, trace: Trace) -> Iterator[Any]:
    """Yield the conversation: what the agent saw first, then calls and results."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
    from inspect_ai.tool import ToolCall

    seen = {event.step: event.blob for event in trace.of(events.Observation)}
    if 0 in seen:
        yield ChatMessageUser(content=_text(run, seen[0]))
    for action in trace.of(events.Action):
        name, arguments = _tool_call(action.action)
        call = ToolCall(id=f"step{action.step}", function=name, arguments=arguments)
        yield ChatMessageAssistant(content="", tool_calls=[call], model=action.role)
        yield ChatMessageTool(
            content=_text(run, seen.get(action.step, action.observation)),
            tool_call_id=call.id,
            function=name,
        )


def _tool_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and arguments of an action; another text is one of `act`."""
    try:
        move = json.loads(text)
    except ValueError:
        move = None
    if isinstance(move, dict) and isinstance(move.get("tool"), str):
        given = move.get("arguments")
        return move["tool"], given if isinstance(given, dict) else {}
    return "act", {"action": text}


def _text(run: OpenRun, digest: str) -> str:
    """Return a text of the run, "" where it is not kept."""
    try:
        return run.text(digest)
    except TraceError:
        return ""
