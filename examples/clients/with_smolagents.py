"""smolagents plays an episode with the model MODEL into the run directory given."""

import os
import sys

from mcp import StdioServerParameters
from smolagents import OpenAIServerModel, ToolCallingAgent, ToolCollection

START = "Call `brief` for your task, then carry it out by calling tools."
SERVE = ["serve", "--family", "reconcile", "--client", "smolagents"]

server = StdioServerParameters(
    command=os.environ.get("OWA_BENCH", "owa-bench"),
    args=[*SERVE, "--out", sys.argv[1]],
    env=dict(os.environ),
)
model = OpenAIServerModel(os.environ["MODEL"], api_base=os.environ["OPENAI_BASE_URL"])
served = {"trust_remote_code": True, "structured_output": False}
with ToolCollection.from_mcp(server, **served) as tools:
    for tool in tools.tools:  # smolagents wants every argument, and of one type
        for schema in tool.inputs.values():
            schema["nullable"] = True
            if "anyOf" in schema:
                schema["type"] = [choice["type"] for choice in schema["anyOf"]]
    agent = ToolCallingAgent(tools=[*tools.tools], model=model, max_steps=100)
    print(agent.run(START))
