"""Inspect's tool loop on samples against a chat server, with one tool that does nothing."""

import json
import os
import sys
import tempfile

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool


@tool
def note():
    async def execute(text: str) -> str:
        """Keep a thought.

        Args:
            text: the thought.
        """
        return "kept"

    return execute


for line in sys.stdin:
    given = json.loads(line)
    os.environ |= {"STUB_API_KEY": "stub", "STUB_BASE_URL": given["url"]}
    task = Task(
        dataset=[Sample(input="Think.", id=number) for number in range(given["samples"])],
        solver=[use_tools(note()), generate(tool_calls="loop")],
    )
    with tempfile.TemporaryDirectory() as folder:
        logs = evaluate(
            task,
            model="openai-api/stub/stub",
            max_connections=given["at_once"],
            max_samples=given["at_once"],
            log_dir=folder,
            display="none",
            score=False,
        )
    if logs[0].status != "success":
        raise SystemExit(f"the evaluation ended as {logs[0].status}: {logs[0].error.message}")
    print(json.dumps({"samples": given["samples"]}))
