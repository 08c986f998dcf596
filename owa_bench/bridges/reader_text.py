"""Text that a reader is given: the brief of a sitting, and the answer to an act."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.shells.schemas import compile_schema

ACT, BRIEF, NEXT, MEMORY = "act.json", "brief.txt", "next.txt", "memory"
MOST_BYTES = 1 << 20  # of act.json
MOST_CALLS = 50  # in one act.json
MOST_UNREADABLE = 20  # files in a row that hold no act; the episode fails with them

_HOW = """\
# How to act
- Use the files of this folder and nothing else. Read `{next}`: it shows what you see
  now.
- Write one tool call as JSON into `{act}` in this folder, for example:

      {example}

  (The tool is real, the values are made up.)
- Then wait until `{next}` changes. It shows the answer, its number and the steps left.
- Write `{act}` only after you have read the answer to your last one. An `{act}` that
  is there before the answer is set aside and not played.
- You may write a list of up to {calls} calls. They are played in order. After an
  answer that begins with `error:`, the rest are dropped; an HTTP status of an error is
  no such answer.
- Each call is one step, and a call that is refused is a step too. A file that holds no
  JSON object or list is no step; after {unreadable} of them in a row the episode fails.
- `{act}` is a plain file of at most {bytes:,} bytes. If you can, write it under another
  name and rename it, so that it is never seen half-written.
- You have {act_s:g} seconds for each `{act}`. When they are over, the episode fails.
- What you wrote and were answered stays as `act-0001.json`, `next-0001.txt` and so on.
"""
_FINISH = """\
- The episode ends with `finish`, or with `declare_infeasible`. State `p`, the
  probability that the task is done right.
"""
_BELIEFS = """\
- State there, under `beliefs`, a probability for each proposition, by its id.
- `p` and `beliefs` are scored by a proper rule: say what you believe.
"""
_NOTES = """\
- `{memory}/` in this folder is yours. It is all that the next sitting keeps: at most
  {quota:,} bytes, names of files included. With more, the episode fails.
"""


def brief_text(brief: Brief, tools: Sequence[ToolSpec]) -> str:
    """Return the brief of a sitting.

    Args:
        brief: What the agent is told; its seed is left out.
        tools: Those on offer.
    Returns: Task, goal, propositions, limits, how to act and the tools, as plain text.
    """
    return "\n".join((*_task(brief), *_limits(brief), "", *_how(brief, tools))) + (
        f"\n# Tools\n{tools_text(tools)}"
    )


def _task(brief: Brief) -> Iterator[str]:
    yield "# Task"
    if brief.role != "agent":
        yield f"You play the seat `{brief.role}`."
    if brief.session:
        yield f"This is sitting {brief.session + 1} of the episode."
    yield f"{brief.text}\n"
    yield "# Goal, as JSON"
    yield f"{json.dumps(brief.goal, ensure_ascii=False)}\n"
    if brief.propositions:
        yield "# Propositions, by id"
        yield from (f"- {name}: {text}" for name, text in brief.propositions.items())
        yield ""


def _limits(brief: Brief) -> Iterator[str]:
    words = {"steps": "steps", "act_s": f"seconds for each `{ACT}`"}
    words["memory_bytes"] = f"bytes in `{MEMORY}/`"
    yield "# Limits"
    for name, amount in brief.budgets.items():
        yield f"- {words.get(name, name)}: {amount:g}"
    left = brief.interventions_left
    yield f"- questions to the supervisor: {'no limit' if left is None else left}"


def _how(brief: Brief, tools: Sequence[ToolSpec]) -> Iterator[str]:
    text = _HOW.format(
        act=ACT,
        next=NEXT,
        example=example_call(tools),
        calls=MOST_CALLS,
        unreadable=MOST_UNREADABLE,
        bytes=MOST_BYTES,
        act_s=brief.budgets.get("act_s", 0.0),
    )
    text += _FINISH + (_BELIEFS if brief.propositions else "")
    quota = int(brief.budgets.get("memory_bytes", 0))
    yield text + (_NOTES.format(memory=MEMORY, quota=quota) if quota else "")


def next_text(
    number: int,
    answers: Sequence[str],
    *,
    step: int,
    steps: int,
    notes: Sequence[str] = (),
    tools: str = "",
) -> str:
    """Return the text of `next.txt`.

    Args:
        number: Of the act that it answers; 0 before the first.
        answers: To each of its calls, or what the sitting begins with.
        step: Steps played.
        steps: Steps that there are.
        notes: On files that were not played.
        tools: Changes of the tools on offer.
    """
    asked = f"answer to {ACT} {number}" if number else "before your first act"
    head = f"[{asked}; step {step}, {steps - step} steps left]"
    many = len(answers) > 1
    parts = [f"[call {place}]\n{text}" if many else text for place, text in enumerate(answers, 1)]
    tail = (f"[tools on offer now]\n{tools}",) if tools else ()
    return "\n\n".join((head, *(f"[note] {n}" for n in notes), *parts, *tail)) + "\n"


# --- tools ----------------------------------------------------------------------------


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """Return tools and their arguments as lists in plain text."""
    return "\n".join("\n".join(_tool(tool)) for tool in tools)


def _tool(tool: ToolSpec) -> Iterator[str]:
    yield f"- {tool.name}: {tool.about}"
    required = tool.parameters.get("required", ())
    for name, schema in tool.parameters.get("properties", {}).items():
        need = "required" if name in required else "optional"
        about = schema.get("description", "")
        rest = {key: schema[key] for key in schema if key not in ("description", "type")}
        form = " or ".join(_kinds(schema))
        rules = f" {json.dumps(rest, ensure_ascii=False)}" if rest else ""
        colon = f": {about}" if about else ""
        yield f"    - {name} ({form}, {need}){colon}{rules}"
    if not tool.parameters.get("properties"):
        yield "    - no arguments"


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types that a schema allows, in words."""
    if "anyOf" in schema:
        return [kind for part in schema["anyOf"] for kind in _kinds(part)]
    kind = schema.get("type", "string" if "enum" in schema else "any")
    names = {"array": "list", "integer": "whole number"}
    return [names.get(k, k) for k in ([kind] if isinstance(kind, str) else kind)]


def example_call(tools: Sequence[ToolSpec]) -> str:
    """Return a call of the first tool whose made-up arguments its schema allows.

    >>> example_call([])
    '{"tool": "finish", "arguments": {"p": 0.7}}'
    """
    made = [(tool, _example(tool.parameters)) for tool in tools]
    for tool, arguments in sorted(made, key=lambda pair: not pair[1]):
        if compile_schema(tool.parameters)(arguments, "arguments") is None:
            return json.dumps({"tool": tool.name, "arguments": arguments})
    return json.dumps({"tool": "finish", "arguments": {"p": 0.7}})


def _example(schema: Mapping[str, Any]) -> Any:
    """Return a value in the form of a schema; of an object its required fields."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0])
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: _example(fields[name]) for name in schema.get("required", ())}
    if kind == "array":
        return [_example(schema.get("items", {}))] if schema.get("minItems", 1) else []
    plain = {"boolean": True, "number": 0.7, "integer": 1, "string": "text"}
    if kind in ("number", "integer") and "minimum" in schema:
        return max(schema["minimum"], min(plain[kind], schema.get("maximum", 1)))
    return plain.get(kind, "text")
