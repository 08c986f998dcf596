"""NeMo Gym: a resources server whose sessions are episodes, and the rows of a data set.

Imported in an environment that holds both packages (NeMo Gym needs Python 3.13). Source:
docs/train-a-language-model.md#nemo-gym
"""

from collections.abc import Iterator
from typing import Any

from owa_bench.errors import MissingPartError
from owa_bench.runs.episode_session import EpisodeSession, open_episode

try:
    from fastapi import FastAPI, HTTPException, Request
    from fastapi.responses import PlainTextResponse
    from nemo_gym.base_resources_server import (
        BaseSeedSessionRequest,
        BaseSeedSessionResponse,
        BaseVerifyRequest,
        BaseVerifyResponse,
        SimpleResourcesServer,
    )
    from nemo_gym.server_utils import SESSION_ID_KEY
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingPartError("NeMo Gym", "pip install nemo-gym") from error


class EpisodeSeedRequest(BaseSeedSessionRequest):
    """The field of a row that says which episode it is: the fields of `open_episode`."""

    episode: dict[str, Any]


class EpisodeVerifyResponse(BaseVerifyResponse):
    """What a row's rollout is worth; 0 where the episode was not ended."""

    steps: int
    success: bool


class EpisodeResourcesServer(SimpleResourcesServer):
    """Seeds a session with an episode, plays its tools as routes, pays its sum of rewards.

    Calls are played one after the other: an episode is no program of several threads.
    """

    ray_enabled = False
    _sessions: dict[str, EpisodeSession] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application: NeMo Gym's own routes, then one for all tools."""
        app = super().setup_webserver()
        app.post("/{tool}")(self.call_tool)
        return app

    async def seed_session(
        self, request: Request, body: EpisodeSeedRequest
    ) -> BaseSeedSessionResponse:
        """Begin a session's episode.

        Args:
            request: Of the session.
            body: The row.
        Returns: NeMo Gym's empty answer.
        """
        name = request.session[SESSION_ID_KEY]
        if name in self._sessions:
            self._sessions.pop(name).close()
        self._sessions[name] = open_episode(**body.episode)
        return BaseSeedSessionResponse()

    async def call_tool(self, tool: str, request: Request) -> PlainTextResponse:
        """Play a call.

        Args:
            tool: Name of the tool.
            request: Of the session; its body holds the arguments.
        Returns: The answer as text.
        """
        session = self._sessions.get(request.session[SESSION_ID_KEY])
        if session is None:
            raise HTTPException(400, "The session has no episode: call /seed_session first.")
        if session.done:
            return PlainTextResponse("The episode has ended.")
        reply = session.call(tool, (await request.body()).decode("utf-8", "replace"))
        return PlainTextResponse(reply.text)

    async def verify(self, request: Request, body: BaseVerifyRequest) -> EpisodeVerifyResponse:
        """Return what a session's episode was worth, and close it.

        Args:
            request: Of the session.
            body: The rollout, which is returned with the reward.
        Returns: The row with its reward.
        """
        session = self._sessions.pop(request.session[SESSION_ID_KEY], None)
        if session is None:
            raise HTTPException(400, "The session has no episode: call /seed_session first.")
        paid = {"reward": session.reward, "steps": session.steps, "success": session.success}
        session.close()
        return EpisodeVerifyResponse(**body.model_dump(), **paid)


def rows(suite: str, seeds: range, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a data set, one for each seed.

    Args:
        suite: Name of a suite with tools.
        seeds: Of the instances.
        options: As for `open_episode`.
    """
    for seed in seeds:
        episode = {"suite": suite, "seed": seed, **options}
        with open_episode(**episode) as session:
            tools = [
                {"type": "function", "strict": False, **tool["function"]} for tool in session.tools
            ]
            yield {
                "responses_create_params": {"input": session.messages, "tools": tools},
                "episode": episode,
            }


if __name__ == "__main__":
    EpisodeResourcesServer.run_webserver()
