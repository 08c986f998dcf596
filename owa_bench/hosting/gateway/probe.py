"""Probe of a chat server: what it can do, asked within a time budget.

The checks run in order of importance, three at once; on loopback one at a time, where a server
often has one slot. What the time did not reach is `not tried`, never a guess.

Source: docs/model-doctor.md.
"""

import asyncio
import time
from typing import get_args

import httpx
import msgspec

from owa_bench.errors import FieldError
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.probe_advice import flags_of, options_of
from owa_bench.hosting.gateway.probe_checks import ServerProbe
from owa_bench.hosting.gateway.probe_client import ProbeClient
from owa_bench.hosting.gateway.probe_requests import FindingName, ProbeState, ProbeVerdict
from owa_bench.shells import addresses

_AT_ONCE = 3
_NO_TIME = "no time left"
_LONGEST_S = 600.0  # of one request; the probe has a deadline for all of them


class ServerFinding(msgspec.Struct, frozen=True):
    """One thing that a server can do or cannot; `advice` is "" where none is needed."""

    name: FindingName
    verdict: ProbeVerdict
    detail: str
    advice: str = ""


class ServerFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What a server can do. None stands for a figure that was not measured.

    `options` are those of the agent `language-model`, `flags` those of `run`.
    """

    url: str
    model: str
    seconds: float
    findings: tuple[ServerFinding, ...]
    context_told: int | None
    context_reached: int | None
    tokens_per_second: float | None
    options: dict[str, str]
    flags: dict[str, str]

    def finding(self, name: FindingName) -> ServerFinding:
        """Return the finding of that name."""
        return next(each for each in self.findings if each.name == name)

    @property
    def can_play(self) -> bool:
        """Whether it makes tool calls in some way."""
        names: tuple[FindingName, ...] = ("tools", "tool_choice=required")
        return any(self.finding(name).verdict == "yes" for name in names)

    @property
    def left_out(self) -> int:
        """How many checks the time did not reach."""
        return sum(f.detail.startswith(_NO_TIME) for f in self.findings)


def probe_server(
    options: GatewayOptions,
    model: str,
    *,
    seconds: float = 10.0,
    transport: httpx.AsyncBaseTransport | None = None,
) -> ServerFindings:
    """Ask a server what it can do.

    Args:
        options: Its address, such as http://127.0.0.1:8000/v1, and its keys.
        model: Name of the model.
        seconds: Budget of all checks together.
        transport: For tests.
    Returns: The findings.
    Raises:
        FieldError: The address, a key or the model cannot be used.
        UsageError: The environment names a proxy that cannot be used.
    """
    if not model.strip():
        raise FieldError("--model", model, "must be the model's name at the server")
    options.check()
    client = ProbeClient(options.provider(_LONGEST_S), transport)
    return asyncio.run(_probe(client, model, seconds))


async def _probe(client: ProbeClient, model: str, seconds: float) -> ServerFindings:
    begun = time.perf_counter()
    at_once = 1 if addresses.is_loopback(client.base) else _AT_ONCE
    async with client:
        probe = ServerProbe(client, model, at_once)
        await probe.run(seconds)
    return _findings(probe.state, time.perf_counter() - begun)


def _findings(state: ProbeState, seconds: float) -> ServerFindings:
    """Return what was found, with the options that follow from it."""
    rows = []
    for name in get_args(FindingName):
        rest: tuple[ProbeVerdict, str, str] = ("not tried", state.stopped or _NO_TIME, "")
        rows.append(ServerFinding(name, *state.rows.get(name, rest)))
    verdicts: dict[str, str] = {row.name: row.verdict for row in rows}
    return ServerFindings(
        url=state.client.base,
        model=state.model,
        seconds=round(seconds, 1),
        findings=tuple(rows),
        context_told=state.context_told,
        context_reached=state.context_reached,
        tokens_per_second=state.tokens_per_second,
        options=options_of(state, verdicts),
        flags=flags_of(state),
    )
