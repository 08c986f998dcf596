"""verifiers: a taskset whose tasks are episodes, their tools a tool server for each rollout.

Needs the extra `[verifiers]`. Source: docs/train-a-language-model.md#verifiers
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from owa_bench.errors import MissingPartError, extra
from owa_bench.runs.episode_session import EpisodeSession, open_episode

try:
    import verifiers.v1 as vf
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.tools.base import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
    from pydantic import ConfigDict
except ImportError as error:
    raise MissingPartError("verifiers", extra("verifiers")) from error


class EpisodeState(vf.State):
    """What a rollout's tool server tells the one that scores it."""

    reward: float = 0.0
    steps: int = 0
    success: bool = False
    done: bool = False


class EpisodeData(vf.TaskData):
    """Which episode a task is: the fields of `open_episode`."""

    episode: dict[str, Any]


class AnyArguments(ArgModelBase):
    """Arguments as they came: a malformed call is a step, which the episode answers."""

    model_config = ConfigDict(extra="allow")

    def model_dump_one_level(self) -> dict[str, Any]:
        """Return all of them as one."""
        return {"arguments": dict(self.model_extra or {})}


class EpisodeToolset(vf.Toolset[vf.ToolsetConfig, EpisodeState]):
    """The tools of one episode, by their own names."""

    TOOL_PREFIX = None
    _session: EpisodeSession

    async def setup_task(self, task: EpisodeData) -> None:
        """Begin the episode. Args: task: which."""
        self._session = open_episode(**task.episode)

    def register(self, mcp: MCPServer) -> None:
        """Offer the episode's tools. Args: mcp: the server."""
        for tool in self._session.tools:
            function = tool["function"]
            offered = Tool(
                fn=self._with_state(self._caller(function["name"])),
                fn_metadata=FuncMetadata(arg_model=AnyArguments),
                is_async=True,
                **function,
            )
            mcp._tool_manager._tools[offered.name] = offered  # noqa: SLF001  no other way in

    def _caller(self, name: str) -> Any:
        async def call(arguments: dict[str, Any]) -> str:
            session, state = self._session, self.state
            if session.done:
                return "The episode has ended."
            reply = session.call(name, arguments)
            state.reward, state.steps, state.done = session.reward, session.steps, reply.done
            state.success = session.success
            return reply.text

        return call


class EpisodeTask(vf.Task[EpisodeData, EpisodeState]):
    """An episode; its reward is the sum of the episode's."""

    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:
        """Return the tool server of a rollout. Args: config: of the task."""
        return [EpisodeToolset(vf.ToolsetConfig())]

    @vf.stop
    async def ended(self, trace: vf.Trace) -> bool:
        """Return whether the episode has ended. Args: trace: of the rollout."""
        return bool(trace.state.done)

    @vf.reward
    async def quality(self, trace: vf.Trace) -> float:
        """Return the sum of rewards. Args: trace: of the rollout."""
        return float(trace.state.reward)

    @vf.metric
    async def success(self, trace: vf.Trace) -> float:
        """Return 1 for a success. Args: trace: of the rollout."""
        return float(trace.state.success)


class EpisodeTasksetConfig(vf.TasksetConfig):
    """Which episodes: one for each seed, with the same `options` of `open_episode`."""

    suite: str = "toolquest"
    seeds: list[int] = [0]
    options: dict[str, Any] = {}


class EpisodeTaskset(vf.Taskset[EpisodeTask, EpisodeTasksetConfig]):
    """The episodes of a suite as tasks."""

    def load(self) -> Iterator[EpisodeTask]:
        """Yield a task for each seed."""
        config, options = self.config, dict(self.config.options)
        if record := options.pop("record", None):  # the tool servers have folders of their own
            options["record"] = str(Path(record).resolve())
        for seed in config.seeds:
            episode = {"suite": config.suite, "seed": seed, **options}
            with open_episode(**{**episode, "record": None}) as session:
                system, task = (message["content"] for message in session.messages)
            data = EpisodeData(
                name=f"{config.suite}-{seed}", system_prompt=system, prompt=task, episode=episode
            )
            yield EpisodeTask(data, config.task)


if __name__ == "__main__":
    EpisodeToolset.run()
