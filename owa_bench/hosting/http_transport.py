"""Transport to an agent behind an address; apart, for few runs need an HTTP client."""

import time

import httpx
import msgspec

from owa_bench.errors import AgentRaised
from owa_bench.hosting.protocol import AgentReply, AgentRequest, read_reply, write_line
from owa_bench.hosting.transports import REPLY_LIMIT, TAIL_BYTES, late
from owa_bench.seeding import fresh_bytes


class HttpTransport:
    """Transport to an agent's address: a request is one POST, its reply the response.

    A service that cannot be reached is the agent's failure, not the harness': else an agent could
    have a hard episode played again by hanging up.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._episode = fresh_bytes(8).hex()
        self._client = httpx.Client()

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply to one POST.

        Args:
            request: What the agent is asked.
            deadline_s: Seconds it has.
        """
        body = write_line(msgspec.structs.replace(request, episode=self._episode))
        try:
            return read_reply(self._post(body, time.monotonic() + deadline_s))
        except httpx.TimeoutException as error:
            raise late(deadline_s) from error
        except httpx.HTTPError as error:
            raise AgentRaised(
                f"the agent's address failed: {type(error).__name__}: {error}"
            ) from error

    def end(self) -> float:
        """Close the connection; what the service does then is its own affair."""
        self._client.close()
        return 0.0

    def _post(self, body: bytes, until: float) -> bytes:
        data = bytearray()
        headers = {"content-type": "application/json"}
        deadline_s = until - time.monotonic()
        with self._client.stream(
            "POST", self._url, content=body, headers=headers, timeout=deadline_s
        ) as response:
            status = response.status_code
            for chunk in response.iter_bytes():
                data += chunk
                if status != httpx.codes.OK and len(data) > TAIL_BYTES:
                    break
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("the response takes too long")
                if len(data) > REPLY_LIMIT:
                    raise AgentRaised(f"a reply has at most {REPLY_LIMIT} bytes")
        if status != httpx.codes.OK:
            words = " ".join(data[:TAIL_BYTES].decode(errors="replace").split())
            detail = f": {words}" if words else ""
            raise AgentRaised(f"the agent's address answered HTTP {status}{detail}")
        return bytes(data)
