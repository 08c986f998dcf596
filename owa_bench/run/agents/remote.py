"""An agent behind an address: each request is one POST, its reply the response body.

The body is a request of `messages` with one more field, `episode`: an opaque name, so
that one service can play many episodes at once.
"""

import time

import httpx

from owa_bench.errors import AgentRaised, AgentTimeout
from owa_bench.run.agents.exchange import REPLY_LIMIT
from owa_bench.run.agents.protocol import AgentRequest, write_request
from owa_bench.seeding import fresh_bytes


class HttpExchange:
    """The connection of one episode to an agent's address.

    A service that cannot be reached is the agent's failure, not the harness': else an
    agent could have a hard episode played again by hanging up.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._episode = fresh_bytes(8).hex()
        self._client = httpx.Client()

    def ask(self, request: AgentRequest, deadline_s: float) -> bytes:
        """Return the body of the response.

        Errors: AgentTimeout past the deadline, AgentRaised for any other failure.
        """
        until = time.monotonic() + deadline_s
        body = write_request(request, episode=self._episode)
        try:
            return self._post(body, until, deadline_s)
        except httpx.TimeoutException as error:
            raise _late(deadline_s) from error
        except httpx.HTTPError as error:
            raise AgentRaised(
                f"the agent's address failed: {type(error).__name__}: {error}"
            ) from error

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _post(self, body: bytes, until: float, deadline_s: float) -> bytes:
        data = bytearray()
        headers = {"content-type": "application/json"}
        with self._client.stream(
            "POST", self._url, content=body, headers=headers, timeout=deadline_s
        ) as response:
            if response.status_code != httpx.codes.OK:
                raise AgentRaised(
                    f"the agent's address answered HTTP {response.status_code}"
                )
            for chunk in response.iter_bytes():
                data += chunk
                if time.monotonic() > until:
                    raise _late(deadline_s)
                if len(data) > REPLY_LIMIT:
                    raise AgentRaised(f"a reply has at most {REPLY_LIMIT} bytes")
        return bytes(data)


def _late(deadline_s: float) -> AgentTimeout:
    return AgentTimeout(f"no reply within {deadline_s:g} s")
