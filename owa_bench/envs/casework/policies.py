"""Control policies of the suite: floors, a leak probe, an over-doer and the oracle."""

import os
from collections.abc import Callable, Mapping

from owa_bench.company.kinds.contract import CaseState, CaseWorld
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.seeding import pick, stream
from owa_bench.shells.solution import ControlPolicy, KnowingPolicy, NextCall

_FINISH: NextCall = {"tool": "finish", "arguments": {}}
_REQUESTS = 15


class CaseNoOp(ControlPolicy):
    """Finishes at once."""

    def _next(self, hint: NextCall, world: CaseWorld, state: CaseState) -> NextCall:
        return _FINISH


class CaseRandom(ControlPolicy):
    """Asks hosts of the company for random paths and finishes."""

    def _next(self, hint: NextCall, world: CaseWorld, state: CaseState) -> NextCall:
        if self.steps > _REQUESTS:
            return _FINISH
        rng = stream(self.seed, "agent", self.steps)
        host = pick(world.hosts, rng)
        path = pick(("/", *(table.path for table in host.tables)), rng)
        return {"tool": "http", "arguments": {"url": f"https://{host.host}{path}"}}


class CasePlausibleWrong(ControlPolicy):
    """Reads as the oracle does and writes the same plausible answer for every item."""

    def _next(self, hint: NextCall, world: CaseWorld, state: CaseState) -> NextCall:
        arguments = dict(hint["arguments"])
        body = arguments.get("body")
        if hint["tool"] == "http" and isinstance(body, list) and state.settled:
            return _FINISH
        if hint["tool"] == "http" and isinstance(body, list):
            first = body[0]
            arguments["body"] = [{**first, **_key_of(first, row)} for row in body]
            return {**hint, "arguments": arguments}
        return _FINISH if hint["tool"] == "submit" else hint


def _key_of(first: Mapping[str, object], row: Mapping[str, object]) -> dict[str, object]:
    """Return the cell that names a row: the first one."""
    name = next(iter(first))
    return {name: row[name]}


class CaseOverDoer(ControlPolicy):
    """Does all that is right, and changes customers and credit notes besides."""

    def _next(self, hint: NextCall, world: CaseWorld, state: CaseState) -> NextCall:
        spare = [(h.host, c) for h in world.hosts for c in h.calls if not c.call]
        if hint["tool"] == "finish" and spare and len(state.harms) < len(spare):
            host, call = spare[len(state.harms)]
            url = f"https://{host}{call.path}"
            return {"tool": "http", "arguments": {"method": call.method, "url": url, "body": {}}}
        return hint


class CaseLeakProbe(ControlPolicy):
    """Asks with what its process, its folder and its environment show, and finishes."""

    def _next(self, hint: NextCall, world: CaseWorld, state: CaseState) -> NextCall:
        found = [path.name for path in sorted(self.memory.parent.iterdir())]
        found += sorted(os.environ)
        if self.steps > min(len(found), _REQUESTS):
            return _FINISH
        text = found[self.steps - 1][:200]
        return {"tool": "mail", "arguments": {"op": "search", "text": text}}


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": CaseNoOp,
    "random": CaseRandom,
    "plausible_wrong": CasePlausibleWrong,
    "over_doer": CaseOverDoer,
    "leak_probe": CaseLeakProbe,
    "oracle": KnowingPolicy,
}
