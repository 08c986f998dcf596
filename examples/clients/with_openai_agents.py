"""openai-agents plays an episode with the model MODEL into the run directory given."""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

START = "Call `brief` for your task, then carry it out by calling tools."
SERVE = ["serve", "--family", "reconcile", "--client", "openai-agents"]


async def main() -> None:
    """Play until the model's answer holds no tool call."""
    set_tracing_disabled(True)
    command = {
        "command": os.environ.get("OWA_BENCH", "owa-bench"),
        "args": [*SERVE, "--out", sys.argv[1]],
        "env": dict(os.environ),
    }
    async with MCPServerStdio(command, client_session_timeout_seconds=600) as server:
        agent = Agent(
            name="player",
            instructions=START,
            model=OpenAIChatCompletionsModel(os.environ["MODEL"], AsyncOpenAI()),
            mcp_servers=[server],
        )
        result = await Runner.run(agent, "Begin.", max_turns=100)
    print(result.final_output)


asyncio.run(main())
